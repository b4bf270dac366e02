"""Delegation tokens for clients: one for each, in time, within limits, and never another client's."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import SaslClientError
from kustos.client import (
    AuthenticationFailedError,
    CannotConnectError,
    Identity,
    KafkaConnection,
    SaslClientSettings,
)
from kustos.gateway.upstream import (
    ClientIdentities,
    IdentityError,
    UpstreamTokens,
    UpstreamUnavailableError,
    identities,
)
from kustos.gateway.upstream import tokens as tokens_module
from kustos.gateway.upstream.tokens import SETTLED_MS, owner_of
from kustos.runtime import SystemEntropy
from kustos.wire import Message, response_codec
from kustos.wire.api_keys import ApiKey
from testkit.clocks import ManualClock

ALICE = KafkaPrincipal("User", "alice")
HMAC = b"the-h\xffmac"
LIFE_MS = 100_000


@pytest.fixture(autouse=True)
def _first_logins_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    # the clock of these tests stands still
    monkeypatch.setattr(identities, "FRESH_MS", 0)


@dataclass
class Upstream:
    """Creates tokens as the test configures it."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(1_000_000))
    requests: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    changed: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: int = 0
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.may_answer.set()
        self.tokens = UpstreamTokens(self.query, self.clock, SystemEntropy(), self.outcomes.append)

    async def query(
        self, api_key: ApiKey, *, cap: int | None = None, floor: int = 0, **fields: Any
    ) -> Message:
        assert (api_key, floor) == (ApiKey.CREATE_DELEGATION_TOKEN, 3)
        self.requests.append(fields)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await self.may_answer.wait()
        self.at_once -= 1
        if self.error is not None:
            raise self.error
        values = {
            "principal_type": fields["owner_principal_type"],
            "principal_name": fields["owner_principal_name"],
            # the clock of upstream is another
            "issue_timestamp": 77,
            "expiry_timestamp": 77 + LIFE_MS,
            "token_id": f"id-{len(self.requests)}",
            "hmac": HMAC,
        }
        return response_codec(api_key, 3).root.fit(**(values | self.changed))

    async def next_token(self, owner: str) -> None:
        """Do what the timer does when the next token of this client is due."""
        refreshed = self.tokens._holders[owner].refreshed
        refreshed._begin_unless_idle()
        if refreshed._fetching is not None:
            await asyncio.wait((refreshed._fetching,))


async def test_a_token_is_requested_for_the_client_and_has_no_text_form() -> None:
    upstream = Upstream()
    token = await upstream.tokens.current("alice")
    assert upstream.requests == [
        {
            "owner_principal_type": "User",
            "owner_principal_name": "alice",
            "renewers": [],
            "max_lifetime": 86_400_000,
        }
    ]
    assert (token.token_id, token.password) == ("id-1", "dGhlLWj/bWFj")
    assert token.expires_at_ms == upstream.clock.wall_ms() + LIFE_MS
    assert token.password not in repr(token)
    assert upstream.outcomes == ["created"]


async def test_connections_of_one_client_share_a_token_and_different_clients_do_not() -> None:
    upstream = Upstream()
    upstream.may_answer.clear()
    waiting = asyncio.gather(*(upstream.tokens.current(owner) for owner in ("alice", "bob") * 10))
    await asyncio.sleep(0)
    upstream.may_answer.set()
    assert len({token.token_id for token in await waiting}) == 2
    assert len(upstream.requests) == 2


async def test_concurrent_creations_and_kept_tokens_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "TOKENS_MAX", 30)
    upstream = Upstream()
    await upstream.tokens.current("first")
    upstream.may_answer.clear()
    waiting = asyncio.gather(*(upstream.tokens.current(f"user-{number}") for number in range(29)))
    for _ in range(50):
        await asyncio.sleep(0)
    assert upstream.most_at_once == tokens_module.CREATED_AT_ONCE
    upstream.may_answer.set()
    await waiting
    # `first` is in use, so that another goes
    await upstream.tokens.current("first")
    dropped = upstream.tokens._holders["user-0"].refreshed
    await upstream.tokens.current("last")
    assert len(upstream.tokens._holders) == 30
    assert "first" in upstream.tokens._holders
    assert dropped.timer is not None
    assert dropped.timer.cancelled()


async def test_a_new_token_is_used_once_brokers_have_read_it() -> None:
    upstream = Upstream()
    first = await upstream.tokens.current("alice")
    upstream.clock.now_ms += 75_000
    await upstream.next_token("alice")
    assert len(upstream.requests) == 2
    assert await upstream.tokens.current("alice") is first
    upstream.clock.now_ms += SETTLED_MS
    second = await upstream.tokens.current("alice")
    assert second.token_id == "id-2"
    # where the last has ended there is no choice
    upstream.clock.now_ms += LIFE_MS - SETTLED_MS - 1000
    await upstream.next_token("alice")
    assert (await upstream.tokens.current("alice")).token_id == "id-3"


async def test_an_unused_token_is_not_replaced() -> None:
    upstream = Upstream()
    await upstream.tokens.current("alice")
    await upstream.next_token("alice")
    await upstream.next_token("alice")
    assert len(upstream.requests) == 2
    await upstream.tokens.current("alice")
    assert len(upstream.requests) == 3


async def test_a_token_without_replacement_is_used_until_it_expires() -> None:
    upstream = Upstream()
    first = await upstream.tokens.current("alice")
    upstream.error = UpstreamUnavailableError("away")
    await upstream.next_token("alice")
    assert await upstream.tokens.current("alice") is first
    upstream.clock.now_ms += LIFE_MS
    with pytest.raises(CannotConnectError, match="no delegation token for `User:alice`: away"):
        await upstream.tokens.current("alice")
    assert upstream.outcomes == ["created", "unanswered", "unanswered"]
    assert not upstream.tokens._holders


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"error_code": 65}, "DELEGATION_TOKEN_AUTHORIZATION_FAILED; the principal of kustos needs"),
        ({"error_code": 61}, "DELEGATION_TOKEN_AUTH_DISABLED"),
        ({"principal_name": "svc"}, "the token of somebody else"),
        ({"principal_type": "Group"}, "the token of somebody else"),
        ({"expiry_timestamp": 77}, "cannot be used"),
        ({"token_id": ""}, "cannot be used"),
        ({"hmac": b""}, "cannot be used"),
    ],
)
async def test_a_failed_token_creation_is_an_identity_error(changed: dict[str, Any], said: str) -> None:
    upstream = Upstream(changed=changed)
    for _ in range(2):
        with pytest.raises(IdentityError, match=f"no delegation token for `User:alice`: .*{said}"):
            await upstream.tokens.current("alice")
    assert upstream.outcomes == ["refused", "refused"]
    assert not upstream.tokens._holders


@pytest.mark.parametrize(
    ("principal", "said"),
    [
        (KafkaPrincipal("Group", "alice"), "only principals of the type `User`"),
        (KafkaPrincipal("user", "alice"), "only principals of the type `User`"),
        (ANONYMOUS, "has not logged in"),
    ],
)
async def test_a_client_that_cannot_have_a_token_is_rejected_before_any_query(
    principal: KafkaPrincipal, said: str
) -> None:
    upstream = Upstream()
    with pytest.raises(IdentityError, match=said):
        await Links(upstream).connect(principal)
    assert upstream.requests == []
    assert owner_of(KafkaPrincipal("User", "alice", token_authenticated=True)) == "alice"


class Links:
    """Connects as clients to a broker that has read some of the tokens."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.unknown: set[str] = set()
        self.knows_after_ms = 0
        self.error_code = 58
        self.logins: list[SaslClientSettings] = []
        self.identities = ClientIdentities(upstream.tokens, "SCRAM-SHA-256", self.log_in, upstream.clock)

    async def connect(self, principal: KafkaPrincipal = ALICE) -> KafkaConnection:
        return await self.identities.connect(principal, "broker", 9092)

    async def log_in(self, host: str, port: int, identity: Identity) -> KafkaConnection:
        login = await identity()
        self.logins.append(login)
        now_ms = self.upstream.clock.wall_ms()
        if login.username in self.unknown or now_ms < 1_000_000 + self.knows_after_ms:
            self.upstream.clock.now_ms += 500
            cause = SaslClientError("the server refused the login", self.error_code)
            raise AuthenticationFailedError("refused") from cause
        return KafkaConnection.__new__(KafkaConnection)


async def test_a_link_logs_in_with_the_token_of_its_client() -> None:
    links = Links(Upstream())
    await links.connect()
    [login] = links.logins
    assert login == SaslClientSettings("SCRAM-SHA-256", "id-1", "dGhlLWj/bWFj", token_authenticated=True)
    assert "dGhl" not in repr(login)


async def test_a_broker_that_has_not_read_the_token_is_retried() -> None:
    links = Links(Upstream())
    links.knows_after_ms = 1_000
    await links.connect()
    assert [login.username for login in links.logins] == ["id-1"] * 3


async def test_a_token_unknown_to_the_broker_is_replaced_once() -> None:
    links = Links(Upstream())
    await links.connect()
    links.upstream.clock.now_ms += SETTLED_MS
    links.unknown = {"id-1"}
    await links.connect()
    assert [login.username for login in links.logins] == ["id-1", "id-1", "id-2"]
    links.unknown = {f"id-{number}" for number in range(10)}
    with pytest.raises(IdentityError, match="no login upstream as `User:alice`"):
        await links.connect()
    assert len(links.upstream.requests) <= 4


async def test_any_other_refusal_is_final() -> None:
    links = Links(Upstream())
    links.unknown, links.error_code = {"id-1"}, 33
    with pytest.raises(IdentityError, match="no login upstream as `User:alice`"):
        await links.connect()
    assert len(links.logins) == 1
