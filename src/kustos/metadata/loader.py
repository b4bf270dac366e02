"""From files to image: the newest snapshot and the log after it, replayed record by record."""

import gc
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog

from kustos.metadata.bulk_acls import BulkAcls
from kustos.metadata.errors import DirectoryError, LogDamagedError, MetadataError, RecordError, ReplayError
from kustos.metadata.features import METADATA_VERSION_FEATURE, unknown_level_text
from kustos.metadata.image import ImageBuilder, MetadataImage
from kustos.metadata.log import LogReader, SnapshotId
from kustos.metadata.log.snapshot import decoded
from kustos.metadata.records import MetadataRecord, OpaqueRecord, decode_record
from kustos.runtime import FileSystemStorage, Storage, collector_at_rest
from kustos.wire.record_batch import RawBatch, RecordBatch

FREEZE_ACLS_MIN: Final = 100_000
"""What so many ACLs consist of has no cycles and stays: the collector need not walk through it for ever."""

_log = structlog.get_logger("kustos.metadata")


def records_of(batch: RecordBatch) -> list[MetadataRecord]:
    """Return the metadata records of a batch; a control batch has none. Raises `RecordError`."""
    if batch.is_control:
        return []
    return [_decode(record.value) for record in batch.records]


def _decode(value: bytes | None) -> MetadataRecord:
    if value is None:
        raise RecordError("a metadata record has no value")
    return decode_record(value)


def replay_batches(builder: ImageBuilder, batches: Iterable[RecordBatch], where: Path) -> int:
    """Replay batches in order; return how many of their records are of kinds that are kept unread.

    Raises `LogDamagedError` naming the offset of a batch that cannot be replayed.
    """
    opaque_records = 0
    for batch in batches:
        try:
            records = records_of(batch)
            builder.replay_all(records)
        except (RecordError, ReplayError) as error:
            raise LogDamagedError(
                f"the batch at offset {batch.base_offset} of the log in `{where}` cannot be applied: {error}"
            ) from error
        opaque_records += sum(isinstance(record, OpaqueRecord) for record in records)
    return opaque_records


def load(directory: Path, storage: Storage) -> tuple[LogReader, ImageBuilder]:
    """Return the reader, at its end, and the state that it read; nothing is changed on disk.

    A snapshot that is damaged is passed over, with a warning, if an older one and the whole log after it
    add up to the same state; else `LogDamagedError` is raised.
    """
    with collector_at_rest():
        loaded = _load(directory, storage)
        if len(loaded[1].view().acls) >= FREEZE_ACLS_MIN:
            gc.freeze()
    return loaded


def _load(directory: Path, storage: Storage) -> tuple[LogReader, ImageBuilder]:
    passing_over: frozenset[SnapshotId] = frozenset()
    first_damage: LogDamagedError | None = None
    while True:
        reader = LogReader(directory, storage, passing_over=passing_over)
        if first_damage is not None and reader.snapshot_id is None:
            raise first_damage
        builder = ImageBuilder()
        try:
            _replay_snapshot(builder, reader, directory)
        except LogDamagedError as error:
            first_damage = first_damage or error
            if reader.snapshot_id is None:
                raise
            passing_over |= {reader.snapshot_id}
            continue
        try:
            reader.opaque_records += replay_batches(builder, reader.batches(), directory)
        except LogDamagedError as error:
            raise first_damage or error from error
        break
    if first_damage is not None:
        _log.error(
            "an older snapshot and the log after it stand in for a damaged one", reason=str(first_damage)
        )
    if METADATA_VERSION_FEATURE not in builder.view().features:
        # nothing was ever written but the beginning of epochs, perhaps by a start that crashed
        reader.opaque_records += replay_batches(builder, reader.legacy_bootstrap(), directory)
    return reader, builder


def _replay_snapshot(builder: ImageBuilder, reader: LogReader, directory: Path) -> None:
    reader.opaque_records += replay_snapshot(builder, reader.raw_snapshot(), str(reader.snapshot_path))
    if builder.in_transaction:
        raise LogDamagedError(
            f"the newest snapshot in `{directory}` ends amid a metadata transaction; restore it from a copy"
        )


def replay_snapshot(builder: ImageBuilder, batches: Iterable[RawBatch], name: str) -> int:
    """Replay the batches of a snapshot; return how many of their records are of kinds that are kept unread.

    What `replay_batches` does, with ACLs a batch at a time. Raises `LogDamagedError`.
    """
    bulk, opaque_records = BulkAcls(), 0
    for raw in batches:
        acls = None if raw.is_control or builder.in_transaction else bulk.read(raw)
        if acls is None:
            opaque_records += replay_batches(builder, (decoded(raw, name),), Path(name))
            continue
        try:
            builder.add_acls(acls)
        except ReplayError as error:
            raise LogDamagedError(
                f"the batch at offset {raw.base_offset} of the snapshot `{name}` cannot be applied: {error}"
            ) from error
    return opaque_records


def require_beginning(image: MetadataImage, directory: Path) -> None:
    """Raise `LogDamagedError` if the first records of a log are not there.

    Each formatted directory, of any Kafka, sets metadata.version before anything else. Without the file
    that holds it, the first users and ACLs, denials among them, would silently be missing too.
    """
    if METADATA_VERSION_FEATURE not in image.features:
        raise LogDamagedError(
            f"the log in `{directory}` lacks its beginning: no record sets metadata.version; a snapshot "
            "is missing, restore the directory from a copy"
        )


def require_known_features(image: MetadataImage, directory: Path) -> None:
    """Raise `DirectoryError` if a feature is at a level of which nobody here knows what it changes."""
    for name, level in sorted(image.features.items()):
        unknown = unknown_level_text(name, level)
        if unknown is not None:
            raise DirectoryError(
                f"the log in `{directory}` was written by a newer Kafka or kustos: {unknown}; use a newer "
                "kustos"
            )


def read_image(directory: Path, storage: Storage | None = None) -> MetadataImage:
    """Return what a metadata log directory, ours or a real Kafka's, adds up to; without a lock.

    Of a directory that is in use this is the state at some moment. Raises `MetadataError`.
    """
    try:
        reader, builder = load(directory, storage or FileSystemStorage())
    except OSError as error:
        raise MetadataError(f"`{directory}` cannot be read: {error}") from error
    return builder.build(reader.next_offset - 1, reader.epoch)
