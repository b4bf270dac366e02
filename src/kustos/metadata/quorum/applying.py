"""What is committed becomes the image: the same replay as of the embedded log, fed by a quorum.

One builder lives as long as the log is followed, for a metadata transaction (KIP-868) may begin in one
batch and end in a later one.
"""

from collections.abc import Iterator
from typing import Final

from kustos.metadata.errors import RecordError
from kustos.metadata.image import EMPTY_IMAGE, ImageBuilder, MetadataDelta, MetadataImage
from kustos.metadata.log.snapshot import snapshot_batches
from kustos.metadata.quorum.values import Committed, SnapshotFetched
from kustos.metadata.records import MetadataRecord, decode_record
from kustos.wire.record_batch import RecordBatch


class CommittedImage:
    """The image of all that was applied so far. After an error it is not to be used any more."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self._builder = ImageBuilder()

    @property
    def in_transaction(self) -> bool:
        """Whether records are held back until a metadata transaction ends."""
        return self._builder.in_transaction

    def apply(self, committed: Committed) -> MetadataDelta:
        """Apply committed batches; return what they changed, one delta for all of them.

        Raise `RecordError` or `ReplayError` where they cannot be.
        """
        changes = self._builder.replay_all(
            record for batch in committed.batches for record in records_from(batch, committed.from_offset)
        )
        last_offset = committed.end_offset - 1
        self.image = self._builder.build(last_offset, committed.epoch)
        return MetadataDelta(last_offset, committed.epoch, changes)

    def replace(self, fetched: SnapshotFetched) -> MetadataImage:
        """Put a snapshot in the place of everything; raise `MetadataError` where it cannot be."""
        builder: Final = ImageBuilder()
        for batch in snapshot_batches(fetched.data, fetched.snapshot_id.file_name):
            builder.replay_all(records_from(batch, 0))
        self._builder = builder
        self.image = builder.build(fetched.snapshot_id.end_offset - 1, fetched.snapshot_id.epoch)
        return self.image


def records_from(batch: RecordBatch, offset: int) -> Iterator[MetadataRecord]:
    """Yield the metadata records of a batch from this offset on; a control batch has none."""
    if batch.is_control:
        return
    for record in batch.records:
        if batch.base_offset + record.offset_delta >= offset:
            if record.value is None:
                raise RecordError(f"the record at offset {batch.base_offset + record.offset_delta} is empty")
            yield decode_record(record.value)
