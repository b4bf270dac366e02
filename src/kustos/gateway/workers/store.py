"""The metadata in a worker: it stands in for the store when reading, and follows the writer.

Everything happens in the order in which the writer sent it, and on the event loop unless it takes long.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from kustos.metadata.control import TokenRules
from kustos.metadata.directory import BulkAcls
from kustos.metadata.image import (
    EMPTY_IMAGE,
    ImageBuilder,
    MetadataDelta,
    MetadataImage,
    MetadataPublisher,
)
from kustos.metadata.log import MetaProperties
from kustos.metadata.records import MetadataRecord, decode_record
from kustos.runtime import garbage_collection_paused
from kustos.wire import read_batch, read_raw_batch


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A prepared batch of the log: the image after it, and its changes."""

    image: MetadataImage
    delta: MetadataDelta


class WorkerStore:
    """The image as received from the writer, and its publishers. Unusable after an error."""

    def __init__(self, properties: MetaProperties, token_rules: TokenRules) -> None:
        self.properties: Final = properties
        self.token_rules: Final = token_rules
        self.image: MetadataImage = EMPTY_IMAGE
        self.steps = 0
        """Records of batches worked through so far."""
        self._loading = ImageBuilder()
        self._bulk = BulkAcls()
        self._is_loading = False
        self._collector_pause: Final = ExitStack()
        self._publishers: Final[list[MetadataPublisher]] = []

    @property
    def last_offset(self) -> int:
        """The offset of the last record that was applied."""
        return self.image.offset

    def add_publisher(self, publisher: MetadataPublisher) -> None:
        """Publish the present image now and every later delta to the publisher."""
        publisher.publish_snapshot(self.image)
        self._publishers.append(publisher)

    def take_records(self, batch: bytes) -> None:
        """Take some records of the initial image.

        Raise `MetadataError` or `CorruptBatchError` if this is not a batch of such records.
        """
        if not self._is_loading:
            self._is_loading = True
            # until the image is complete
            self._collector_pause.enter_context(garbage_collection_paused())
        acls = self._bulk.read(read_raw_batch(batch))
        if acls is None:
            values = [each.value or b"" for each in read_batch(batch)[0].records]
            self._loading.replay_all(map(decode_record, values))
        else:
            self._loading.add_acls(acls)

    def loaded(self, offset: int, epoch: int) -> None:
        """Complete the initial image."""
        self.image = self._loading.build(offset, epoch)
        self._loading = ImageBuilder()
        # its cache is not needed again
        self._bulk = BulkAcls()
        self._collector_pause.close()

    def prepared(self, offset: int, epoch: int, values: Iterable[bytes]) -> PreparedBatch:
        """Return a batch of the log, prepared; raise `MetadataError` if it cannot be applied.

        May run on any thread while nothing else is put in force; `steps` counts the records meanwhile.
        """
        builder = ImageBuilder(self.image)
        changes = builder.replay_all(self._counted(map(decode_record, values)))
        return PreparedBatch(builder.build(offset, epoch), MetadataDelta(offset, epoch, changes))

    def _counted(self, records: Iterable[MetadataRecord]) -> Iterator[MetadataRecord]:
        for record in records:
            self.steps += 1
            yield record

    def put_in_force(self, batch: PreparedBatch) -> None:
        """Make the image that of a batch, and publish the delta."""
        self.image = batch.image
        for publisher in self._publishers:
            publisher.publish_delta(batch.delta)

    def close(self) -> None:
        """Let the garbage collector go on, if the image was never completed."""
        self._collector_pause.close()
