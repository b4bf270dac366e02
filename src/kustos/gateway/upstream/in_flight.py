"""Decides when a change that revokes rights may be acknowledged: which requests brokers still have.

The rule: once a change is acknowledged, no broker works on a request that it forbids. The change applies to
all new requests; the others were decided and sent before it and are still in flight. Each of those that would
be denied now must be answered first. If that takes longer than the grace period, its client is disconnected,
and then:

- The link is cut. Unless the broker is stalled, it began with the request on arrival, so the request
  counts as done once the same broker has completed a login that began afterwards.
- A link that the broker may have muted proves nothing: the broker reads what its kernel has received even
  from a dead connection. Only the answer counts.

Nobody knows what brokers have of a process that died: each broker must complete a login first. The same holds
when a process starts, as it may follow one that was killed.

A change whose forbidden requests are not answered in time is not acknowledged: its client gets
REQUEST_TIMED_OUT and may retry.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import structlog
from kio.schema.errors import ErrorCode

from kustos.authorizer import KafkaApiError
from kustos.client import ClientError
from kustos.gateway.upstream.link import CUT_REMEMBERED_S, UpstreamLink
from kustos.settings import Setting, whole_number

LINKS_PER_TURN: Final = 100
"""Links whose requests are decided again in one turn of the event loop."""

LOG: Final = structlog.get_logger("kustos.gateway")


class RequestsInFlightError(KafkaApiError):
    """A change is in force, but requests that it forbids may still be worked on."""

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
    """This process's links with requests in flight. Made inside the event loop."""

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
        """Return when no broker has a request of the node that would be denied now.

        Raise `RequestsInFlightError` if that is not certain in time.
        """
        if self._others is not None:
            await self._others()
        await self.drain_own()

    async def drain_own(self) -> None:
        """Do what `drain` does for the requests of this process."""
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
        """Record that brokers may still have requests of a process that is gone."""
        self._doubted.update(dict.fromkeys(self._brokers(), self._loop.time() + CUT_REMEMBERED_S))

    async def _check_doubted(self) -> None:
        """Log in to the doubted brokers; raise `RequestsInFlightError` if one stays in doubt."""
        timeout_s = self._settings.timeout_ms / 1000
        doubted = dict(self._doubted)
        alive = await asyncio.gather(*(self._is_alive(broker, timeout_s) for broker in doubted))
        for (broker, until_s), is_alive in zip(doubted.items(), alive, strict=True):
            # a broker that was doubted again meanwhile must be checked again
            if self._doubted.get(broker) == until_s and (is_alive or self._loop.time() >= until_s):
                del self._doubted[broker]
        if self._doubted:
            raise RequestsInFlightError

    async def _is_alive(self, broker: Address, timeout_s: float) -> bool:
        """Return whether the broker carries out a login now, or is not there at all."""
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
        """Return the result of a scan that begins from now on; callers during a scan share the next one."""
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
        """Return the links with requests that would be denied now, and when those are answered."""
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
        """Wait for the answers; return those that have not come in time."""
        if waited:
            await asyncio.wait(waited.values(), timeout=timeout_s)
        return {link: future for link, future in waited.items() if not future.done()}

    async def _forget_dead(self, broker: Address, links: Sequence[UpstreamLink], timeout_s: float) -> None:
        """Forget links that were cut, once their broker has carried out a login that began afterwards."""
        if await self._is_alive(broker, timeout_s):
            for link in links:
                link.forget()
