"""A topic as the driver sees it: its identity, its partitions, and where they begin and end.

The driver may be a notebook, whose thread has an event loop of its own that runs already. So the reader has a
thread.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from kustos.client import KafkaError
from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.run.topic.blocking_reader import BlockingReader
from kustos.pipeline.run.topic.failures import kafka_errors
from kustos.pipeline.run.topic.settings import TopicSettings

OUT_OF_RANGE: Final = "OFFSET_OUT_OF_RANGE"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """A cluster's id and a topic's id in it, as Kafka writes them; None if its brokers have no such ids."""

    cluster_id: str
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class Topic:
    """Asks the brokers about a topic, again and again on the same connections.

    Every method raises `KafkaInputError`, also for a topic that was recreated since the first.
    """

    settings: TopicSettings
    reader: BlockingReader
    thread: ThreadPoolExecutor

    def identity(self) -> TopicIdentity:
        """Return the identity of the topic."""
        found = self._ask(self.reader.describe)
        if found.cluster_id is None:
            raise KafkaInputError(f"the brokers at `{self.settings.bootstrap_servers}` report no cluster id")
        return TopicIdentity(found.cluster_id, found.topic_id)

    def first_offsets(self) -> dict[int, int]:
        """Return for each partition the offset of the first record that it still has."""
        return self._ask(self.reader.first_offsets)

    def end_offsets(self) -> dict[int, int]:
        """Return for each partition the offset after the last committed record."""
        return self._ask(self.reader.end_offsets)

    def check_readable(self) -> None:
        """Return if its records may be read: READ is more than DESCRIBE."""
        first, ends = self.first_offsets(), self.end_offsets()
        if not first:
            raise KafkaInputError(f"topic `{self.settings.topic}` has no partitions, create it anew")
        # where there are records: at the end of a partition a broker would wait for some
        partition = max(first, key=lambda number: ends.get(number, 0) - first[number])

        def fetch() -> None:
            try:
                self.reader.fetch(partition, first[partition])
            except KafkaError as error:
                # retention has gone on since
                if error.name != OUT_OF_RANGE:
                    raise

        self._ask(fetch)

    def _ask(self, ask: Callable[[], T]) -> T:
        with kafka_errors(self.settings):
            return self.thread.submit(ask).result()


@contextmanager
def open_topic(settings: TopicSettings) -> Iterator[Topic]:
    """Yield a topic that is there and may be read; raise `KafkaInputError` for any other."""
    with kafka_errors(settings):
        reader = BlockingReader(settings)
    with ThreadPoolExecutor(1, "topic") as thread:
        topic = Topic(settings, reader, thread)
        try:
            topic.check_readable()
            yield topic
        finally:
            # after Ctrl-C the thread is still at work
            reader.interrupt()
            thread.submit(reader.close).result()
