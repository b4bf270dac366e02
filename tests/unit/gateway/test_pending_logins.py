"""The clients of a listener that have not authenticated: each has its own deadline, by one timer."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kustos.gateway.listener.pending_logins import PendingLogins
from kustos.gateway.listener.plans import ConnectionSettings

TIMEOUT_S = 30.0


class Clock:
    """A clock that is set, and the callbacks that are due by it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.due.append((self.now_s + delay_s, callback))

    def go_to(self, now_s: float) -> None:
        while self.due and min(self.due, key=lambda each: each[0])[0] <= now_s:
            first = min(self.due, key=lambda each: each[0])
            self.due.remove(first)
            self.now_s = first[0]
            first[1]()
        self.now_s = now_s


class World:
    """Clients that are texts; `ended` says who was late, and when."""

    def __init__(self, **limits: int) -> None:
        self.clock = Clock()
        self.ended: list[tuple[str, float]] = []
        self.figures: Any = SimpleNamespace(unauthenticated=0)
        settings = ConnectionSettings(login_timeout_ms=int(TIMEOUT_S * 1000), **limits)
        self.pending: Any = PendingLogins(
            settings, self.figures, self.end, lambda: self.clock.now_s, self.clock.call_later
        )

    def end(self, client: Any) -> None:
        self.ended.append((client, self.clock.now_s))
        self.pending.remove(client)


def test_each_client_expires_at_its_own_deadline() -> None:
    world = World()
    for client, at_s in (("a", 100.0), ("b", 101.0), ("c", 101.0), ("d", 129.0), ("e", 140.0)):
        world.clock.go_to(at_s)
        world.pending.add(client, f"10.0.0.{at_s:.0f}")
        assert len(world.clock.due) == 1, "one timer is enough"
    world.clock.go_to(1000.0)
    assert world.ended == [("a", 130.0), ("b", 131.0), ("c", 131.0), ("d", 159.0), ("e", 170.0)]
    assert world.figures.unauthenticated == len(world.pending) == 0
    assert world.clock.due == []


@pytest.mark.parametrize("leaves", ["remove", "excuse"])
def test_a_removed_client_does_not_expire_and_a_new_one_has_its_full_time(leaves: str) -> None:
    world = World()
    world.pending.add("a", "10.0.0.1")
    getattr(world.pending, leaves)("a")
    world.clock.go_to(120.0)
    world.pending.add("b", "10.0.0.1")
    world.clock.go_to(149.9)
    assert world.ended == []
    world.clock.go_to(150.0)
    assert world.ended == [("b", 150.0)]
    assert world.figures.unauthenticated == (1 if leaves == "excuse" else 0)


def test_an_evicted_client_is_removed_from_the_count_once() -> None:
    world = World(max_unauthenticated_connections=2)
    assert world.pending.add("a", "10.0.0.1") is None
    assert world.pending.add("b", "10.0.0.1") is None
    assert world.pending.add("c", "10.0.0.2") == "a"
    assert world.figures.unauthenticated == len(world.pending) == 2
    assert world.pending.take_first() == "b"
    world.pending.remove("b")
    assert world.figures.unauthenticated == len(world.pending) == 1
    world.clock.go_to(1000.0)
    assert world.ended == [("c", 130.0)]
    assert world.pending.take_first() is None
