"""Waiting for a condition, never for an amount of time.

Much of what Kafka acknowledges holds only eventually: its controller answers before its brokers have read a
topic, an ACL, a user, a token or a setting from the metadata log. A test that creates one waits for it with
`wait_until` before it uses it; `testkit.kafka.make_topics` creates topics and waits for them.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

T = TypeVar("T")

POLL_INTERVAL_S = 0.02
"""First interval between checks of a condition: short beside anything a JVM does, long beside a check."""

POLL_SHARE, POLL_INTERVAL_MAX_S = 0.05, 0.25
"""Who has waited for long looks less often: a check costs two processes some milliseconds."""

PATIENCE_S = 90.0
"""Time limit for a condition that takes about a second on an idle machine.

A passing test never waits that long; the limit only has to exceed the time on the slowest, busiest machine
and stay below the limit of a test (900 s)."""

NEVER_AWAITED = (
    "error:coroutine .* was never awaited:RuntimeWarning",
    "error::pytest.PytestUnraisableExceptionWarning",
)
"""Filters of warnings by which a test fails that leaves a coroutine behind.

Not of all warnings: a socket that an earlier test left open warns where it is collected, in any test."""

SHOWN_MAX = 2_000
"""Characters of the last value that an error shows: enough for a listing of some ACLs."""


class DeadlineExceededError(Exception):
    """A condition did not come true within its time limit."""


def wait_until(
    look: Callable[[], T],
    *,
    what: str,
    holds: Callable[[T], object] = bool,
    not_yet: type[Exception] | tuple[type[Exception], ...] = (),
    timeout_s: float = PATIENCE_S,
    pause: Callable[[float], object] | None = None,
) -> T:
    """Return the first value of `look` for which `holds` is true, by default the first true value.

    An exception of the types `not_yet` counts as a value that does not hold. `DeadlineExceededError` names
    `what` was expected, and shows the last value. `pause` spends the time between two looks; to wait on a
    process, pass that process's own `wait`, so that its end is seen at once.
    """
    spend = pause if pause is not None else Event().wait
    begun = time.monotonic()
    deadline = begun + timeout_s
    while True:
        try:
            value = look()
            if holds(value):
                return value
            last, cause = repr(value), None
        except not_yet as error:
            last, cause = repr(error), error
        now = time.monotonic()
        left = deadline - now
        if left <= 0:
            raise DeadlineExceededError(
                f"{what}: not so within {timeout_s:g} s, at last {last[:SHOWN_MAX]}"
            ) from cause
        spend(min(max(POLL_INTERVAL_S, POLL_SHARE * (now - begun)), POLL_INTERVAL_MAX_S, left))


async def let_pass(seconds: float) -> None:
    """Let time pass, for load that comes at a pace: what waits for something waits for that."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


def whole_lines(path: Path) -> list[str]:
    """Return the lines that a running process has written whole: a reader may see half of the last one."""
    return path.read_bytes().decode(errors="replace").split("\n")[:-1]
