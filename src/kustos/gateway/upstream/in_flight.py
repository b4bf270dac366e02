"""Decides when a change that revokes rights may be acknowledged: tracks the requests at the brokers.

The rule: after a change is acknowledged, no broker works on a request that the change forbids. The change
applies to all new requests; earlier requests were authorized and sent before it and are still in flight. Each
of them that the new ACLs deny must be answered first. If the answer takes longer than the grace period, the
gateway disconnects the client, and then:

- The gateway cuts the link. Unless the broker is stalled, it began the request on arrival, so the request
  counts as done when the same broker has completed a login that began afterwards.
- A link that the broker may have muted proves nothing: the broker reads the bytes that its kernel has
  received even from a dead connection. Only the answer counts.

The requests of a process that died are unknown: each broker must complete a login first. The same applies
when a process starts, because it may replace one that was killed.

A change is not acknowledged if its forbidden requests are not answered in time: its client gets
REQUEST_TIMED_OUT and may retry.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import structlog

from kustos.authorizer import KafkaApiError
from kustos.client import ClientError
from kustos.gateway.upstream.link import CUT_REMEMBERED_S, UpstreamLink
from kustos.settings import Setting, whole_number
from kustos.wire import ErrorCode

LINKS_PER_TURN: Final = 100
"""The number of links whose requests are authorized again in one event loop iteration."""

LOG: Final = structlog.get_logger("kustos.gateway")


class RequestsInFlightError(KafkaApiError):
    """A change is in force, but brokers may still work on requests that it forbids."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.request_timed_out,
            "The change is in force for new requests, but brokers have not answered all requests that were "
            "allowed before it; repeat it to learn when they have.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RevocationSettings:
    """How long a change that revokes rights waits for the requests that it forbids."""

    grace_ms: int = Setting(
        "kustos.revocation.grace.ms",
        whole_number(0, 60_000, "milliseconds"),
        1_000,
        "Authorization",
        "How long a change that revokes rights waits for answers to requests that were allowed before it and "
        "would be denied now. After that kustos disconnects their clients.",
    ).field()
    timeout_ms: int = Setting(
        "kustos.revocation.timeout.ms",
        whole_number(100, 600_000, "milliseconds"),
        10_000,
        "Authorization",
        "How long such a change waits in all until no broker works on those requests. After that the answer "
        "is REQUEST_TIMED_OUT: the change is in force for new requests, but brokers may still work on "
        "earlier ones.",
    ).field()


Address: TypeAlias = tuple[str, int]
Login: TypeAlias = Callable[[str, int], Awaitable[object]]
"""Logs in to a broker on a new connection and closes it; raises `ClientError`."""


class InFlight:
    """This process's links with requests in flight. Create it inside the event loop."""

    def __init__(
        self,
        login: Login,
        brokers: Callable[[], Iterable[Address]],
        settings: RevocationSettings,
        *,
        sees_all_changes: bool,
        others: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._others: Final = others
        """Drains the other processes of the node."""
        self.sees_all_changes: Final = sees_all_changes
        """Whether every change that revokes rights waits in `drain`."""
        self._login: Final = login
        self._brokers: Final = brokers
        self._settings: Final = settings
        self._has_begun = False
        self.links: Final[set[UpstreamLink]] = set()
        """The links with requests in flight; each adds and removes itself."""
        self._doubted: Final[dict[Address, float]] = {}
        self._scan: asyncio.Task[dict[UpstreamLink, asyncio.Future[None]]] | None = None
        self._next_scan: asyncio.Task[dict[UpstreamLink, asyncio.Future[None]]] | None = None
        self._loop: Final = asyncio.get_running_loop()

    async def drain(self) -> None:
        """Return when no broker has a request of the node that the ACLs would deny now.

        Raise `RequestsInFlightError` if that is not certain in time.
        """
        if self._others is not None:
            await self._others()
        await self.drain_own()

    async def drain_own(self) -> None:
        """Do the same as `drain` for the requests of this process."""
        deadline_s = self._loop.time() + self._settings.timeout_ms / 1000
        if not self._has_begun:
            self._has_begun = True
            self.doubt()
        if self._doubted:
            await self._check_doubted()
        if not self.links or not (late := await self._scanned()):
            return
        late = await self._unanswered(late, self._settings.grace_ms / 1000)
        brokers: dict[Address, list[UpstreamLink]] = {}
        for link in late:
            link.revoke()
            if link.is_cut and link.is_provable:
                brokers.setdefault(link.broker, []).append(link)
        rest_s = max(0.0, deadline_s - self._loop.time())
        logins = [
            asyncio.ensure_future(self._forget_dead(broker, links, rest_s))
            for broker, links in brokers.items()
        ]
        late = await self._unanswered(late, rest_s)
        await asyncio.gather(*logins)
        if late := {link: future for link, future in late.items() if not future.done()}:
            LOG.warning("brokers may still work on requests that are forbidden now", connections=len(late))
            raise RequestsInFlightError

    def doubt(self) -> None:
        """Record that brokers may still have requests of a process that has ended."""
        self._doubted.update(dict.fromkeys(self._brokers(), self._loop.time() + CUT_REMEMBERED_S))

    async def _check_doubted(self) -> None:
        """Log in to the doubted brokers; raise `RequestsInFlightError` if one stays in doubt."""
        timeout_s = self._settings.timeout_ms / 1000
        doubted = dict(self._doubted)
        alive = await asyncio.gather(*(self._is_alive(broker, timeout_s) for broker in doubted))
        for (broker, until_s), is_alive in zip(doubted.items(), alive, strict=True):
            # a broker that was doubted again during the check must be checked again
            if self._doubted.get(broker) == until_s and (is_alive or self._loop.time() >= until_s):
                del self._doubted[broker]
        if self._doubted:
            raise RequestsInFlightError

    async def _is_alive(self, broker: Address, timeout_s: float) -> bool:
        """Return whether the broker completes a login now, or does not exist."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._login(*broker)
        except (ClientError, TimeoutError) as error:
            if isinstance(error.__cause__, ConnectionRefusedError):
                return True
            LOG.warning("a broker does not answer", broker=f"{broker[0]}:{broker[1]}", reason=str(error))
            return False
        return True

    async def _scanned(self) -> dict[UpstreamLink, asyncio.Future[None]]:
        """Return the result of a scan that begins after this call; callers may share it."""
        if self._next_scan is None or self._next_scan.done():
            self._next_scan = self._loop.create_task(self._scan_after(self._scan))
        return dict(await asyncio.shield(self._next_scan))

    async def _scan_after(
        self, before: asyncio.Task[dict[UpstreamLink, asyncio.Future[None]]] | None
    ) -> dict[UpstreamLink, asyncio.Future[None]]:
        if before is not None:
            await asyncio.wait((before,))
        self._scan, self._next_scan = self._next_scan, None
        return await self._forbidden()

    async def _forbidden(self) -> dict[UpstreamLink, asyncio.Future[None]]:
        """Return the links with requests that the ACLs would deny now, each with a future for the answers."""
        found: dict[UpstreamLink, asyncio.Future[None]] = {}
        for number, link in enumerate(tuple(self.links), start=1):
            future = link.until_answered()
            if future is not None:
                found[link] = future
            if number % LINKS_PER_TURN == 0:
                await asyncio.sleep(0)
        return found

    async def _unanswered(
        self, waited: dict[UpstreamLink, asyncio.Future[None]], timeout_s: float
    ) -> dict[UpstreamLink, asyncio.Future[None]]:
        """Wait for the answers; return the links whose answers have not arrived in time."""
        if waited:
            await asyncio.wait(waited.values(), timeout=timeout_s)
        return {link: future for link, future in waited.items() if not future.done()}

    async def _forget_dead(self, broker: Address, links: Sequence[UpstreamLink], timeout_s: float) -> None:
        """Forget cut links after their broker has completed a login that began after the cut."""
        if await self._is_alive(broker, timeout_s):
            for link in links:
                link.forget()
