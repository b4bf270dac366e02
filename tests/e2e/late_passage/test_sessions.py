"""A session that ended (KIP-368) outlives its end by nothing that waits behind a request at the broker."""

import base64
import select
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import count

import pytest
from kio.static.primitive import i64Timedelta

from kustos.auth import client_mechanism
from kustos.runtime import SystemEntropy
from testkit.guarded.common_settings import USERS
from testkit.guarded.raw_client import SASL_AUTHENTICATE, SASL_HANDSHAKE, RawClient
from testkit.kustos import KustosNode
from testkit.late_passage.fields import FETCH, METADATA, PRODUCE, metadata
from testkit.late_passage.stage import AFTER, Stage
from testkit.late_passage.waiting_requests import Head
from testkit.tap.frames import code
from testkit.waiting import wait_until
from tests.e2e.late_passage.line import USER, Line, Staged

SESSION_MS = 4_000
"""Long beside what it takes to send three requests, short beside a test."""

ATTEMPTS = 20
"""Sessions of which one must be long enough, on a machine that is so busy that others are not."""

CREATE_DELEGATION_TOKEN = 38
SCRAM = "SCRAM-SHA-256"
REAUTHENTICATION = f"listener.name.sasl_plaintext.{SCRAM.lower()}.connections.max.reauth.ms"

Connected = Callable[[str], RawClient]
"""Client id → a connection whose session is short and has led to the broker already."""

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def sessions_end(line: Line) -> Iterator[KustosNode]:
    """A node whose sessions by SCRAM are short; an administrator logs in by PLAIN."""
    with line.guard("short-sessions", **{REAUTHENTICATION: str(SESSION_MS)}) as node:
        yield node


@pytest.fixture(scope="module")
def tokens_end(line: Line) -> Iterator[KustosNode]:
    """A node that makes delegation tokens."""
    with line.guard("tokens", **{"delegation.token.secret.key": "of-the-tokens"}) as node:
        yield node


@pytest.fixture
def staged(line: Line) -> Iterator[Staged]:
    """Sets the stage at a node."""
    with ExitStack() as stack:
        yield lambda node: stack.enter_context(line.stage(f"session-{next(_NUMBERS)}", node))


def serves(client: RawClient, topic: str) -> bool:
    """Return whether a session is still served; Kafka and kustos close one that ended at its next request."""
    try:
        client.ask(METADATA, 12, **metadata(topic))
    except (EOFError, OSError):
        return False
    return True


def is_over(client: RawClient) -> bool:
    """Return whether the other side has ended a connection on which no answer is due."""
    readable, _, _ = select.select([client.socket], [], [], 0)
    return bool(readable) and client.is_closed()


def hand_over(stage: Stage, head: Head, connected: Connected) -> RawClient:
    """Have the broker receive the head in a session of the client; return one whose session ends later."""
    for _ in range(ATTEMPTS):
        try:
            stage.client, witness = connected(stage.client_id), connected("witness")
            stage.send(head.frame, *stage.behind())
        except (EOFError, OSError):
            continue  # the session ended before all was said
        client = stage.client
        wait_until(
            lambda client=client: stage.went_up(head.api_key) or is_over(client),  # type: ignore[misc]
            what="the broker was sent a request, or the session ended",
        )
        if stage.went_up(head.api_key):
            return witness
    raise AssertionError(f"each of {ATTEMPTS} sessions ended before the broker had a request of it")


def outlive(stage: Stage, head: Head, connected: Connected) -> None:
    """Let the session end while a Produce and a Fetch wait behind the head, then let the head go."""
    witness = hand_over(stage, head, connected)
    # its session began later and so ends later than the client's
    wait_until(lambda: not serves(witness, stage.topic), what="the session ended")
    stage.write(AFTER)
    head.release()
    stage.assert_nothing_late(stage.answers(head.api_key, PRODUCE, FETCH)[1:])


def log_in_by_scram(client: RawClient, name: str, password: str, *, by_token: bool = False) -> RawClient:
    """Authenticate, with a password or the HMAC of a delegation token (KIP-48); raise `PermissionError`."""
    mechanism = client_mechanism(SCRAM, name, password, SystemEntropy(), token_authenticated=by_token)
    client.ask(SASL_HANDSHAKE, 1, mechanism=SCRAM)
    token: bytes | None = mechanism.first()
    while token is not None:
        answer = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=token)
        if code(answer):
            raise PermissionError(answer.error_message)
        token = mechanism.respond(answer.auth_bytes)
    return client


@pytest.mark.parametrize("api", ["JoinGroup", "Fetch"])
def test_nothing_is_worked_on_after_a_client_had_to_authenticate_again(
    line: Line, sessions_end: KustosNode, staged: Staged, api: str
) -> None:
    stage = staged(sessions_end)

    def connected(client_id: str) -> RawClient:
        client = log_in_by_scram(stage.unauthenticated(client_id), USER, USERS[USER])
        stage.ask(client, METADATA, **metadata(stage.topic))
        return client

    outlive(stage, line.head(api, stage), connected)


def test_nothing_is_worked_on_after_the_token_of_a_session_expired(
    line: Line, tokens_end: KustosNode, staged: Staged
) -> None:
    stage = staged(tokens_end)
    owner = stage.client

    def connected(client_id: str) -> RawClient:
        made = owner.ask(
            CREATE_DELEGATION_TOKEN,
            3,
            owner_principal_type=None,
            owner_principal_name=None,
            renewers=(),
            max_lifetime=i64Timedelta.parse(timedelta(milliseconds=SESSION_MS)),
        )
        assert code(made) == 0
        password = base64.b64encode(made.hmac).decode()
        client = log_in_by_scram(stage.unauthenticated(client_id), made.token_id, password, by_token=True)
        stage.ask(client, METADATA, **metadata(stage.topic))
        return client

    outlive(stage, line.head("JoinGroup", stage), connected)
