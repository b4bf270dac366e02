"""The names of all topics upstream, queried page by page and cached for some seconds, for all clients.

Members of consumer groups that subscribe by regular expression send heartbeats every few seconds, and the
list of topics changes rarely. The names are therefore queried again only while they are in use, and not more
often than Kafka's coordinator resolves expressions again. Heartbeats do not wait for the query; they get the
cached names.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from kustos.protocol import ClusterTopics

REFRESH_S: Final = 10.0
"""The age at which names in use are queried again. Kafka's coordinator has the same minimum between two
resolutions of a group's expressions (4.3.1)."""

STALE_S: Final = 60.0
"""The age at which names are no longer an answer: upstream was not reached, and the client must notice."""

PARTITIONS_PER_PAGE: Final = 1_000
"""The size of a page. A page also describes the partitions of its topics, which cannot be left out, and one
event loop iteration parses them."""

PAGES_MAX: Final = 1_000
"""The maximum number of pages of one cluster: a million partitions. It ends an answer that always has a next
page."""

Cursor = tuple[str, int]
"""The topic and the partition where the next page begins."""

QueryPage = Callable[[Cursor | None], Awaitable[tuple[list[str], Cursor | None]]]
"""Start of a page → its topics and the start of the next page; raises `UpstreamUnavailableError`."""

LOG: Final = structlog.get_logger("kustos.gateway")


class EndlessListError(Exception):
    """Upstream's list of topics does not end."""


class AllTopicNames:
    """The names of all topics, for one event loop. `query` queries upstream for a page."""

    def __init__(self, query: QueryPage) -> None:
        self._query: Final = query
        self._topics = ClusterTopics(())
        self._learnt_s: float | None = None
        self._learning: asyncio.Task[ClusterTopics] | None = None

    def known(self) -> ClusterTopics | None:
        """Return the names, None if upstream must be queried first; refresh them if they are old."""
        if self._learnt_s is None:
            return None
        age_s = asyncio.get_running_loop().time() - self._learnt_s
        if age_s >= STALE_S:
            return None
        if age_s >= REFRESH_S:
            self._begin()
        return self._topics

    async def learn(self) -> ClusterTopics:
        """Return the names after a query; raise `UpstreamUnavailableError` or `EndlessListError`."""
        # other callers wait for the same query: a caller that is cancelled must not end it
        return await asyncio.shield(self._begin())

    def _begin(self) -> asyncio.Task[ClusterTopics]:
        if self._learning is None:
            self._learning = asyncio.get_running_loop().create_task(self._learn())
            self._learning.add_done_callback(self._ended)
        return self._learning

    def _ended(self, task: asyncio.Task[ClusterTopics]) -> None:
        self._learning = None
        if not task.cancelled() and task.exception() is not None:
            # callers that wait raise the error, but there may be no caller
            LOG.warning("the topics upstream cannot be listed", reason=str(task.exception()))

    async def _learn(self) -> ClusterTopics:
        names: dict[str, None] = {}
        cursor: Cursor | None = None
        for _ in range(PAGES_MAX):
            page, cursor = await self._query(cursor)
            names |= dict.fromkeys(page)
            if cursor is None:
                break
        else:
            raise EndlessListError(f"the list of topics has more than {PAGES_MAX} pages")
        learnt = tuple(sorted(names))
        if learnt != self._topics.names:
            self._topics = ClusterTopics(learnt, self._topics.number + 1)
        self._learnt_s = asyncio.get_running_loop().time()
        return self._topics
