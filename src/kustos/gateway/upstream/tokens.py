"""A delegation token of the upstream cluster for each client, which identifies the client to brokers.

The service principal creates the token in the client's name (KIP-373), and needs CREATE_TOKENS on that user.
A token is never renewed. Another one is created well before it expires, if the last one was used at all, and
both are left to expire. A session that lasts as long as its token therefore finds the next token when it is
due.

Only principals of type `User` can have a token: a client that logs in with a token is `User:` and its owner's
name, and any other type would change the identity.
"""

import asyncio
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.client import CannotConnectError, ClientError, Refreshed, error_name
from kustos.gateway.upstream.cluster import UpstreamUnavailableError
from kustos.runtime import Clock, Entropy
from kustos.wire import ApiKey, Message

TOKENS_MAX: Final = 10_000
"""The maximum number of clients whose tokens are kept, most recent logins first: the default maximum number
of connections."""

CREATED_AT_ONCE: Final = 16
"""The maximum number of tokens created concurrently: each one takes time of the upstream controller."""

OWNER_SINCE_VERSION: Final = 3
"""Before this version (Kafka 3.3), CreateDelegationToken creates tokens only for the requester."""

LIFETIME_MS: Final = 86_400_000
"""The requested lifetime; `delegation.token.expiry.time.ms` of the cluster may shorten it."""

NEXT_FROM: Final = 0.70
NEXT_WITHIN: Final = 0.10
"""The part of a token's life after which the next one is created, and the random part that is added to it.
Their sum is less than 0.85, the part after which sessions with the same lifetime are due."""

SETTLED_MS: Final = 2_000
"""The time in which brokers read a new token from the metadata log; the last token is used until then."""


class IdentityError(ClientError):
    """Brokers cannot see the identity of the client; its connection must end."""


@dataclass(frozen=True, slots=True)
class UpstreamToken:
    """A token, and its times by the gateway's clock (ms, wall time)."""

    token_id: str
    password: str = field(repr=False)
    created_at_ms: int
    expires_at_ms: int

    def is_settled(self, now_ms: int) -> bool:
        """Whether all brokers know it."""
        return now_ms >= self.created_at_ms + SETTLED_MS


class Query(Protocol):
    """Sends requests upstream as the service principal."""

    async def __call__(
        self, api_key: ApiKey, *, cap: int | None = None, floor: int = 0, **fields: object
    ) -> Message:
        """Return the answer; raise `UpstreamUnavailableError`."""


class _Holder:
    """The tokens of one client."""

    __slots__ = ("is_used", "last", "refreshed")

    def __init__(
        self, create: Callable[[], Awaitable[UpstreamToken]], clock: Clock, entropy: Entropy
    ) -> None:
        self.is_used = False
        """Whether any login used the current token."""
        self.last: UpstreamToken | None = None

        async def fetch() -> UpstreamToken:
            token = await create()
            self.last, self.is_used = self.refreshed.held, False
            return token

        self.refreshed: Final = Refreshed(fetch, _next_at_ms, clock, entropy, lambda: self.is_used)


def _next_at_ms(token: UpstreamToken, _now_ms: int, chance: float) -> int:
    life_ms = token.expires_at_ms - token.created_at_ms
    return token.created_at_ms + int(life_ms * (NEXT_FROM + NEXT_WITHIN * chance))


class UpstreamTokens:
    """The tokens of all clients. `count` counts attempts to create one by their outcome."""

    def __init__(self, query: Query, clock: Clock, entropy: Entropy, count: Callable[[str], None]) -> None:
        self._query: Final = query
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._count: Final = count
        self._holders: Final[OrderedDict[str, _Holder]] = OrderedDict()
        self._slots: Final = asyncio.Semaphore(CREATED_AT_ONCE)

    async def current(self, owner: str) -> UpstreamToken:
        """Return a valid token of this user; raise `IdentityError` or `CannotConnectError`."""
        holder = self._holders.get(owner)
        if holder is None:
            holder = self._holders[owner] = _Holder(lambda: self._create(owner), self._clock, self._entropy)
            if len(self._holders) > TOKENS_MAX:
                self._holders.popitem(last=False)[1].refreshed.stop()
        self._holders.move_to_end(owner)
        try:
            token = await holder.refreshed.get()
        except ClientError:
            self._drop(owner, holder)
            raise
        holder.is_used = True
        now_ms, last = self._clock.wall_ms(), holder.last
        if last is not None and not token.is_settled(now_ms) and now_ms + SETTLED_MS < last.expires_at_ms:
            return last
        return token

    def forget(self, owner: str, token: UpstreamToken) -> None:
        """Create another token at the next login, because brokers reject this one."""
        holder = self._holders.get(owner)
        if holder is not None and (token is holder.refreshed.held or token is holder.last):
            self._drop(owner, holder)

    def _drop(self, owner: str, holder: _Holder) -> None:
        if self._holders.get(owner) is holder:
            del self._holders[owner]
            holder.refreshed.stop()

    def close(self) -> None:
        """Create no more tokens."""
        for holder in self._holders.values():
            holder.refreshed.stop()
        self._holders.clear()

    async def _create(self, owner: str) -> UpstreamToken:
        try:
            async with self._slots:
                answer = await self._query(
                    ApiKey.CREATE_DELEGATION_TOKEN,
                    floor=OWNER_SINCE_VERSION,
                    owner_principal_type=KafkaPrincipal.USER_TYPE,
                    owner_principal_name=owner,
                    renewers=[],
                    max_lifetime=LIFETIME_MS,
                )
        except UpstreamUnavailableError as error:
            self._count("unanswered")
            raise CannotConnectError(f"no delegation token for `User:{owner}`: {error}") from None
        refusal = _refusal(answer, owner)
        self._count("created" if refusal is None else "refused")
        if refusal is not None:
            raise IdentityError(f"upstream gives no delegation token for `User:{owner}`: {refusal}")
        now_ms = self._clock.wall_ms()
        # the difference between upstream's times: its clock may differ
        life_ms = answer.expiry_timestamp - answer.issue_timestamp
        password = b64encode(answer.hmac).decode()
        return UpstreamToken(answer.token_id, password, now_ms, now_ms + life_ms)


def _refusal(answer: Message, owner: str) -> str | None:
    """Return the reason why the answer holds no token of this owner, None if it holds one."""
    if answer.error_code:
        return (
            f"{error_name(answer.error_code)}; the principal of kustos needs `CREATE_TOKENS` on that user, "
            "and the cluster `delegation.token.secret.key`"
        )
    if (answer.principal_type, answer.principal_name) != (KafkaPrincipal.USER_TYPE, owner):
        return "it answered with the token of somebody else"
    if answer.expiry_timestamp <= answer.issue_timestamp or not (answer.token_id and answer.hmac):
        return "it answered with a token that cannot be used"
    return None


def owner_of(principal: KafkaPrincipal) -> str:
    """Return the owner of a client's token; raise `IdentityError` if no user can own one for the client."""
    if principal.principal_type != KafkaPrincipal.USER_TYPE:
        raise IdentityError(
            f"`{principal}` cannot be shown to upstream: only principals of the type `User` have delegation "
            "tokens"
        )
    if principal == ANONYMOUS:
        raise IdentityError(
            "a client that has not logged in cannot be shown to upstream, where `kustos.upstream.identity` "
            "is `token`"
        )
    return principal.name
