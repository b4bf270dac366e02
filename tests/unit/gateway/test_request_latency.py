"""The latency that the audit log gets for a request, on the event loops that nodes use."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import uvloop

from kustos.authorizer import AuthorizableRequestContext
from kustos.protocol import Decided, Guard, Recorder
from testkit.gateway.sessions import World, metadata
from testkit.protocol.random_requests import ALL_ALLOWED

WORK_S = 0.0003
WORK_US = 300
REQUESTS = 20


def slowed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with some work before it, in the same turn of the event loop."""

    def slow(*arguments: Any) -> Any:
        end_s = time.perf_counter() + WORK_S
        while time.perf_counter() < end_s:
            pass
        return method(*arguments)

    return slow


class Timed(World):
    """Records latencies."""

    def __post_init__(self) -> None:
        self.latencies_us: list[int] = []
        super().__post_init__()

    def decided(self, context: AuthorizableRequestContext, decided: list[Decided], latency_us: int) -> None:
        self.latencies_us.append(latency_us)

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Recorder:
        return self

    def record(self, _correlation_id: int, latency_us: int) -> bool:
        self.latencies_us.append(latency_us)
        return True

    def count(self) -> None:
        """Count nothing."""


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_it_counts_microseconds(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("open", "plan_of"):
        monkeypatch.setattr(Guard, name, slowed(getattr(Guard, name)))

    async def repeat() -> list[int]:
        world = Timed(ALL_ALLOWED)
        for number in range(REQUESTS):
            world.session.take([metadata(number, "alpha-topic")])
            assert world.answer_one()
        return world.latencies_us

    opened_us, *repeated_us = run(repeat())
    assert opened_us >= 2 * WORK_US, "both the search for a plan and the opening count"
    assert len(repeated_us) == REQUESTS - 1
    assert min(repeated_us) >= WORK_US
