"""Every transition of a link and of its requests happens, over a real socket pair."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kustos.gateway.upstream import link as link_module
from kustos.gateway.upstream.life_cycles import (
    LINK_LIFE,
    REQUEST_LIFE,
    LinkEvent,
    LinkState,
    RequestEvent,
    RequestState,
)
from kustos.gateway.upstream.link import Awaited
from testkit.gateway.life_rows import Row, recorded_rows
from testkit.gateway.link_scene import REFUSED, LinkScene, SkippingLoop

Step = Callable[[LinkScene], Awaitable[object]]

LONG_MS = 60_000
OWED = {
    LinkEvent.THROTTLES,
    LinkEvent.CLIENT_LEAVES_OWED,
    LinkEvent.REQUEST_FORBIDDEN,
    LinkEvent.CONNECTION_LOST_OWED,
}
"""Events that need an answer that the broker owes."""

AFTER_LOGIN = (LinkState.OPEN, LinkEvent.LOGIN_FAILS)
"""The row of an internal error after a successful login."""


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """The rows that links and requests take."""
    return recorded_rows(monkeypatch)


def name_of(row: Row) -> str:
    state, event = row
    return f"{state.name}-{event.name}"


def played(story: Step) -> None:
    """Play a story; at its end no timer is left."""

    async def play() -> None:
        scene = await LinkScene.open()
        try:
            await story(scene)
            await come_to_an_end(scene)
        finally:
            scene.end()

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(play())


async def come_to_an_end(scene: LinkScene) -> None:
    """Let the connection end, whatever state the link is in."""
    scene.leave()
    await scene.hang_up()
    if scene.link.is_cut:
        scene.link.forget()
    await scene.settle()
    assert scene.link.state is LinkState.CLOSED
    assert scene.ended == 1
    assert scene.failures == []
    assert scene.links == set()
    assert scene.loop.pending_timers() == []


# how a link comes into a state; `is_owed`: with an answer that the broker still owes


async def reach(scene: LinkScene, state: LinkState, is_owed: bool) -> None:
    await REACHED[state](scene, is_owed)
    assert scene.link.state is state
    assert bool(scene.links) is (is_owed or state is LinkState.RENEWING)


async def be_open(scene: LinkScene, is_owed: bool) -> None:
    if is_owed:
        scene.send(at_once=True)
        await scene.settle()


async def be_throttled(scene: LinkScene, is_owed: bool) -> None:
    scene.send(at_once=True)
    if is_owed:
        scene.send(at_once=True)
    await scene.settle()
    await scene.answer(LONG_MS)


async def be_due(scene: LinkScene, is_owed: bool) -> None:
    await be_open(scene, is_owed)
    await scene.fall_due()


async def be_renewing(scene: LinkScene, is_owed: bool) -> None:
    assert not is_owed
    await be_due(scene, is_owed)
    scene.send()
    await scene.settle()
    assert len(scene.logins) == 1


async def be_draining(scene: LinkScene, is_owed: bool) -> None:
    await be_open(scene, is_owed)
    scene.leave()


async def be_cut(scene: LinkScene, is_owed: bool) -> None:
    await be_open(scene, is_owed)
    scene.link.revoke()


async def be_lost(scene: LinkScene, is_owed: bool) -> None:
    await be_cut(scene, is_owed)
    await scene.settle()


async def be_closed(scene: LinkScene, is_owed: bool) -> None:
    await be_lost(scene, is_owed=True)
    scene.link.forget()


REACHED: dict[LinkState, Callable[[LinkScene, bool], Awaitable[None]]] = {
    LinkState.OPEN: be_open,
    LinkState.THROTTLED: be_throttled,
    LinkState.DUE: be_due,
    LinkState.RENEWING: be_renewing,
    LinkState.DRAINING: be_draining,
    LinkState.FINISHING: be_draining,
    LinkState.CUT: be_cut,
    LinkState.LOST: be_lost,
    LinkState.CLOSED: be_closed,
}


# what causes each event


async def leave(scene: LinkScene) -> None:
    scene.leave()


async def forbid(scene: LinkScene) -> None:
    scene.forbidden.update(range(len(scene.requests)))
    future = scene.link.until_answered()
    scene.link.revoke()
    assert future is not None
    assert not future.done(), "a request at the broker counts until the broker has proven that it is alive"


async def end_connection(scene: LinkScene) -> None:
    if scene.link.state is not LinkState.CUT:
        await scene.hang_up()
    await scene.settle()


async def lose_network(scene: LinkScene) -> None:
    if scene.link.state is LinkState.CUT:
        await scene.settle()
    else:
        await scene.lose_network()


async def forget(scene: LinkScene) -> None:
    scene.link.forget()


async def find_due(scene: LinkScene) -> None:
    scene.send()


CAUSED: dict[LinkEvent, Step] = {
    LinkEvent.THROTTLES: lambda scene: scene.answer(LONG_MS),
    LinkEvent.UNTHROTTLES: lambda scene: scene.skip(LONG_MS / 1000),
    LinkEvent.FALLS_DUE: lambda scene: scene.fall_due(),
    LinkEvent.LOGIN_BEGINS: find_due,
    LinkEvent.LOGIN_SUCCEEDS: lambda scene: scene.answer_login(),
    LinkEvent.LOGIN_FAILS: lambda scene: scene.answer_login(REFUSED),
    LinkEvent.CLIENT_LEAVES_OWED: leave,
    LinkEvent.CLIENT_LEAVES: leave,
    LinkEvent.LAST_ANSWER_COMES: lambda scene: scene.answer(0),
    LinkEvent.DRAIN_TIMES_OUT: lambda scene: scene.skip(link_module.DRAIN_S),
    LinkEvent.REQUEST_FORBIDDEN: forbid,
    LinkEvent.PROTOCOL_BROKEN: lambda scene: scene.write(b"\xff\xff\xff\xff"),
    LinkEvent.CONNECTION_LOST_OWED: lose_network,
    LinkEvent.CONNECTION_LOST: end_connection,
    LinkEvent.FORGOTTEN: forget,
}


@pytest.mark.parametrize("row", [row for row in LINK_LIFE if row != AFTER_LOGIN], ids=name_of)
def test_every_transition_of_a_link_happens(row: tuple[LinkState, LinkEvent], taken: list[Row]) -> None:
    state, event = row
    is_owed = (
        event in OWED
        or state in {LinkState.DRAINING, LinkState.LOST}
        or row == (LinkState.CUT, LinkEvent.FORGOTTEN)
    )

    async def story(scene: LinkScene) -> None:
        await reach(scene, state, is_owed)
        taken.clear()
        await CAUSED[event](scene)
        assert row in taken
        if scene.link.state not in {LinkState.LOST, LinkState.CLOSED}:
            assert scene.link.state is LINK_LIFE[row]

    played(story)


def test_an_internal_error_after_a_login_ends_the_link(taken: list[Row]) -> None:
    async def story(scene: LinkScene) -> None:
        await be_renewing(scene, is_owed=False)
        scene.fails_next = True
        await scene.answer_login()
        assert AFTER_LOGIN in taken
        assert len(scene.lost) == 1

    played(story)


# requests


async def be_held(scene: LinkScene) -> Awaited:
    await be_throttled(scene, is_owed=False)
    return scene.send()


async def be_partial(scene: LinkScene) -> Awaited:
    scene.send()
    return scene.send()


async def be_sent(scene: LinkScene) -> Awaited:
    return scene.send()


SENT_AS: dict[RequestState, Callable[[LinkScene], Awaitable[Awaited]]] = {
    RequestState.HELD: be_held,
    RequestState.PARTIAL: be_partial,
    RequestState.SENT: be_sent,
}


async def let_begin(scene: LinkScene) -> None:
    if scene.link.state is LinkState.THROTTLED:
        await scene.skip(LONG_MS / 1000)
    else:
        await scene.answer(0)


HAPPENS: dict[RequestEvent, Step] = {
    RequestEvent.MAY_BEGIN: let_begin,
    RequestEvent.ANSWER_COMES: lambda scene: scene.answer(0),
    RequestEvent.LINK_ENDS: leave,
    RequestEvent.FORGOTTEN: end_connection,
}


@pytest.mark.parametrize("row", REQUEST_LIFE, ids=name_of)
def test_every_transition_of_a_request_happens(
    row: tuple[RequestState, RequestEvent], taken: list[Row]
) -> None:
    state, event = row
    sent_as = REQUEST_LIFE[row] if state is RequestState.NEW else state

    async def story(scene: LinkScene) -> None:
        request = await SENT_AS[sent_as](scene)
        assert request.state is sent_as
        await scene.settle()
        assert (request.correlation_id in scene.whole) is (sent_as is RequestState.SENT)
        if state is not RequestState.NEW:
            await HAPPENS[event](scene)
            assert request.state is REQUEST_LIFE[row]
        assert row in taken

    played(story)


def test_an_ending_link_accepts_no_request() -> None:
    async def story(scene: LinkScene) -> None:
        scene.leave()
        assert not scene.link.is_writable
        with pytest.raises(RuntimeError, match="takes no request"):
            scene.send()
        assert scene.links == set()

    played(story)


def test_a_second_throttle_time_outlasts_the_first() -> None:
    """The broker throttles two answers; as in Kafka's client, the end never moves closer."""

    async def story(scene: LinkScene) -> None:
        for _ in range(3):
            scene.send(at_once=True)
        await scene.settle()
        await scene.answer(10_000)
        await scene.answer(LONG_MS)
        await scene.answer(1_000)
        await scene.skip(11)
        assert scene.link.state is LinkState.THROTTLED
        assert not scene.link.is_writable
        assert not scene.link.is_provable
        await scene.skip(LONG_MS / 1000)
        assert scene.link.is_writable

    played(story)


def test_a_cut_drops_frames_that_were_not_sent() -> None:
    async def story(scene: LinkScene) -> None:
        scene.send(flushed=False)
        scene.link.revoke()
        await scene.settle()
        assert (scene.whole, scene.unread) == ([], b"")

    played(story)


def test_a_link_keeps_the_throttle_time_when_its_client_disconnects() -> None:
    async def story(scene: LinkScene) -> None:
        for _ in range(2):
            scene.send(at_once=True)
        await scene.settle()
        scene.leaves_next = True
        await scene.answer(LONG_MS)
        states = [scene.link.state]
        assert not scene.link.is_provable
        await scene.skip(link_module.DRAIN_S)
        states.append(scene.link.state)
        assert states == [LinkState.DRAINING, LinkState.LOST]
        assert not scene.link.is_provable, "the broker may still begin the second request"

    played(story)
