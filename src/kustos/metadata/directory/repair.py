"""Repair of a damaged log: keeps the complete batches before the damage, and saves the rest in files.

The newest readable snapshot and the log after it remain, up to the first batch that does not follow.
Everything later is dropped, acknowledged or not, and so are references to it in the small files next to the
log. No byte is lost: the cut parts are saved in files next to the log. Records that can be read but not
applied are not damage of the files: nothing is cut because of them.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from kustos.metadata.directory.loader import load, replay_batches, replay_snapshot, require_beginning
from kustos.metadata.errors import LogDamagedError, MetadataError
from kustos.metadata.image import ImageBuilder
from kustos.metadata.log import LOCK_FILE, METADATA_PARTITION, SegmentReader, SnapshotId, layout
from kustos.metadata.log.header_walk import LogPosition, skip_batches
from kustos.metadata.log.reader import begun_epochs, recovery_point_of
from kustos.metadata.log.segment import UNKNOWN_EPOCH
from kustos.metadata.log.snapshot import raw_snapshot_batches
from kustos.metadata.log.unfinished import SECTOR_SIZE_BYTES
from kustos.runtime import PRIVATE_FILE_MODE, Storage
from kustos.wire import RecordBatch


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut of a file: everything from `position` on, the whole file at 0."""

    path: Path
    position: int
    size_bytes: int
    kept_as: Path


@dataclass(frozen=True, slots=True)
class Repair:
    """The steps that make a directory usable again; the log then ends before `end_offset`."""

    directory: Path
    reason: str
    end_offset: int
    known_end_offset: int | None
    """The end of the log according to the files next to it."""
    last_segment: int
    cuts: tuple[Cut, ...]


def plan_repair(directory: Path, storage: Storage) -> Repair | None:
    """Return the repair, None if the directory can be read as it is; nothing is changed.

    Raises `LogDamagedError` if neither a snapshot nor a log is left to continue from, and the error of
    reading if the files are whole but their contents are invalid.
    """
    partition = directory / METADATA_PARTITION
    try:
        reader, builder = load(directory, storage)
    except LogDamagedError as error:
        reason = str(error)
    else:
        require_beginning(builder.view(), directory)
        if reader.torn is None:
            return None
        reason = str(reader.torn.error())
    survey = _Survey(directory, storage)
    repair = survey.repair(reason)
    require_beginning(survey.builder.view(), directory)
    if not repair.cuts and not _knows_too_much(repair, partition, storage):
        raise LogDamagedError(reason)
    return repair


def carry_out(repair: Repair, storage: Storage) -> None:
    """Save the parts, then cut; raise `LogDamagedError` if the directory cannot be read afterwards.

    Raises `StorageLockedError` for a directory in use, `MetadataError` if the plan no longer fits the
    directory. After a crash in between, the directory can be repaired again.
    """
    partition = repair.directory / METADATA_PARTITION
    lock = storage.lock(repair.directory / LOCK_FILE)
    try:
        if plan_repair(repair.directory, storage) != repair:
            raise MetadataError(f"`{repair.directory}` was changed meanwhile; look at it once more")
        for cut in repair.cuts:
            storage.write(cut.kept_as, storage.read(cut.path)[cut.position :], PRIVATE_FILE_MODE)
        _forget(repair, partition, storage)
        segment = storage.open_append(partition / layout.segment_name(repair.last_segment))
        segment.close()
        for cut in reversed(repair.cuts):
            if cut.position == 0 and layout.segment_base_offset(cut.path.name) != repair.last_segment:
                storage.remove(cut.path)
                continue
            file = storage.open_append(cut.path)
            try:
                file.truncate(cut.position)
                file.sync()
            finally:
                file.close()
    finally:
        lock.release()
    _, builder = load(repair.directory, storage)
    require_beginning(builder.view(), repair.directory)


def _forget(repair: Repair, partition: Path, storage: Storage) -> None:
    """Remove references to dropped parts from the files next to the log."""
    epochs = tuple(each for each in _epochs_of(partition, storage) if each[1] < repair.end_offset)
    storage.write(partition / layout.LEADER_EPOCH_CHECKPOINT, layout.encode_epochs(epochs))
    storage.write(partition / layout.RECOVERY_POINT, layout.encode_recovery_point(repair.end_offset))
    if storage.exists(partition / layout.ACTIVE_SEGMENT):
        storage.write(partition / layout.ACTIVE_SEGMENT, layout.encode_active_segment(repair.last_segment))


def _epochs_of(partition: Path, storage: Storage) -> tuple[tuple[int, int], ...]:
    try:
        return begun_epochs(partition, storage)
    except LogDamagedError:
        return ()


def _knows_too_much(repair: Repair, partition: Path, storage: Storage) -> bool:
    """Return whether a file next to the log is malformed, or refers to a missing part."""
    path = partition / layout.ACTIVE_SEGMENT
    try:
        begun_epochs(partition, storage)
        recovery_point_of(partition, storage)
        if (
            storage.exists(path)
            and layout.decode_active_segment(storage.read(path), path) > repair.last_segment
        ):
            return True
    except LogDamagedError:
        return True
    return repair.known_end_offset is not None and repair.known_end_offset > repair.end_offset


class _Survey:
    """Finds how far a log can be followed, and what lies beyond."""

    def __init__(self, directory: Path, storage: Storage) -> None:
        self._directory = directory
        self._partition = directory / METADATA_PARTITION
        self._storage = storage
        names = storage.names(self._partition)
        self._segments = sorted(
            base for name in names if (base := layout.segment_base_offset(name)) is not None
        )
        self._snapshots = sorted(id_ for name in names if (id_ := SnapshotId.of(name)) is not None)
        self._unreadable = [id_ for id_ in self._snapshots if not self._can_be_read(id_)]
        self.builder = ImageBuilder()
        """The state that remains, after `repair` has run."""

    def repair(self, reason: str) -> Repair:
        """Return the repair with its cuts."""
        readable = [id_ for id_ in self._snapshots if id_ not in self._unreadable]
        start = readable[-1].end_offset if readable else 0
        if readable:
            path = self._partition / readable[-1].file_name
            replay_snapshot(
                self.builder, raw_snapshot_batches(self._storage.read(path), str(path)), str(path)
            )
        end, last_segment, cuts = self._follow(start)
        cuts += [self._cut(id_.file_name, 0) for id_ in self._unreadable if id_.end_offset > end]
        return Repair(self._directory, reason, end, self._known_end(), last_segment, tuple(cuts))

    def _follow(self, start: int) -> tuple[int, int, list[Cut]]:
        """Return the end of the log from `start`, its last segment, and the cuts."""
        before = [base for base in self._segments if base <= start]
        needed = [*before[-1:], *(base for base in self._segments if base > start)]
        offset, epoch, last = start, UNKNOWN_EPOCH, start
        for number, base in enumerate(needed):
            if base != offset and (number or base > start):
                return self._end_at(start, offset, last, position=None, after=needed[number:])
            path = self._partition / layout.segment_name(base)
            place = LogPosition(0, base, 0 if base == 0 else epoch)
            if base < start:
                place = skip_batches(self._storage, path, place, start, lambda _: None)
            edge = place.position - place.position % SECTOR_SIZE_BYTES
            size_bytes = self._storage.size_bytes(path)
            reader = SegmentReader(
                self._storage.read_part(path, edge, size_bytes - edge),
                path,
                place.next_offset,
                place.epoch,
                is_last=False,
                position=place.position,
            )
            later = (batch for batch in _whole_batches(reader) if batch.base_offset >= start)
            replay_batches(self.builder, later, self._directory)
            offset, epoch, last = reader.next_offset, reader.epoch, base
            if reader.position < size_bytes:
                return self._end_at(start, offset, last, reader.position, after=needed[number + 1 :])
        return self._end_at(start, offset, last, position=None, after=[])

    def _end_at(
        self, start: int, offset: int, last: int, position: int | None, after: list[int]
    ) -> tuple[int, int, list[Cut]]:
        if offset < start:
            # the snapshot is newer than the remaining log: continue from the snapshot alone
            return start, start, [self._cut(layout.segment_name(base), 0) for base in self._segments]
        cuts = [] if position is None else [self._cut(layout.segment_name(last), position)]
        cuts += [self._cut(layout.segment_name(base), 0) for base in after]
        return offset, last, cuts

    def _cut(self, name: str, position: int) -> Cut:
        path = self._partition / name
        kept_as = next(each for each in _places(path, position) if not self._storage.exists(each))
        return Cut(path, position, self._storage.size_bytes(path) - position, kept_as)

    def _known_end(self) -> int | None:
        known = [offset + 1 for _, offset in _epochs_of(self._partition, self._storage)]
        # a malformed one is rewritten
        with contextlib.suppress(LogDamagedError):
            known.append(recovery_point_of(self._partition, self._storage) or 0)
        return max(known, default=None)

    def _can_be_read(self, id_: SnapshotId) -> bool:
        path = self._partition / id_.file_name
        try:
            for _ in raw_snapshot_batches(self._storage.read(path), str(path)):
                continue
        except LogDamagedError:
            return False
        return True


def _whole_batches(reader: SegmentReader) -> Iterator[RecordBatch]:
    """Yield the batches before the first that is damaged or does not follow."""
    with contextlib.suppress(LogDamagedError):
        yield from reader


def _places(path: Path, position: int) -> Iterator[Path]:
    """Yield names for the parts cut from a file, none of them a segment or snapshot name."""
    for number in count(1):
        yield path.with_name(f"{path.name}.cut-from-{position}" + (f"-{number}" if number > 1 else ""))
