"""Resolves topic ids to names with small requests to upstream, which the waiting callers share in turns.

Theory of operation. Any client may name thousands of unknown ids, and a broker's time for a request grows
with the square of the number of unknown ids (Kafka 4.3.1 keeps the topics of its answer in a hash table by
name, and unknown ids have no name: 250 take 10 ms, 2,000 take 3 s). Therefore one small request is in flight
at a time, with a few ids of each caller: a caller with many ids waits long, but does not delay others. A name
that was just received is not requested again.

An id never changes its meaning, but its topic may be deleted. A name in use is therefore refreshed
periodically. Until the refresh, a deleted topic is denied to clients that may not read it, as before; the
others get upstream's answer that it is gone.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.client import one_shot

TOPIC_IDS_MAX: Final = 500_000
"""The maximum number of names kept, more than a cluster has topics: beyond it, all are dropped and requested
again."""

NAME_TTL_S: Final = 60.0
"""The age at which a name in use is refreshed. The answer describes all partitions of a topic, so refreshes
are not cheap."""

UNKNOWN_TOPIC_ID_TTL_S: Final = 0.1
"""How long an id counts as unknown before it is requested again: new topics must be seen soon."""

UNKNOWN_TOPIC_IDS_MAX: Final = 20_000
"""The maximum number of ids remembered as unknown, as many as one request may hold: a client can invent
them."""

IDS_PER_QUERY: Final = 25
"""The number of ids in one request: a broker answers in a millisecond if it knows none of them; if it knows
all, it reads their partitions in some 20 ms."""

IDS_PER_TURN: Final = 5
"""The number of ids of one caller in a request, before the next caller's turn."""

QueryNames = Callable[[Collection[bytes]], Awaitable[Mapping[bytes, str]]]
"""Topic ids → the names of those that upstream knows; raises `UpstreamUnavailableError`."""


@dataclass(slots=True, eq=False)
class _WaitingQuery:
    """A waiting caller: the ids still to request, those in flight, and the names found."""

    left: deque[bytes]
    done: asyncio.Future[dict[bytes, str]]
    requested: list[bytes] = field(default_factory=list)
    found: dict[bytes, str] = field(default_factory=dict)


class TopicIds:
    """The names of topic ids, for one event loop. `query` queries upstream."""

    def __init__(self, query: QueryNames) -> None:
        self._query: Final = query
        self._now_s: Final = time.monotonic
        self.known_ids = 0
        """The number of ids whose names were known when a request named them, since the start."""
        self.queried_ids = 0
        """The number of ids for which upstream was queried, since the start."""
        self._names: dict[bytes, tuple[str, float]] = {}
        """Topic id → its name and the time from which the name is refreshed."""
        self._unknown: dict[bytes, float] = {}
        """Topic id → the time until which it counts as unknown."""
        self._queue: deque[_WaitingQuery] = deque()
        self._callers: Final[set[_WaitingQuery]] = set()
        """All callers that wait, including those whose ids are being queried."""
        self._doubted: dict[bytes, None] = {}
        self._querying: asyncio.Task[None] | None = None

    def known(self, topic_ids: Iterable[bytes]) -> dict[bytes, str] | None:
        """Return the names of these ids; None if upstream must be queried."""
        now = self._now_s()
        found: dict[bytes, str] = {}
        for topic_id in topic_ids:
            kept = self._names.get(topic_id)
            if kept is not None:
                found[topic_id], again_at = kept
                if now >= again_at:
                    self._doubt(topic_id, now)
            elif now >= self._unknown.get(topic_id, 0.0):
                return None
        self.known_ids += len(found)
        return found

    async def resolve(self, topic_ids: Iterable[bytes]) -> dict[bytes, str]:
        """Return the names of the ids that upstream knows; raise `UpstreamUnavailableError`."""
        waiting = _WaitingQuery(deque(topic_ids), asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._callers.add(waiting)
        try:
            self._start_querying()
            return await waiting.done
        finally:
            self._callers.discard(waiting)

    def learn(self, named: Mapping[bytes, str], requested: Iterable[bytes]) -> None:
        """Keep these names, and record that the other requested ids have no name."""
        now = self._now_s()
        if len(self._names) + len(named) > TOPIC_IDS_MAX:
            self._names.clear()
        self._names |= {topic_id: (name, now + NAME_TTL_S) for topic_id, name in named.items()}
        missing = [topic_id for topic_id in requested if topic_id not in named]
        if len(self._unknown) + len(missing) > UNKNOWN_TOPIC_IDS_MAX:
            self._unknown.clear()
        for topic_id in missing:
            self._names.pop(topic_id, None)
            self._unknown[topic_id] = now + UNKNOWN_TOPIC_ID_TTL_S

    def _doubt(self, topic_id: bytes, now: float) -> None:
        name, _ = self._names[topic_id]
        # not again at the next use, even if upstream does not answer
        self._names[topic_id] = (name, now + NAME_TTL_S)
        self._doubted[topic_id] = None
        self._start_querying()

    def _start_querying(self) -> None:
        if self._querying is None:
            self._querying = one_shot("topic-ids", self._query_in_turns(), self._fail)

    async def _query_in_turns(self) -> None:
        """Query upstream until no caller waits; a failure fails every caller."""
        try:
            while self._queue or self._doubted:
                part = self._next_part()
                topic_ids = dict.fromkeys(topic_id for waiting in part for topic_id in waiting.requested)
                while self._doubted and len(topic_ids) < IDS_PER_QUERY:
                    topic_ids[self._doubted.popitem()[0]] = None
                named: Mapping[bytes, str] = {}
                if topic_ids:
                    self.queried_ids += len(topic_ids)
                    try:
                        named = await self._query(topic_ids)
                    except Exception as error:  # noqa: BLE001 - the waiting callers handle it
                        self._fail(error)
                        continue
                    self.learn(named, topic_ids)
                for waiting in part:
                    _take(waiting, named)
        finally:
            self._querying = None

    def _next_part(self) -> list[_WaitingQuery]:
        """Return the callers with ids in the next request; those with more move to the end of the queue."""
        now = self._now_s()
        part: dict[_WaitingQuery, None] = {}
        room = IDS_PER_QUERY
        while self._queue and room > 0:
            waiting = self._queue.popleft()
            if waiting.done.done():
                continue  # its caller was cancelled
            turn = min(IDS_PER_TURN, room)
            while waiting.left and turn:
                topic_id = waiting.left.popleft()
                kept = self._names.get(topic_id)
                if kept is not None:
                    waiting.found[topic_id] = kept[0]
                elif now >= self._unknown.get(topic_id, 0.0):
                    waiting.requested.append(topic_id)
                    turn -= 1
                    room -= 1
            part[waiting] = None
            if waiting.left:
                self._queue.append(waiting)
        return list(part)

    def _fail(self, error: BaseException) -> None:
        self._queue.clear()
        self._doubted.clear()
        for waiting in self._callers:
            if not waiting.done.done():
                waiting.done.set_exception(error)


def _take(waiting: _WaitingQuery, named: Mapping[bytes, str]) -> None:
    """Record the names found for a caller; a caller without remaining ids continues."""
    waiting.found |= {topic_id: named[topic_id] for topic_id in waiting.requested if topic_id in named}
    waiting.requested.clear()
    if not waiting.left and not waiting.done.done():
        waiting.done.set_result(waiting.found)
