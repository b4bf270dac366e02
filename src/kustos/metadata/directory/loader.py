"""From files to image: the newest snapshot and the log after it, replayed record by record."""

import gc
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog

from kustos.metadata.directory.bulk_acls import BulkAcls
from kustos.metadata.errors import DirectoryError, LogDamagedError, MetadataError, RecordError, ReplayError
from kustos.metadata.features import METADATA_VERSION_FEATURE, unknown_level_text
from kustos.metadata.image import ImageBuilder, MetadataImage
from kustos.metadata.log import LogReader, SnapshotId
from kustos.metadata.log.snapshot import decoded
from kustos.metadata.records import MetadataRecord, OpaqueRecord, decode_record
from kustos.runtime import FileSystemStorage, Storage, garbage_collection_paused, reason_of
from kustos.wire import RawBatch, RecordBatch

FREEZE_ACLS_MIN: Final = 100_000
"""From this many ACLs on, exclude them from garbage collection: they are acyclic and long-lived."""

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
    """Replay batches in order; return the number of records of opaque kinds.

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
    """Return the reader, at its end, and the state it read; nothing is changed on disk.

    A damaged snapshot is skipped, with a warning, if an older one and the whole log after it give the same
    state; else `LogDamagedError` is raised.
    """
    with garbage_collection_paused():
        loaded = _load(directory, storage)
        if len(loaded[1].view().acls) >= FREEZE_ACLS_MIN:
            gc.freeze()
    return loaded


def _load(directory: Path, storage: Storage) -> tuple[LogReader, ImageBuilder]:
    skipped: frozenset[SnapshotId] = frozenset()
    first_damage: LogDamagedError | None = None
    while True:
        reader = LogReader(directory, storage, skipped=skipped)
        if first_damage is not None and reader.snapshot_id is None:
            raise first_damage
        builder = ImageBuilder()
        try:
            _replay_snapshot(builder, reader, directory)
        except LogDamagedError as error:
            first_damage = first_damage or error
            if reader.snapshot_id is None:
                raise
            skipped |= {reader.snapshot_id}
            continue
        try:
            reader.opaque_records += replay_batches(builder, reader.batches(), directory)
        except LogDamagedError as error:
            raise first_damage or error from error
        break
    if first_damage is not None:
        _log.error("an older snapshot and the log after it replace a damaged one", reason=str(first_damage))
    if METADATA_VERSION_FEATURE not in builder.view().features:
        # nothing but epoch beginnings was ever written, perhaps by a start that crashed
        reader.opaque_records += replay_batches(builder, reader.legacy_bootstrap(), directory)
    return reader, builder


def _replay_snapshot(builder: ImageBuilder, reader: LogReader, directory: Path) -> None:
    reader.opaque_records += replay_snapshot(builder, reader.raw_snapshot(), str(reader.snapshot_path))
    if builder.in_transaction:
        raise LogDamagedError(
            f"the newest snapshot in `{directory}` ends amid a metadata transaction; restore it from a copy"
        )


def replay_snapshot(builder: ImageBuilder, batches: Iterable[RawBatch], name: str) -> int:
    """Replay the batches of a snapshot; return the number of records of opaque kinds.

    Same as `replay_batches`, with ACLs a batch at a time. Raises `LogDamagedError`.
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
    """Raise `LogDamagedError` if the first records of a log are missing.

    Every formatted directory, of any Kafka, sets metadata.version first. Without the file that holds it, the
    first users and ACLs, including DENYs, would silently be missing too.
    """
    if METADATA_VERSION_FEATURE not in image.features:
        raise LogDamagedError(
            f"the log in `{directory}` lacks its beginning: no record sets metadata.version; a snapshot "
            "is missing, restore the directory from a copy"
        )


def require_known_features(image: MetadataImage, directory: Path) -> None:
    """Raise `DirectoryError` if a feature is at an unknown level."""
    for name, level in sorted(image.features.items()):
        unknown = unknown_level_text(name, level)
        if unknown is not None:
            raise DirectoryError(
                f"the log in `{directory}` was written by a newer Kafka or kustos: {unknown}; use a newer "
                "kustos"
            )


def read_image(
    directory: Path, storage: Storage | None = None, *, ignore_torn_tail: bool = False
) -> MetadataImage:
    """Return the state of a metadata log directory, ours or a real Kafka's, without a lock.

    For a directory in use this is the state at some moment. Raises `MetadataError`; its subclass
    `TornTailError` if the log ends in an unfinished write, unless `ignore_torn_tail`.
    """
    try:
        reader, builder = load(directory, storage or FileSystemStorage())
    except OSError as error:
        raise MetadataError(f"`{directory}` cannot be read: {reason_of(error)}") from error
    if reader.torn is not None and not ignore_torn_tail:
        raise reader.torn.error()
    return builder.build(reader.next_offset - 1, reader.epoch)
