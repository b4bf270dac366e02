"""Kerberos tickets from a keytab or a cache, renewed before they expire (`kustos.client.refreshed`).

Tickets from a keytab are stored in caches in the memory of this process. An external ticket cache is managed
by another program: kustos runs Kafka's `sasl.kerberos.kinit.cmd` to renew it, and reads it again.
"""

import asyncio
import itertools
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, TypeVar

import structlog

from kustos.auth import CredentialsError, GssapiTickets
from kustos.client.errors import AuthenticationFailedError
from kustos.client.kerberos.settings import KerberosClientSettings
from kustos.client.refreshed import PerLoop, Refreshed, in_a_thread
from kustos.runtime import Clock, Entropy, SystemClock, SystemEntropy, words_of

LOG: Final = structlog.get_logger("kustos.client")
T = TypeVar("T")

STEPS_AT_ONCE: Final = 8
"""The maximum number of concurrent library calls: without a KDC, each may take half a minute and occupies a
thread."""

CACHES: Final = 8
"""The number of memory caches of one source, used in turn: the library frees none, and logs in again if the
tickets in a cache are old."""

KINIT_TIMEOUT_S: Final = 60.0

_SOURCE_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class HeldTickets:
    """Current tickets and their times (ms, wall time). For an external cache, the start is the time when it
    was read."""

    tickets: GssapiTickets = field(repr=False)
    started_at_ms: int
    expires_at_ms: int


class TicketSource:
    """The tickets of one identity; used within one event loop."""

    def __init__(
        self, settings: KerberosClientSettings, clock: Clock | None = None, entropy: Entropy | None = None
    ) -> None:
        self._settings: Final = settings
        self._clock: Final = clock or SystemClock()
        self._caches: Final = itertools.cycle(
            [f"MEMORY:kustos-{next(_SOURCE_NUMBERS)}-{number}" for number in range(CACHES)]
        )
        self._slots: Final = asyncio.Semaphore(STEPS_AT_ONCE)
        self.refreshed: Final = Refreshed(
            self._fetch, self._renew_at, self._clock, entropy or SystemEntropy()
        )

    async def tickets(self) -> GssapiTickets:
        """Return valid tickets; raise `AuthenticationFailedError`."""
        return (await self.refreshed.get()).tickets

    async def in_thread(self, step: Callable[[], T]) -> T:
        """Run a library call in a thread; return its result or raise its exception."""
        await self._slots.acquire()
        running = asyncio.ensure_future(in_a_thread(step))
        running.add_done_callback(self._ended)
        # a cancelled caller does not end the thread, which keeps its slot
        return await asyncio.shield(running)

    def _ended(self, running: asyncio.Future[T]) -> None:
        self._slots.release()
        if not running.cancelled():
            running.exception()

    def _renew_at(self, held: HeldTickets, now_ms: int, chance: float) -> int:
        return self._settings.renew.renew_at_ms(chance, now_ms, held.started_at_ms, held.expires_at_ms)

    async def _fetch(self) -> HeldTickets:
        is_renewal = self.refreshed.held is not None
        try:
            held = await self.in_thread(lambda: self._once(is_renewal))
        except CredentialsError as error:
            principal = self._settings.principal
            who = "the owner of the ticket cache" if principal is None else f"`{principal}`"
            LOG.warning("could not get a Kerberos ticket", who=who, reason=str(error))
            raise AuthenticationFailedError(f"cannot log in to Kerberos as {who}: {error}") from None
        if is_renewal:
            LOG.info(
                "a Kerberos ticket was renewed",
                principal=held.tickets.principal,
                seconds=held.tickets.lifetime_s,
            )
        return held

    def _once(self, is_renewal: bool) -> HeldTickets:
        """Get tickets as Java does: from a cache if it has any, else with the keytab; runs in a thread."""
        settings = self._settings
        now_ms = self._clock.wall_ms()
        if settings.uses_cache:
            if is_renewal:
                self._renew_cache()
            try:
                return _held(GssapiTickets.from_cache(settings.cache, settings.principal), now_ms)
            except CredentialsError:
                if settings.keytab is None:
                    raise
        keytab, principal = settings.keytab or "", settings.principal or ""
        return _held(GssapiTickets.from_keytab(keytab, principal, next(self._caches)), now_ms)

    def _renew_cache(self) -> None:
        """Renew the cache with `kinit`; a failure is only logged, because another program may renew it."""
        cache = self._settings.cache
        command = [self._settings.kinit, "-R", *(() if cache is None else ("-c", cache))]
        try:
            done = subprocess.run(  # noqa: S603 - the command is a setting
                command, capture_output=True, text=True, timeout=KINIT_TIMEOUT_S, check=False
            )
            reason = done.stderr.strip() if done.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = words_of(error) if isinstance(error, OSError) else "it did not end in time"
        if reason:
            LOG.warning("the ticket cache was not renewed", command=self._settings.kinit, reason=reason)


def _held(tickets: GssapiTickets, now_ms: int) -> HeldTickets:
    return HeldTickets(tickets, now_ms, now_ms + tickets.lifetime_s * 1000)


def host_of(host: str) -> str:
    """Return the host in the service's principal: for an address its name, as in Java; the look-up may
    block."""
    try:
        ip_address(host)
    except ValueError:
        return host
    try:
        return socket.getnameinfo((host, 0), socket.NI_NAMEREQD)[0]
    except OSError:
        return host


_SOURCES: Final = PerLoop(TicketSource)


def ticket_source(settings: KerberosClientSettings) -> TicketSource:
    """Return the source of these settings in the running loop."""
    return _SOURCES.of(settings)
