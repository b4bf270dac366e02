"""The metadata log files that an argument names: one segment, one snapshot, or all in a directory."""

from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path

from kustos.metadata import SEGMENT_SUFFIX, SNAPSHOT_SUFFIX
from kustos.metadata.directory.loader import records_of
from kustos.metadata.errors import DirectoryError, MetadataError, RecordError
from kustos.metadata.features import METADATA_VERSION_FEATURE
from kustos.metadata.log import METADATA_PARTITION, SnapshotId, layout
from kustos.metadata.records import BeginTransactionRecord, FeatureLevelRecord, NoOpRecord
from kustos.runtime import Storage, reason_of
from kustos.wire import CorruptBatchError, read_batch


@unique
class FileKind(Enum):
    """The kind of a file by its name."""

    SEGMENT = SEGMENT_SUFFIX
    SNAPSHOT = SNAPSHOT_SUFFIX


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A segment or a snapshot."""

    path: Path
    kind: FileKind

    @property
    def base_offset(self) -> int | None:
        """The base offset in a segment's name; None for another name or a snapshot."""
        return layout.segment_base_offset(self.path.name)

    @property
    def snapshot_id(self) -> SnapshotId | None:
        """The id of a snapshot, by its name; None for another name or a segment."""
        return SnapshotId.of(self.path.name)

    def read(self, storage: Storage) -> bytes:
        """Return the contents; raise `MetadataError` if they cannot be read."""
        try:
            return storage.read(self.path)
        except OSError as error:
            raise MetadataError(f"`{self.path}` cannot be read: {reason_of(error)}") from error


def begins_itself(data: bytes) -> bool:
    """Return whether a segment from offset 0 has the log's beginning: its first record sets metadata.version.

    Up to 4.3, Kafka copied the initial records into it from a separate file. Otherwise a snapshot precedes
    offset 0, and without it the state at offset 0 is unknown.
    """
    position = 0
    while position < len(data):
        try:
            batch, position = read_batch(data, position)
            records = records_of(batch)
        except (CorruptBatchError, RecordError):
            return False
        for record in records:
            if not isinstance(record, BeginTransactionRecord | NoOpRecord):
                return isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION_FEATURE
    return False


def metadata_directory(path: Path, storage: Storage) -> Path:
    """Return the directory of the partition, given either of the two.

    Raises `NoMetadataError` for a path that is neither.
    """
    directory = path.parent if path.resolve().name == METADATA_PARTITION else path
    if not storage.exists(directory / METADATA_PARTITION):
        what = (
            f"`{path}` is neither a segment (`.log`), a snapshot (`.checkpoint`) nor a metadata directory: "
            f"it has no `{METADATA_PARTITION}`"
        )
        raise layout.no_metadata(path, storage, what, "correct the path")
    return directory


def files_of(path: Path, storage: Storage) -> list[MetadataFile]:
    """Return the file that a path names, or all files of a directory: snapshots, then segments, by offset.

    Raises `DirectoryError` for an empty or foreign directory, and for a file with neither kind of name.
    """
    for kind in FileKind:
        if path.suffix == kind.value:
            return [MetadataFile(path, kind)]
    directory = metadata_directory(path, storage)
    partition = directory / METADATA_PARTITION
    names = storage.names(partition)
    found = [MetadataFile(partition / name, FileKind.SNAPSHOT) for name in names if SnapshotId.of(name)]
    found += [
        MetadataFile(partition / name, FileKind.SEGMENT)
        for name in names
        if layout.segment_base_offset(name) is not None
    ]
    if not found:
        raise DirectoryError(f"`{partition}` holds neither a segment nor a snapshot")
    return found
