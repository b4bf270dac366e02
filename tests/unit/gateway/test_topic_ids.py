"""Resolving topic ids: small queries, in turns, and names that expire with their topics."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.upstream import topic_ids
from kustos.gateway.upstream.cluster import UpstreamUnavailableError
from kustos.gateway.upstream.topic_ids import IDS_PER_QUERY, IDS_PER_TURN, TopicIds

FAILURE_S = 60
"""How long a test that fails may hang."""


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


class Upstream:
    """Answers a query when the test allows it; `topics` are the existing ones."""

    def __init__(self, topics: dict[bytes, str]) -> None:
        self.topics = topics
        self.questions: list[list[bytes]] = []
        self.at_once = 0
        self.is_down = False
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Semaphore(1_000_000)

    async def ask(self, ids: Collection[bytes]) -> dict[bytes, str]:
        self.questions.append(list(ids))
        self.at_once += 1
        assert self.at_once == 1, "a question while another is under way"
        self.is_asked.set()
        await self.may_answer.acquire()
        self.at_once -= 1
        if self.is_down:
            raise UpstreamUnavailableError("down")
        return {each: self.topics[each] for each in ids if each in self.topics}


TOPICS = {topic_id(number): f"topic-{number}" for number in range(0, 60, 2)}


@given(
    st.lists(st.frozensets(st.integers(0, 120).map(topic_id)), min_size=1, max_size=8),
    st.frozensets(st.integers(0, 120).map(topic_id)),
)
def test_each_caller_gets_the_known_names_of_its_ids(
    wanted: list[frozenset[bytes]], known_before: frozenset[bytes]
) -> None:
    async def scene() -> None:
        upstream = Upstream(TOPICS)
        ids = TopicIds(upstream.ask)
        await ids.resolve(known_before)
        upstream.questions.clear()
        found = await asyncio.gather(*(ids.resolve(each) for each in wanted))
        assert found == [{each: TOPICS[each] for each in some if each in TOPICS} for some in wanted]
        assert all(len(question) <= IDS_PER_QUERY for question in upstream.questions)
        asked = [each for question in upstream.questions for each in question]
        assert len(asked) == len(set(asked)), "an id was asked for twice"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(topic_ids, "UNKNOWN_TOPIC_ID_TTL_S", FAILURE_S)
        asyncio.run(scene())


@given(st.integers(1, 40), st.integers(1, IDS_PER_TURN))
def test_a_small_query_does_not_wait_for_a_flood(floods: int, few: int) -> None:
    """A caller has its turn after one turn of each other caller, however many ids they request."""

    async def scene() -> None:
        upstream = Upstream({})
        upstream.may_answer = asyncio.Semaphore(0)
        ids = TopicIds(upstream.ask)
        flooding = [
            asyncio.ensure_future(ids.resolve([topic_id(1000 * (1 + flood) + n) for n in range(900)]))
            for flood in range(floods)
        ]
        await upstream.is_asked.wait()
        mine = asyncio.ensure_future(ids.resolve([topic_id(n) for n in range(few)]))
        await asyncio.sleep(0)
        for _ in range(2 + floods * IDS_PER_TURN // IDS_PER_QUERY):
            upstream.may_answer.release()
        async with asyncio.timeout(FAILURE_S):
            assert await mine == {}
        assert not any(flood.done() for flood in flooding)
        for flood in flooding:
            flood.cancel()

    asyncio.run(scene())


async def test_the_name_of_a_deleted_topic_is_used_until_it_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the shortest of times, which a busy machine spends between two lines
    monkeypatch.setattr(topic_ids, "UNKNOWN_TOPIC_ID_TTL_S", FAILURE_S)
    upstream = Upstream(dict(TOPICS))
    ids = TopicIds(upstream.ask)
    gone, kept = topic_id(2), topic_id(4)
    both = {gone: "topic-2", kept: "topic-4"}
    assert await ids.resolve(both) == both
    del upstream.topics[gone]
    upstream.topics[topic_id(200)] = "topic-2"  # recreated under the same name
    assert ids.known(both) == both, "within the time no question is asked"
    assert len(upstream.questions) == 1
    monkeypatch.setattr(topic_ids, "NAME_TTL_S", 0)
    ids.learn(both, ())
    assert ids.known(both) == both
    assert await ids.resolve([topic_id(200)]) == {topic_id(200): "topic-2"}
    assert ids.known([gone]) == {}, "unknown, without another question"
    assert ids.known([kept]) == {kept: "topic-4"}


async def test_an_unanswered_query_fails_its_waiters_and_no_later_caller() -> None:
    upstream = Upstream(TOPICS)
    upstream.is_down = True
    ids = TopicIds(upstream.ask)
    many = [topic_id(number) for number in range(100)]
    failed = await asyncio.gather(ids.resolve(many), ids.resolve(TOPICS), return_exceptions=True)
    assert [type(each) for each in failed] == [UpstreamUnavailableError] * 2
    upstream.is_down = False
    assert await ids.resolve(TOPICS) == TOPICS


async def test_a_name_in_use_survives_an_upstream_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Upstream(TOPICS)
    ids = TopicIds(upstream.ask)
    await ids.resolve(TOPICS)
    upstream.is_down = True
    monkeypatch.setattr(topic_ids, "NAME_TTL_S", 0)
    ids.learn(TOPICS, ())
    for _ in range(3):
        upstream.is_asked.clear()
        assert ids.known(TOPICS) == TOPICS
        await upstream.is_asked.wait()


async def test_ids_of_a_canceled_caller_are_not_queried() -> None:
    upstream = Upstream(TOPICS)
    upstream.may_answer = asyncio.Semaphore(0)
    ids = TopicIds(upstream.ask)
    gone = asyncio.ensure_future(ids.resolve([topic_id(number) for number in range(1000)]))
    await upstream.is_asked.wait()
    gone.cancel()
    upstream.may_answer.release()
    upstream.may_answer.release()
    assert await ids.resolve([topic_id(2000)]) == {}
    assert len(upstream.questions) == 2


async def test_the_caches_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits cost queries, never answers."""
    monkeypatch.setattr(topic_ids, "TOPIC_IDS_MAX", 7)
    monkeypatch.setattr(topic_ids, "UNKNOWN_TOPIC_IDS_MAX", 5)
    monkeypatch.setattr(topic_ids, "IDS_PER_QUERY", 3)
    ids: Any = TopicIds(Upstream(TOPICS).ask)
    every = [topic_id(number) for number in range(60)]
    for _ in range(2):
        assert await ids.resolve(every) == TOPICS
        assert len(ids._names) <= 7
        assert len(ids._unknown) <= 5
