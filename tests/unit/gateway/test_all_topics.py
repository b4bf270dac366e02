"""The names of all topics: read by pages, shared by all callers, refreshed while they are in use."""

import asyncio

import pytest

from kustos.gateway.upstream import all_topics
from kustos.gateway.upstream.all_topics import REFRESH_S, STALE_S, AllTopicNames, Cursor, EndlessListError
from kustos.gateway.upstream.cluster import UpstreamUnavailableError


class Upstream:
    """Answers with pages of two topics; `names` is what there is."""

    def __init__(self, *names: str) -> None:
        self.names = sorted(names)
        self.pages = 0
        self.is_down = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def page(self, cursor: Cursor | None) -> tuple[list[str], Cursor | None]:
        self.pages += 1
        await self.may_answer.wait()
        if self.is_down:
            raise UpstreamUnavailableError("down")
        left = [name for name in self.names if cursor is None or name >= cursor[0]]
        # a page may end inside a topic, which then continues on the next page
        return left[:2], (left[1], 1) if len(left) > 2 else None


class Clock:
    """A loop's time that is put forward."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.real, self.ahead_s = self.loop.time, 0.0
        self.loop.time = lambda: self.real() + self.ahead_s  # type: ignore[method-assign]


async def test_all_pages_are_read_and_names_are_unique() -> None:
    upstream = Upstream("a", "b", "c", "d", "e")
    topics = AllTopicNames(upstream.page)
    assert topics.known() is None
    assert (await topics.learn()).names == ("a", "b", "c", "d", "e")
    assert upstream.pages > 2
    known = topics.known()
    assert known is not None
    assert known.names == ("a", "b", "c", "d", "e")


async def test_concurrent_callers_share_one_query() -> None:
    upstream = Upstream("a", "b")
    topics = AllTopicNames(upstream.page)
    upstream.may_answer.clear()
    asked = [asyncio.ensure_future(topics.learn()) for _ in range(5)]
    await asyncio.sleep(0)
    asked[0].cancel()  # one client goes
    upstream.may_answer.set()
    found = await asyncio.gather(*asked[1:])
    assert upstream.pages == 1
    assert len(set(map(id, found))) == 1


async def test_stale_names_are_returned_while_they_are_refreshed() -> None:
    upstream, clock = Upstream("a"), Clock()
    topics = AllTopicNames(upstream.page)
    first = await topics.learn()
    upstream.names.append("b")
    assert topics.known() is first
    clock.ahead_s = REFRESH_S
    assert topics.known() is first
    await topics.learn()
    second = topics.known()
    assert second is not None
    assert second.names == ("a", "b")


async def test_names_that_are_the_same_are_the_same_object() -> None:
    upstream, clock = Upstream("a"), Clock()
    topics = AllTopicNames(upstream.page)
    first = await topics.learn()
    clock.ahead_s = REFRESH_S
    assert await topics.learn() is first


async def test_an_unavailable_upstream_is_noticed_after_a_while() -> None:
    upstream, clock = Upstream("a"), Clock()
    topics = AllTopicNames(upstream.page)
    first = await topics.learn()
    upstream.is_down = True
    clock.ahead_s = REFRESH_S
    assert topics.known() is first
    with pytest.raises(UpstreamUnavailableError):
        await topics.learn()
    clock.ahead_s = STALE_S
    assert topics.known() is None
    with pytest.raises(UpstreamUnavailableError):
        await topics.learn()
    upstream.is_down = False
    assert (await topics.learn()).names == ("a",)


async def test_endless_pages_are_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_topics, "PAGES_MAX", 7)
    asked = []

    async def page(cursor: Cursor | None) -> tuple[list[str], Cursor | None]:
        asked.append(cursor)
        return ["a"], ("a", 1)

    with pytest.raises(EndlessListError):
        await AllTopicNames(page).learn()
    assert len(asked) == 7
