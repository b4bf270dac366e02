"""A link keeps the order of requests and their owed answers and leaks nothing, for any events.

Real sockets, a scripted broker, and time that can be advanced.
"""

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.gateway.upstream.life_cycles import (
    CONNECTED,
    LINK_LIFE,
    REQUEST_LIFE,
    SERVING,
    LinkEvent,
    LinkState,
    RequestState,
)
from testkit.gateway.life_rows import recorded_rows
from testkit.gateway.link_scene import REFUSED, LinkScene, SkippingLoop

EVENTS = (
    *("send", "send", "send", "send", "answer", "answer", "answer", "throttle", "throttle", "skip"),
    *("fall due", "log in", "log in", "pause", "resume", "change"),
)
ENDS = (
    "leave",
    "leave amid answer",
    "expire",
    "revoke",
    "refuse login",
    "break protocol",
    "hang up",
    "lose network",
)
AFTER = (*EVENTS, *ENDS, "wait", "forget")

UNFINISHED = {RequestState.HELD, RequestState.PARTIAL, RequestState.SENT}
AT_BROKER = {RequestState.SENT, RequestState.ANSWERED, RequestState.FORGOTTEN}
DONE = {RequestState.ANSWERED, RequestState.FORGOTTEN}

HISTORIES = st.builds(
    lambda events, end, more: [*events, end, *more],
    st.lists(st.sampled_from(EVENTS), max_size=25),
    st.sampled_from(ENDS),
    st.lists(st.sampled_from(AFTER), max_size=8),
)
NOT_REACHED = {
    # an error of ours
    (LinkState.OPEN, LinkEvent.LOGIN_FAILS),
    # two changes that wait for one broker
    (LinkState.CLOSED, LinkEvent.FORGOTTEN),
    # a login that ends between two turns of the event loop
    (LinkState.CUT, LinkEvent.FORGOTTEN),
}


class LinkHistory:
    """A link, its events, and the invariants after each event."""

    def __init__(self, scene: LinkScene, random: Random) -> None:
        self.scene = scene
        self.random = random
        self.futures: dict[int, asyncio.Future[None]] = {}
        """The waits of ACL changes, by the correlation id of the last request that they forbid."""
        self.never_sent: set[int] = set()
        """Requests that were forbidden before the broker had them whole."""
        self.muted_until_s = 0.0
        self.received_when_cut: tuple[int, bytes] | None = None

    @property
    def has_broker(self) -> bool:
        return self.scene.far.fileno() >= 0

    async def do(self, event: str) -> None:
        """Let an event happen, if it can."""
        scene, link = self.scene, self.scene.link
        match event:
            case "send" if link.is_writable or (link.state is LinkState.THROTTLED and not scene.links):
                kind = self.random.choice(("at_once", "at_once", "waits_for_replicas", "streamed"))
                scene.send(**{kind: True})
            case "pause":
                self.random.choice((link.pause_reading, link.pause_writing))()
            case "resume":
                link.resume_reading()
                link.resume_writing()
            case "change" | "revoke":
                self.change(is_late=event == "revoke")
            case "leave" if not scene.is_over:
                scene.leave()
            case "expire":
                scene.is_expired = True
                self.never_sent.update(self.waiting)
            case "forget" if link.is_cut:
                link.forget()
            case "skip":
                await scene.skip(self.random.choice((0.01, 1, 31)))
            case "wait":
                await scene.skip(700)
            case "fall due" if link.state in {LinkState.OPEN, LinkState.THROTTLED} and not scene.is_due:
                await scene.fall_due()
            case _ if self.has_broker:
                await self.do_at_broker(event)
        await scene.settle()

    async def do_at_broker(self, event: str) -> None:
        scene = self.scene
        match event:
            case "answer" | "throttle" if scene.unanswered:
                times_ms = (100, 20_000) if event == "throttle" else (0, 0, None)
                count = self.random.randint(1, len(scene.unanswered))
                await self.answer(self.random.choices(times_ms, k=count))
            case "leave amid answer" if scene.unanswered and not scene.is_over:
                await scene.answer(0, pieces=2, amid=scene.leave)
            case "log in" | "refuse login" if scene.logins:
                await scene.answer_login(b"yes" if event == "log in" else REFUSED)
            case "break protocol":
                await scene.write(self.random.choice((b"\xff\xff\xff\xff", b"\0\0\0\4\0\0\xff\xff")))
            case "hang up":
                await scene.hang_up()
            case "lose network":
                await scene.lose_network()

    async def answer(self, times_ms: list[int | None]) -> None:
        muted_s = max(time_ms or 0 for time_ms in times_ms) / 1000
        self.muted_until_s = max(self.muted_until_s, self.scene.loop.time() + muted_s)
        await self.scene.answer(*times_ms, pieces=self.random.randint(1, 4))

    @property
    def waiting(self) -> list[int]:
        """The requests that the broker does not have whole."""
        states = {RequestState.HELD, RequestState.PARTIAL}
        return [each.correlation_id for each in self.scene.requests if each.state in states]

    def change(self, *, is_late: bool) -> None:
        """Forbid the last requests; wait for those at the broker, and end the link if they are late."""
        scene = self.scene
        numbers = range(len(scene.requests))
        scene.forbidden.update(numbers[-self.random.randint(1, 3) :] if is_late else numbers[-1:])
        self.never_sent |= scene.forbidden.intersection(self.waiting)
        future = scene.link.until_answered()
        at_broker = [each.correlation_id for each in scene.requests if each.state is RequestState.SENT]
        awaited = [number for number in at_broker if number in scene.forbidden]
        assert bool(awaited) is (future is not None)
        if future is not None:
            self.futures[awaited[-1]] = future
            if is_late:
                scene.link.revoke()

    def check(self) -> None:
        """Assert the invariants."""
        scene, link = self.scene, self.scene.link
        unfinished = [each for each in scene.requests if each.state in UNFINISHED]
        sent = [each.correlation_id for each in unfinished if each.state is RequestState.SENT]
        # the order is kept, and owed answers stay owed
        assert list(link._awaited) == unfinished
        assert len(unfinished) - len(sent) <= 1
        assert scene.links == ({link} if unfinished else set())
        assert scene.whole == sorted(set(scene.whole))
        assert scene.taken == sorted(set(scene.taken))
        assert all(scene.requests[number].state is RequestState.ANSWERED for number in scene.taken)
        # the broker has exactly the bytes that count as sent
        assert all(scene.requests[number].state in AT_BROKER for number in scene.whole)
        assert self.never_sent.isdisjoint(scene.whole)
        if link.state in CONNECTED and self.has_broker:
            assert set(sent) <= set(scene.whole)
        # nothing is sent after a cut
        received = len(scene.whole), scene.unread
        if self.received_when_cut is None and link.state not in CONNECTED:
            self.received_when_cut = received
        assert self.received_when_cut in {None, received}
        # a change waits until the broker is done, and no longer
        assert all(
            future.done() is (scene.requests[number].state in DONE) for number, future in self.futures.items()
        )
        if scene.unanswered and sent and scene.loop.time() < self.muted_until_s:
            assert not link.is_provable
        # the state is consistent
        assert (link.state in SERVING) is not scene.is_over
        assert scene.ended == (link.state in {LinkState.LOST, LinkState.CLOSED})
        if link.state in SERVING:
            assert (link.state is LinkState.THROTTLED) is (link._unthrottle_timer is not None)
        if link.state is LinkState.RENEWING:
            assert [each.state for each in unfinished] == [RequestState.HELD]

    async def come_to_an_end(self) -> None:
        scene = self.scene
        scene.leave()
        if self.has_broker:
            await scene.hang_up()
        await scene.settle()
        if scene.link.is_cut:
            scene.link.forget()
        await scene.settle()
        self.check()
        assert scene.link.state is LinkState.CLOSED
        assert scene.ended == 1
        assert scene.failures == []
        assert all(future.done() for future in self.futures.values())
        assert all(each.state not in UNFINISHED for each in scene.requests)
        assert scene.loop.pending_timers() == []


def played(seed: int, events: list[str]) -> None:
    async def play() -> None:
        scene = await LinkScene.open()
        history = LinkHistory(scene, Random(seed))
        for event in events:
            await history.do(event)
            history.check()
        await history.come_to_an_end()
        scene.end()

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(play())


@given(seed=st.integers(0, 2**32), events=HISTORIES)
@settings(max_examples=200, deadline=None)
def test_a_link_ends_correctly_after_any_events(seed: int, events: list[str]) -> None:
    played(seed, events)


def play_many(count: int) -> None:
    for seed in range(count):
        random = Random(seed)
        events = random.choices(EVENTS, k=random.randint(0, 25))
        played(seed, [*events, random.choice(ENDS), *random.choices(AFTER, k=8)])


def test_histories_reach_nearly_every_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = recorded_rows(monkeypatch)
    play_many(800)
    assert {*LINK_LIFE, *REQUEST_LIFE} - set(rows) <= NOT_REACHED
