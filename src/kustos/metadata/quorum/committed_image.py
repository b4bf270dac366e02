"""Applies committed batches to the image: the same replay as for the embedded log, fed by a quorum.

One builder is used for the whole run, since a metadata transaction (KIP-868) may begin in one batch and end
in a later one.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kustos.metadata.errors import RecordError, ReplayError
from kustos.metadata.features import unknown_level_text
from kustos.metadata.image import EMPTY_IMAGE, FeatureLevelSet, ImageBuilder, MetadataDelta, MetadataImage
from kustos.metadata.log.snapshot import snapshot_batches
from kustos.metadata.quorum.values import Committed, SnapshotFetched
from kustos.metadata.records import MetadataRecord, decode_record
from kustos.wire import RecordBatch


class CommittedImage:
    """The image of everything applied so far. After an error it must not be used any more."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self._builder = ImageBuilder()

    @property
    def in_transaction(self) -> bool:
        """Whether records are held back until a metadata transaction ends."""
        return self._builder.in_transaction

    def apply(self, committed: Committed) -> MetadataDelta:
        """Apply committed batches; return what they changed, one delta for all of them.

        Raise `RecordError` or `ReplayError` if they cannot be applied, or if a feature is raised to an
        unknown level: Kafka's brokers and controllers stop there, too.
        """
        changes = self._builder.replay_all(
            record for batch in committed.batches for record in records_from(batch, committed.from_offset)
        )
        _require_known_levels(
            {each.name: each.level for each in changes if isinstance(each, FeatureLevelSet)}
        )
        last_offset = committed.end_offset - 1
        self.image = self._builder.build(last_offset, committed.epoch)
        return MetadataDelta(last_offset, committed.epoch, changes)

    def replace(self, fetched: SnapshotFetched) -> MetadataImage:
        """Replace everything by a snapshot; raise `MetadataError` if it is invalid."""
        builder: Final = ImageBuilder()
        for batch in snapshot_batches(fetched.data, fetched.snapshot_id.file_name):
            builder.replay_all(records_from(batch, 0))
        _require_known_levels(builder.view().features)
        self._builder = builder
        self.image = builder.build(fetched.snapshot_id.end_offset - 1, fetched.snapshot_id.epoch)
        return self.image


def _require_known_levels(features: Mapping[str, int]) -> None:
    """Raise `ReplayError` if a feature is at an unknown level; level 0 means no feature."""
    for name, level in sorted(features.items()):
        unknown = unknown_level_text(name, level) if level else None
        if unknown is not None:
            raise ReplayError(f"the quorum is of a newer Kafka: {unknown}; use a newer kustos")


def records_from(batch: RecordBatch, offset: int) -> Iterator[MetadataRecord]:
    """Yield the metadata records of a batch from this offset on; a control batch has none."""
    if batch.is_control:
        return
    for record in batch.records:
        if batch.base_offset + record.offset_delta >= offset:
            if record.value is None:
                raise RecordError(f"the record at offset {batch.base_offset + record.offset_delta} is empty")
            # a newer controller may add tagged fields, which older readers may ignore (KIP-482); anything
            # they must not ignore comes with a new record version or metadata.version
            yield decode_record(record.value, passes_unknown_tags=True)
