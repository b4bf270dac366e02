"""A reader of a topic for code that blocks: the tasks of workers, and a thread of the driver.

Its event loop runs only while somebody waits for it. A thread for the loop alone would take a worker a tenth
more time, for the lock of the interpreter that both want.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from kustos.client.topics import Fetched, TopicDescription, TopicReader
from kustos.pipeline.run.topic.settings import TopicSettings

T = TypeVar("T")


class BlockingReader:
    """A `TopicReader` whose methods block; raises what it raises, and `SettingsError`.

    For one thread at a time, whose own event loop does not run; `interrupt` is for any.
    """

    def __init__(self, settings: TopicSettings, topic_id: str | None = None) -> None:
        self._reader: Final = TopicReader(
            settings.client_settings(), settings.topic, settings.fetch_limits(), topic_id=topic_id
        )
        self._loop: Final = asyncio.new_event_loop()

    def describe(self) -> TopicDescription:
        """Return the topic as a broker knows it now."""
        return self._run(self._reader.describe())

    def first_offsets(self) -> dict[int, int]:
        """Return partition -> the first offset that was not deleted."""
        return self._run(self._reader.first_offsets(self.describe().partitions))

    def end_offsets(self) -> dict[int, int]:
        """Return partition -> the offset after the last committed record."""
        return self._run(self._reader.end_offsets(self.describe().partitions))

    def fetch(self, partition: int, offset: int) -> Fetched:
        """Return committed records of a partition from the batch that holds `offset` on."""
        return self._run(self._reader.fetch(partition, offset))

    def begin_fetch(self, partition: int, offset: int) -> "asyncio.Task[Fetched]":
        """Send the request of a fetch, whose answer comes while something else is done; see `end_fetch`."""
        fetching = self._loop.create_task(self._reader.fetch(partition, offset))
        self._run(asyncio.sleep(0))
        return fetching

    def end_fetch(self, fetching: "asyncio.Task[Fetched]") -> Fetched:
        """Return what a fetch brings."""
        return self._loop.run_until_complete(fetching)

    def wait(self, fetching: "asyncio.Task[Fetched]") -> None:
        """Return when a fetch has ended, whatever it brings: its time is counted also while nobody waits."""
        self._run(asyncio.wait([fetching]))

    def give_up(self, fetching: "asyncio.Task[Fetched]") -> None:
        """End a fetch that nobody wants any more."""
        if not self._loop.is_closed():
            fetching.cancel()
            self.wait(fetching)
        if fetching.done() and not fetching.cancelled():
            fetching.exception()  # nobody asks for it, which asyncio would log

    def interrupt(self) -> None:
        """Let a call that another thread is in end with `CancelledError`."""
        for task in asyncio.all_tasks(self._loop):
            self._loop.call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """Close the connections; nothing may be asked any more."""
        self._run(self._reader.close())
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._run(asyncio.wait(tasks))
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)
