"""Credentials of kustos itself that expire: they are fetched at first use, and again before they expire.

Only one fetch runs at a time, for any number of callers. Callers do not wait while the current credential is
valid: the next one is fetched outside the event loop, and after a failure again ten seconds later. Such
credentials are bearer tokens, refreshed like in Kafka's ExpiringCredentialRefreshingLogin, and Kerberos
tickets. Blocking work runs in threads: requests to identity providers, calls of the Kerberos library and of
custom classes.
"""

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from kustos.client.errors import ClientError
from kustos.client.supervision import failed
from kustos.runtime import Clock, Entropy
from kustos.settings import Setting, number, whole_number

RETRY_MS: Final = 10_000
"""The pause after a failed refresh, as in Kafka."""

TIMER_MAX_MS: Final = 86_400_000
"""The longest pause before the time is calculated again: a day."""

_CHANCE_BYTES: Final = 4


class Expiring(Protocol):
    """A credential that expires at a time (ms, wall time)."""

    @property
    def expires_at_ms(self) -> int:
        """The time when it expires."""


T = TypeVar("T", bound=Expiring)
S = TypeVar("S")
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

RefreshAt = Callable[[T, int, float], int]
"""The credential, the wall time and a number from 0 to 1 → the wall time of the next fetch (ms)."""


def chance(entropy: Entropy) -> float:
    """Return a random number from 0 to 1, so that nodes do not act at the same time."""
    return int.from_bytes(entropy.token_bytes(_CHANCE_BYTES)) / float(256**_CHANCE_BYTES)


class Refreshed(Generic[T]):
    """The current credential; used within one event loop.

    `fetch` returns a credential or raises `ClientError`. `is_wanted`: whether to fetch the next one without a
    caller; otherwise the current one is dropped at that time.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[T]],
        refresh_at: RefreshAt[T],
        clock: Clock,
        entropy: Entropy,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._fetch: Final = fetch
        self._refresh_at: Final = refresh_at
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._is_wanted: Final = is_wanted
        self._is_stopped = False
        self.held: T | None = None
        self._fetching: asyncio.Task[T] | None = None
        self.timer: asyncio.TimerHandle | None = None

    async def get(self) -> T:
        """Return a valid credential; raise the error of `fetch` if there is none."""
        held = self.held
        if held is None or held.expires_at_ms <= self._clock.wall_ms():
            # a cancelled caller must not cancel the fetch for the others
            held = await asyncio.shield(self._begin())
        return held

    def _begin(self) -> asyncio.Task[T]:
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.get_running_loop().create_task(self._next())
            # callers get the error; without callers, `fetch` has logged it
            self._fetching.add_done_callback(_mark_retrieved)
        return self._fetching

    async def _next(self) -> T:
        try:
            self.held = held = await self._fetch()
            now_ms = self._clock.wall_ms()
            self._begin_in(self._refresh_at(held, now_ms, chance(self._entropy)) - now_ms)
        except BaseException:
            if self.held is not None:
                self._begin_in(RETRY_MS)
            raise
        return held

    def _begin_in(self, pause_ms: int) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self._is_stopped:
            return
        seconds = min(max(pause_ms, 0), TIMER_MAX_MS) / 1000
        self.timer = asyncio.get_running_loop().call_later(seconds, self._begin_unless_idle)

    def _begin_unless_idle(self) -> None:
        if self._is_wanted():
            self._begin()
        else:
            self.held = None

    def stop(self) -> None:
        """Stop background fetches."""
        self._is_stopped = True
        if self.timer is not None:
            self.timer.cancel()


def _mark_retrieved(task: "asyncio.Task[T]") -> None:
    if (
        not task.cancelled()
        and (error := task.exception()) is not None
        and not isinstance(error, ClientError)
    ):
        failed("credential", error)


class PerLoop(Generic[K, S]):
    """The sources of a process by their settings, for each event loop: equal settings share one, as in Kafka.

    A process has one for each of its identities: a node has several, a command one.
    """

    def __init__(self, make: Callable[[K], S]) -> None:
        self._make: Final = make
        self._sources: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[K, S]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, settings: K) -> S:
        """Return the source of these settings in the running loop."""
        sources = self._sources.setdefault(asyncio.get_running_loop(), {})
        if settings not in sources:
            sources[settings] = self._make(settings)
        return sources[settings]


@dataclass(frozen=True, slots=True)
class RefreshRules:
    """The time of the next token: fractions of the lifetime of the current one, and seconds."""

    window_factor: float = Setting(
        "sasl.login.refresh.window.factor",
        number(0.5, 1.0),
        0.8,
        "Upstream",
        "The part of a token's life after which the node gets the next one.",
        since="0.2.0",
    ).field()
    window_jitter: float = Setting(
        "sasl.login.refresh.window.jitter",
        number(0.0, 0.25),
        0.05,
        "Upstream",
        "The random part of its life that is added to that.",
        since="0.2.0",
    ).field()
    min_period_seconds: int = Setting(
        "sasl.login.refresh.min.period.seconds",
        whole_number(0, 900),
        60,
        "Upstream",
        "The least time between two tokens.",
        since="0.2.0",
    ).field()
    buffer_seconds: int = Setting(
        "sasl.login.refresh.buffer.seconds",
        whole_number(0, 3600),
        300,
        "Upstream",
        "How long before the end of a token the node gets the next one.",
        since="0.2.0",
    ).field()


def refresh_at_ms(rules: RefreshRules, chance: float, now_ms: int, issued_ms: int, expires_ms: int) -> int:
    """Return the wall time at which to refresh a token; `chance` is from 0 to 1.

    This is at `window_factor` plus a random part of `window_jitter` of its lifetime, but at least
    `buffer_seconds` before its end and `min_period_seconds` from now. If the lifetime is too short for both,
    only factor and jitter count.
    """
    part = rules.window_factor + rules.window_jitter * chance
    least_ms, buffer_ms = rules.min_period_seconds * 1000, rules.buffer_seconds * 1000
    if now_ms + least_ms + buffer_ms > expires_ms:
        return now_ms + int((expires_ms - now_ms) * part)
    proposed_ms = issued_ms + int((expires_ms - issued_ms) * part)
    return max(min(proposed_ms, expires_ms - buffer_ms), now_ms + least_ms)


def retry_pauses_ms(backoff_ms: int, backoff_max_ms: int) -> tuple[int, ...]:
    """Return the pauses between attempts, as in Kafka: they double each time, and their sum is at most
    `backoff_max_ms`."""
    pauses: list[int] = []
    pause_ms = max(1, backoff_ms)
    while sum(pauses) + pause_ms <= backoff_max_ms:
        pauses.append(pause_ms)
        pause_ms *= 2
    return tuple(pauses)


async def in_a_thread(work: Callable[[], R]) -> R:
    """Run the work in its own thread; return its result or raise its exception.

    The end of the event loop or the process does not wait for the thread.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not future.done():
            settled()

    def run() -> None:
        settled: Callable[[], None]
        try:
            settled = partial(future.set_result, work())
        except Exception as error:  # noqa: BLE001 - callers get it
            settled = partial(future.set_exception, error)
        with suppress(RuntimeError):
            # the loop may be closed
            loop.call_soon_threadsafe(settle, settled)

    threading.Thread(target=run, name="in-a-thread", daemon=True).start()
    return await future
