"""Applies committed batches to the image: the same replay as for the embedded log, fed by a quorum.

One builder is used for the whole run, since a metadata transaction (KIP-868) may begin in one batch and end
in a later one.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kustos.metadata.directory.bulk_acls import BulkAcls
from kustos.metadata.errors import RecordError, ReplayError
from kustos.metadata.features import unknown_level_text
from kustos.metadata.image import (
    EMPTY_IMAGE,
    Change,
    FeatureLevelSet,
    ImageBuilder,
    MetadataDelta,
    MetadataImage,
    free,
)
from kustos.metadata.log import SnapshotId
from kustos.metadata.log.snapshot import decoded, raw_snapshot_batches
from kustos.metadata.quorum.values import Committed, SnapshotFetched
from kustos.metadata.records import MetadataRecord, decode_record
from kustos.wire import RawBatch, RecordBatch


class SnapshotLoad:
    """The state that the batches of one snapshot describe, added in order. `name` is for errors."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._builder: Final = ImageBuilder()
        self._bulk: Final = BulkAcls()

    def add(self, raw: RawBatch) -> None:
        """Add a batch; raise `MetadataError` if it cannot be applied."""
        acls = None if raw.is_control or self._builder.in_transaction else self._bulk.read(raw)
        if acls is None:
            self._builder.replay_all(records_from(decoded(raw, self._name), 0))
        else:
            self._builder.add_acls(acls)

    def finished(self) -> ImageBuilder:
        """Return the builder of the whole state; raise `ReplayError` for a feature at an unknown level."""
        _require_known_levels(self._builder.view().features)
        return self._builder


class CommittedImage:
    """The image of everything applied so far. After an error it must not be used any more."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.steps = 0
        """Records applied so far; any thread may read how far a long batch has come."""
        self._builder = ImageBuilder()
        self._changes: tuple[Change, ...] = ()
        self._batches: tuple[bytes, ...] = ()

    @property
    def in_transaction(self) -> bool:
        """Whether records are held back until a metadata transaction ends."""
        return self._builder.in_transaction

    def apply(self, committed: Committed) -> MetadataDelta | None:
        """Apply committed batches; return what they changed, one delta for all of them.

        While a metadata transaction is open, the image stays as it is and None is returned; the delta at its
        end contains everything. So each image can be continued by the batches after it.

        Raise `RecordError` or `ReplayError` if they cannot be applied, or if a feature is raised to an
        unknown level: Kafka's brokers and controllers stop there, too.
        """
        self._changes += self._builder.replay_all(self._records(committed))
        self._batches += tuple(each.data for each in committed.batches)
        if self._builder.in_transaction:
            return None
        changes, batches, self._changes, self._batches = self._changes, self._batches, (), ()
        _require_known_levels(
            {each.name: each.level for each in changes if isinstance(each, FeatureLevelSet)}
        )
        last_offset = committed.end_offset - 1
        self.image = self._builder.build(last_offset, committed.epoch)
        return MetadataDelta(last_offset, committed.epoch, changes, batches)

    def _records(self, committed: Committed) -> Iterator[MetadataRecord]:
        for each in committed.batches:
            for record in records_from(each.batch, committed.from_offset):
                self.steps += 1
                yield record

    def forget_acls(self) -> None:
        """Hold no ACLs until the image is replaced: a publisher has them."""
        pieces = self.image.pieces()
        self._builder.forget_acls()
        self.image = self._builder.build(self.image.offset, self.image.epoch)
        free(pieces)

    def replace(self, fetched: SnapshotFetched) -> MetadataImage:
        """Replace everything by a snapshot; raise `MetadataError` if it is invalid."""
        name = fetched.snapshot_id.file_name
        load = SnapshotLoad(name)
        for raw in raw_snapshot_batches(fetched.data, name):
            load.add(raw)
        return self.take_over(load, fetched.snapshot_id)

    def take_over(self, load: SnapshotLoad, snapshot_id: SnapshotId) -> MetadataImage:
        """Replace everything by the state of a whole snapshot; raise `MetadataError` if it is invalid."""
        builder = load.finished()
        pieces = self.image.pieces()
        self._builder, self._changes, self._batches = builder, (), ()
        self.image = builder.build(snapshot_id.end_offset - 1, snapshot_id.epoch)
        free(pieces)
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
