"""Verifies the files of a metadata log: checksums, offsets, epochs, records, and snapshots.

A snapshot must equal the log that it replaces: if both exist, the log is replayed up to the snapshot's end
and the two states are compared. Damage does not end the verification, so that one run reports everything; but
after damage the state is unknown, and there is nothing more to compare.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kustos.metadata.directory.loader import load, records_of, require_beginning, require_known_features
from kustos.metadata.errors import LogError, MetadataError, RecordError, ReplayError
from kustos.metadata.image import EMPTY_IMAGE, ImageBuilder
from kustos.metadata.inspection.agreement import Epoch, contradiction, first_difference
from kustos.metadata.inspection.files import (
    FileKind,
    MetadataFile,
    begins_itself,
    files_of,
    metadata_directory,
)
from kustos.metadata.log import (
    META_PROPERTIES,
    METADATA_PARTITION,
    MetaProperties,
    SegmentReader,
    TornTail,
    layout,
    recovery_point_of,
)
from kustos.metadata.log.segment import UNKNOWN_EPOCH
from kustos.metadata.log.snapshot import snapshot_batches
from kustos.runtime import Storage
from kustos.wire import RecordBatch

Advance = Callable[[int], None]
"""Callback with the size of each verified piece of a file, in bytes."""

_UNKNOWN_OFFSET: Final = -1
"""After damage the next offset is unknown."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage, as a sentence with file, place and remedy; `offset` is None outside the log."""

    path: Path
    offset: int | None
    message: str


@dataclass(slots=True)
class Verification:
    """The result: what was checked and found; `notes` are not damage."""

    segments: int = 0
    snapshots: int = 0
    batches: int = 0
    records: int = 0
    compared_snapshots: int = 0
    """Number of snapshots compared with the log."""
    first_offset: int | None = None
    last_offset: int | None = None
    notes: list[str] = field(default_factory=list)
    torn: list[TornTail] = field(default_factory=list)
    """Unfinished writes at the end of logs: left by a crash, or by a truncated copy."""
    damage: list[Damage] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged, and no log ends in an unfinished write."""
        return not (self.damage or self.torn)


def verify(paths: Iterable[Path], storage: Storage, advance: Advance = lambda _: None) -> Verification:
    """Verify these files and directories; nothing is changed or locked.

    Raises `MetadataError` only for a path without metadata, or an unreadable file.
    """
    found = Verification()
    for path in paths:
        if any(path.suffix == kind.value for kind in FileKind):
            _Checker(found, storage, advance).check_file(files_of(path, storage)[0])
        else:
            _Checker(found, storage, advance).check_directory(metadata_directory(path, storage))
    return found


class _Checker:
    """Checks one file or directory; `_builder` is None while the state is unknown."""

    def __init__(self, found: Verification, storage: Storage, advance: Advance) -> None:
        self._found = found
        self._storage = storage
        self._advance = advance
        self._builder: ImageBuilder | None = None
        self._next_offset = 0
        self._epoch = UNKNOWN_EPOCH
        self._epochs: list[Epoch] = []
        """Epochs of the log, each with the offset of its first batch there."""
        self._pending: list[MetadataFile] = []
        """Snapshots with an end that the log has not reached yet."""
        self._recovery_point: int | None = None
        self._skip_below = 0
        """The state already includes the log below this offset."""

    def check_file(self, file: MetadataFile) -> None:
        """Check a file by itself."""
        if file.kind is FileKind.SNAPSHOT:
            self._read_snapshot(file)
        else:
            self._next_offset = file.base_offset or 0
            self._check_segment(file, is_last=True)

    def check_directory(self, directory: Path) -> None:
        """Check everything in a directory."""
        files = files_of(directory, self._storage)
        segments = [file for file in files if file.kind is FileKind.SEGMENT]
        snapshots = [file for file in files if file.kind is FileKind.SNAPSHOT]
        self._check_properties(directory / META_PROPERTIES)
        self._read_recovery_point(directory / METADATA_PARTITION)
        legacy = directory / layout.LEGACY_BOOTSTRAP
        if self._storage.exists(legacy):
            self._read_snapshot(MetadataFile(legacy, FileKind.SNAPSHOT))
        damaged_before = len(self._found.damage)
        self._begin(segments, snapshots)
        has_beginning = self._builder is not None or not segments
        for file in segments:
            self._check_segment(file, is_last=file is segments[-1])
        if segments:
            self._compare_snapshots(self._next_offset, is_end=True)
        if not has_beginning and len(self._found.damage) == damaged_before:
            log_start = segments[0].base_offset
            self._report(
                directory,
                log_start,
                f"`{directory}` lacks what was before offset {log_start}: no snapshot holds it; restore the "
                "directory from a copy",
            )
        self._check_quorum_state(directory / METADATA_PARTITION / layout.QUORUM_STATE)
        if len(self._found.damage) == damaged_before:
            self._check_epochs(directory / METADATA_PARTITION / layout.LEADER_EPOCH_CHECKPOINT)
        if len(self._found.damage) == damaged_before:
            self._check_as_a_start_would(directory)

    def _check_as_a_start_would(self, directory: Path) -> None:
        """Report what would keep a node from starting although each file is whole."""
        try:
            _, builder = load(directory, self._storage)
            require_beginning(builder.view(), directory)
            require_known_features(builder.view(), directory)
        except LogError as error:
            self._report(directory, None, str(error))

    def _begin(self, segments: list[MetadataFile], snapshots: list[MetadataFile]) -> None:
        """Find the initial state of the log, and check the snapshots not reached by any log."""
        log_start = segments[0].base_offset or 0 if segments else None
        if log_start == 0 and begins_itself(segments[0].read(self._storage)):
            self._builder = ImageBuilder(EMPTY_IMAGE)
        for file in snapshots:
            id_ = file.snapshot_id
            if self._builder is not None or id_ is None:
                self._pending.append(file)
                continue
            builder = self._read_snapshot(file)
            if log_start is None or id_.end_offset < log_start or builder is None:
                continue
            self._builder, self._skip_below = builder, id_.end_offset
        self._next_offset = log_start or 0

    def _check_segment(self, file: MetadataFile, *, is_last: bool) -> None:
        base_offset = self._next_offset if file.base_offset is None else file.base_offset
        if self._next_offset not in {base_offset, _UNKNOWN_OFFSET}:
            self._report(
                file.path,
                self._next_offset,
                f"`{file.path}` begins at offset {base_offset}, but offset {self._next_offset} comes next: a "
                "segment is missing; restore the directory from a copy",
            )
            self._lose_state()
        epoch = 0 if base_offset == 0 else self._epoch
        reader = SegmentReader(
            file.read(self._storage),
            file.path,
            base_offset,
            epoch,
            is_last=is_last,
            recovery_point=self._recovery_point,
        )
        self._found.segments += 1
        if self._found.first_offset is None:
            self._found.first_offset = base_offset
        done = 0
        try:
            for batch in reader:
                self._compare_snapshots(batch.base_offset)
                self._replay(file, batch)
                self._advance(reader.position - done)
                done = reader.position
        except LogError as error:
            self._report(file.path, reader.next_offset, str(error))
            self._lose_state()
            self._next_offset, self._epoch = _UNKNOWN_OFFSET, UNKNOWN_EPOCH
            return
        if reader.torn is not None:
            self._found.torn.append(reader.torn)
        self._next_offset, self._epoch = reader.next_offset, reader.epoch
        self._found.last_offset = reader.next_offset - 1

    def _lose_state(self) -> None:
        self._builder = None
        while self._pending:
            self._read_snapshot(self._pending.pop(0))

    def _replay(self, file: MetadataFile, batch: RecordBatch) -> None:
        self._count(batch)
        if not self._epochs or batch.partition_leader_epoch > self._epochs[-1][0]:
            self._epochs.append((batch.partition_leader_epoch, batch.base_offset))
        try:
            records = records_of(batch)
            if self._builder is not None and batch.base_offset >= self._skip_below:
                self._builder.replay_all(records)
            self._require_boundary(batch)
        except (RecordError, ReplayError) as error:
            self._report(
                file.path,
                batch.base_offset,
                f"`{file.path}` has a batch at offset {batch.base_offset} that cannot be applied: {error}; "
                "if a newer Kafka wrote it, use a newer kustos, else restore the directory from a copy",
            )
            self._lose_state()

    def _require_boundary(self, batch: RecordBatch) -> None:
        if batch.base_offset < self._skip_below <= batch.last_offset:
            raise ReplayError(f"the oldest snapshot ends inside it, before offset {self._skip_below}")

    def _compare_snapshots(self, offset: int, *, is_end: bool = False) -> None:
        """Compare the snapshots that end at the current position of the log, before `offset`."""
        while self._pending and self._builder is not None:
            file = self._pending[0]
            id_ = file.snapshot_id
            if id_ is None or (id_.end_offset > offset and not is_end):
                return
            del self._pending[0]
            builder = self._read_snapshot(file)
            # since 4.4 `kafka-storage format` writes a snapshot at offset 0 (KIP-1170): no log is before it
            if builder is None or id_.end_offset == 0:
                continue
            if id_.end_offset != offset:
                where = f"the log ends at {offset - 1}" if is_end else "that is inside a batch"
                self._report(
                    file.path,
                    id_.end_offset,
                    f"the snapshot `{file.path}` ends before offset {id_.end_offset}, but {where}; restore "
                    "the directory from a copy",
                )
                continue
            self._found.compared_snapshots += 1
            difference = first_difference(self._builder.view(), builder.view())
            if difference is not None:
                self._report(
                    file.path,
                    id_.end_offset,
                    f"the snapshot `{file.path}` contradicts the log before offset {id_.end_offset}: "
                    f"{difference}; find out which is right by `kustos metadata dump`, and restore the other "
                    "from a copy",
                )

    def _read_snapshot(self, file: MetadataFile) -> ImageBuilder | None:
        """Return the state of a snapshot; if it is damaged, report that and return None."""
        self._found.snapshots += 1
        data = file.read(self._storage)
        builder = ImageBuilder()
        try:
            for batch in snapshot_batches(data, str(file.path)):
                self._count(batch)
                builder.replay_all(records_of(batch))
        except LogError as error:
            self._report(file.path, None, str(error))
            return None
        except (RecordError, ReplayError) as error:
            self._report(
                file.path,
                None,
                f"the snapshot `{file.path}` cannot be applied: {error}; if a newer Kafka wrote it, use a "
                "newer kustos, else restore it from a copy",
            )
            return None
        finally:
            self._advance(len(data))
        if builder.in_transaction:
            self._report(
                file.path,
                None,
                f"the snapshot `{file.path}` ends amid a metadata transaction, which nothing can end any "
                "more; restore it from a copy",
            )
            return None
        return builder

    def _read_recovery_point(self, partition: Path) -> None:
        try:
            self._recovery_point = recovery_point_of(partition, self._storage)
        except LogError as error:
            self._report(partition / layout.RECOVERY_POINT, None, str(error))

    def _check_properties(self, path: Path) -> None:
        if not self._storage.exists(path):
            self._found.notes.append(f"`{path}` is missing: no node starts on this directory as it is")
            return
        try:
            MetaProperties.decode(self._storage.read(path), path)
        except MetadataError as error:
            self._report(path, None, str(error))

    def _check_quorum_state(self, path: Path) -> None:
        if not self._storage.exists(path):
            return
        try:
            voted = layout.decode_quorum_epoch(self._storage.read(path), path)
        except MetadataError as error:
            self._report(path, None, str(error))
            return
        if self._epoch > voted:
            self._report(
                path,
                None,
                f"`{path}` knows only epoch {voted}, but the log ends in epoch {self._epoch}; restore the "
                "directory from a copy",
            )

    def _check_epochs(self, path: Path) -> None:
        """Compare the leader-epoch-checkpoint with a whole log."""
        if not self._storage.exists(path) or not self._epochs:
            return
        try:
            listed = layout.decode_epochs(self._storage.read(path), path)
        except MetadataError as error:
            self._report(path, None, str(error))
            return
        wrong = contradiction(listed, self._epochs, self._next_offset)
        if wrong is not None:
            self._report(
                path,
                None,
                f"`{path}` contradicts the log: {wrong}; restore the directory from a copy",
            )

    def _count(self, batch: RecordBatch) -> None:
        self._found.batches += 1
        self._found.records += len(batch.records)

    def _report(self, path: Path, offset: int | None, message: str) -> None:
        self._found.damage.append(Damage(path, offset, message))
