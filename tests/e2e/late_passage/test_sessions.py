"""A session that ended (KIP-368) outlives its end by nothing that waits behind a request at the broker."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import count

import pytest
from kio.static.primitive import i64Timedelta

from kustos.auth import client_mechanism
from kustos.runtime import SystemEntropy
from testkit.guarded.raw_client import SASL_AUTHENTICATE, SASL_HANDSHAKE, RawClient
from testkit.kustos import KustosNode
from testkit.late_passage.fields import FETCH, METADATA, PRODUCE, metadata
from testkit.late_passage.stage import AFTER, Stage
from testkit.late_passage.waiting_requests import Head
from testkit.tap.frames import code
from testkit.waiting import wait_until
from tests.e2e.late_passage.line import Line, Staged

SESSION_MS = 4_000
"""Long beside what it takes to send three requests, short beside a test."""

CREATE_DELEGATION_TOKEN = 38
SCRAM = "SCRAM-SHA-256"

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def sessions_end(line: Line) -> Iterator[KustosNode]:
    """A node whose sessions are short."""
    with line.guard("short-sessions", **{"connections.max.reauth.ms": str(SESSION_MS)}) as node:
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


def outlive(stage: Stage, head: Head, witness: RawClient) -> None:
    """Let the session end while a Produce and a Fetch wait behind the head, then let the head go."""
    stage.send(head.frame, *stage.behind())
    stage.wait_handed_over(head.api_key)
    assert serves(witness, stage.topic)
    # its session began later and so ends later than the client's
    wait_until(lambda: not serves(witness, stage.topic), what="the session ended")
    stage.write(AFTER)
    head.release()
    stage.assert_nothing_late(stage.answers(head.api_key, PRODUCE, FETCH)[1:])


@pytest.mark.parametrize("api", ["JoinGroup", "Fetch"])
def test_nothing_is_worked_on_after_a_client_had_to_authenticate_again(
    line: Line, sessions_end: KustosNode, staged: Staged, api: str
) -> None:
    stage = staged(sessions_end)
    head = line.head(api, stage)
    stage.client = stage.connect()
    outlive(stage, head, stage.connect("witness"))


def log_in_by_token(client: RawClient, token_id: str, hmac: bytes) -> RawClient:
    """Authenticate by SCRAM with a delegation token (KIP-48)."""
    password = base64.b64encode(hmac).decode()
    mechanism = client_mechanism(SCRAM, token_id, password, SystemEntropy(), token_authenticated=True)
    client.ask(SASL_HANDSHAKE, 1, mechanism=SCRAM)
    token: bytes | None = mechanism.first()
    while token is not None:
        answer = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=token)
        assert code(answer) == 0, answer.error_message
        token = mechanism.respond(answer.auth_bytes)
    return client


def test_nothing_is_worked_on_after_the_token_of_a_session_expired(
    line: Line, tokens_end: KustosNode, staged: Staged
) -> None:
    stage = staged(tokens_end)
    head = line.head("JoinGroup", stage)
    made = stage.client.ask(
        CREATE_DELEGATION_TOKEN,
        3,
        owner_principal_type=None,
        owner_principal_name=None,
        renewers=(),
        max_lifetime=i64Timedelta.parse(timedelta(milliseconds=SESSION_MS)),
    )
    assert code(made) == 0
    stage.client = log_in_by_token(stage.unauthenticated(), made.token_id, made.hmac)
    witness = log_in_by_token(stage.unauthenticated("witness"), made.token_id, made.hmac)
    outlive(stage, head, witness)
