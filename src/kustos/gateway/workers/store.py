"""The metadata in a worker: it stands where the store stands for those who read, and follows the writer.

Everything happens on the event loop, in the order in which the writer sent it.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final

from kustos.metadata.bulk_acls import BulkAcls
from kustos.metadata.control import TokenRules
from kustos.metadata.image import (
    EMPTY_IMAGE,
    ImageBuilder,
    MetadataDelta,
    MetadataImage,
    MetadataPublisher,
)
from kustos.metadata.log import MetaProperties
from kustos.metadata.records import decode_record
from kustos.runtime import collector_at_rest
from kustos.wire.record_batch import read_batch, read_raw_batch


class WorkerStore:
    """The image as far as the writer told it, and its publishers. Not to be used further after an error."""

    def __init__(self, properties: MetaProperties, token_rules: TokenRules) -> None:
        self.properties: Final = properties
        self.token_rules: Final = token_rules
        self.image: MetadataImage = EMPTY_IMAGE
        self._loading = ImageBuilder()
        self._bulk = BulkAcls()
        self._is_loading = False
        self._at_rest: Final = ExitStack()
        self._publishers: Final[list[MetadataPublisher]] = []

    @property
    def last_offset(self) -> int:
        """The offset of the last record that was applied."""
        return self.image.offset

    def add_publisher(self, publisher: MetadataPublisher) -> None:
        """Hand the publisher the present image now and every delta from here on."""
        publisher.publish_snapshot(self.image)
        self._publishers.append(publisher)

    def take_records(self, batch: bytes) -> None:
        """Take some of the image to begin with.

        Raise `MetadataError` or `CorruptBatchError` where this is no batch of such records.
        """
        if not self._is_loading:
            self._is_loading = True
            # until all of it is there
            self._at_rest.enter_context(collector_at_rest())
        acls = self._bulk.read(read_raw_batch(batch))
        if acls is None:
            values = [each.value or b"" for each in read_batch(batch)[0].records]
            self._loading.replay_all(map(decode_record, values))
        else:
            self._loading.add_acls(acls)

    def loaded(self, offset: int, epoch: int) -> None:
        """That was all of it."""
        self.image = self._loading.build(offset, epoch)
        self._loading = ImageBuilder()
        # what it remembers is not needed again
        self._bulk = BulkAcls()
        self._at_rest.close()

    def apply(self, offset: int, epoch: int, values: Iterable[bytes]) -> None:
        """Apply a batch of the log; raise `MetadataError` where it cannot be."""
        builder = ImageBuilder(self.image)
        changes = builder.replay_all(map(decode_record, values))
        self.image = builder.build(offset, epoch)
        delta = MetadataDelta(offset, epoch, changes)
        for publisher in self._publishers:
            publisher.publish_delta(delta)

    def close(self) -> None:
        """Let the garbage collector go on, where the image never came to its end."""
        self._at_rest.close()
