"""A metadata directory as a timeline: its state at any offset or time that its files still cover.

The line can be followed from each snapshot, and from offset 0 of a log with its own beginning. Batches carry
their append time, by the clock of the writer. A batch counts whole or not at all, as when it was written.

If a clock went back, the state at a time is that before the first batch with a later time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from kustos.metadata.directory.loader import records_of, replay_batches, replay_snapshot
from kustos.metadata.errors import LogDamagedError, MetadataError, RecordError, ReplayError
from kustos.metadata.image import Change, ImageBuilder, MetadataImage
from kustos.metadata.inspection.files import (
    FileKind,
    MetadataFile,
    begins_itself,
    files_of,
    metadata_directory,
)
from kustos.metadata.inspection.moments import Moment, moment_text
from kustos.metadata.log import METADATA_PARTITION, SegmentReader, SnapshotId, recovery_point_of
from kustos.metadata.log.segment import UNKNOWN_EPOCH
from kustos.metadata.log.snapshot import raw_snapshot_batches, snapshot_batches
from kustos.metadata.records import SnapshotHeader, controls_of
from kustos.runtime import Storage
from kustos.wire import CorruptBatchError, RecordBatch, read_raw_batch

FILE_SUFFIXES: Final = frozenset(kind.value for kind in FileKind)


class OutOfReachError(MetadataError):
    """The requested moment is older or newer than the files."""


@dataclass(frozen=True, slots=True)
class StartingState:
    """A start of the line: the state below `offset`, reached at `time_ms`.

    `snapshot` is None for a log with its own beginning.
    """

    offset: int
    time_ms: int
    snapshot: MetadataFile | None

    @property
    def is_first(self) -> bool:
        """Whether nothing ever preceded it."""
        return self.offset == 0

    def is_within(self, moment: Moment) -> bool:
        """Return whether it existed at a moment."""
        if moment.offset is not None:
            return self.offset <= moment.offset + 1
        return moment.time_ms is not None and self.time_ms <= moment.time_ms


@dataclass(frozen=True, slots=True)
class StateAt:
    """The state at a moment, and its last record: `image.offset`, at `time_ms`."""

    image: MetadataImage
    time_ms: int

    @property
    def text(self) -> str:
        """The offset and time as text."""
        if self.image.offset < 0:
            return f"the beginning, {moment_text(self.time_ms)}"
        return f"offset {self.image.offset}, appended {moment_text(self.time_ms)}"


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change, its record, and the batch in which it took effect."""

    offset: int
    time_ms: int
    batch_base_offset: int
    change: Change


class Timeline:
    """The line of one directory or file, as of its creation. Nothing is changed or locked."""

    def __init__(self, path: Path, storage: Storage, *, ignore_torn_tail: bool = False) -> None:
        """Inspect the files; raise `MetadataError` for a directory without a beginning.

        A walk that reaches an unfinished write at the end raises `TornTailError` unless it is ignored.
        """
        self.path: Final = path
        self._ignore_torn_tail: Final = ignore_torn_tail
        self._storage: Final = storage
        is_file = path.suffix in FILE_SUFFIXES and not storage.exists(path / METADATA_PARTITION)
        files = files_of(path if is_file else metadata_directory(path, storage), storage)
        self._segments: Final = [file for file in files if file.kind is FileKind.SEGMENT]
        log_start = self._segments[0].base_offset or 0 if self._segments else None
        self._damaged: Final[list[LogDamagedError]] = []
        """Errors of unusable snapshots: older ones and the log replace them."""
        self.beginnings: Final = list(self._find_beginnings(files, log_start))
        """All starts of the line, oldest first."""
        if not self.beginnings:
            missing = LogDamagedError(
                f"`{path}` holds no state to begin with: the snapshot before its log is missing; "
                "restore the directory from a copy"
            )
            raise [*self._damaged, missing][0]

    def _find_beginnings(self, files: list[MetadataFile], log_start: int | None) -> Iterator[StartingState]:
        snapshots = [file for file in files if file.kind is FileKind.SNAPSHOT]
        first = self._segments[0].read(self._storage) if log_start == 0 else b""
        if first and begins_itself(first):
            for batch in SegmentReader(first, self._segments[0].path, 0, 0, is_last=True):
                yield StartingState(0, batch.max_timestamp_ms, None)
                break
        for file in snapshots:
            end_offset = (file.snapshot_id or SnapshotId(0, 0)).end_offset
            if log_start is None or end_offset >= log_start:
                try:
                    yield StartingState(end_offset, self._time_of(file), file)
                except LogDamagedError as error:
                    self._damaged.append(error)

    def _time_of(self, file: MetadataFile) -> int:
        """Return the append time of the last record in a snapshot, else the time the snapshot was written."""
        for batch in snapshot_batches(file.read(self._storage), str(file.path)):
            header = next(each for each in controls_of(batch) if isinstance(each, SnapshotHeader))
            return header.last_contained_log_timestamp_ms or batch.base_timestamp_ms
        raise LogDamagedError(f"the snapshot `{file.path}` is damaged: it is empty; restore it from a copy")

    def state_at(self, moment: Moment) -> StateAt:
        """Return the state at a moment; raise `OutOfReachError` if the files do not reach it."""
        within = [each for each in self.beginnings if each.is_within(moment)]
        if not within:
            raise OutOfReachError(self._too_old(moment))
        beginning, builder = self._begin(within)
        offset, epoch, time_ms = beginning.offset - 1, 0, beginning.time_ms
        if beginning.snapshot is not None and beginning.snapshot.snapshot_id is not None:
            epoch = beginning.snapshot.snapshot_id.epoch
        continues = False
        for batch in self._batches(beginning.offset):
            if not moment.includes(batch):
                continues = True
                break
            replay_batches(builder, (batch,), self.path)
            offset, epoch, time_ms = batch.last_offset, batch.partition_leader_epoch, batch.max_timestamp_ms
        if moment.offset is not None and moment.offset > offset and not continues:
            state = StateAt(builder.build(offset, epoch), time_ms)
            raise OutOfReachError(
                f"`{self.path}` ends at {state.text}; there is no offset {moment.offset} yet"
            )
        return StateAt(builder.build(offset, epoch), time_ms)

    def oldest(self) -> StateAt:
        """Return the oldest state in the files."""
        beginning = self.beginnings[0]
        epoch = 0
        if beginning.snapshot is not None and beginning.snapshot.snapshot_id is not None:
            epoch = beginning.snapshot.snapshot_id.epoch
        return StateAt(self._builder_of(beginning).build(beginning.offset - 1, epoch), beginning.time_ms)

    def changes(self) -> Iterator[LoggedChange]:
        """Yield every change after the oldest state, in log order; raise `LogDamagedError` at damage."""
        yield from self.passage(self.beginnings[0]).changes()

    def passage(self, beginning: StartingState, end_offset: int | None = None) -> "Passage":
        """Return a walk along the line from a beginning up to an offset, exclusive, or to its end."""
        return Passage(self.path, beginning, self._builder_of(beginning), self._batches, end_offset)

    def unbroken(self) -> StartingState:
        """Return the oldest beginning from which the log is complete to its end.

        Raises `LogDamagedError` if there is none.
        """
        start, end = self._unbroken_offsets()
        newest = self.beginnings[-1]
        if end is not None and newest.offset > end:
            raise LogDamagedError(
                f"`{self.path}` has a snapshot up to offset {newest.offset - 1}, but its log ends at "
                f"{end - 1}; restore the directory from a copy"
            )
        for beginning in self.beginnings:
            if beginning.offset >= start:
                return beginning
        raise LogDamagedError(
            f"`{self.path}` lacks offsets before {start}, and no snapshot covers them; restore the "
            "directory from a copy"
        )

    def _unbroken_offsets(self) -> tuple[int, int | None]:
        """Return start and end of the last gapless run of segments; the end is None without a segment."""
        start, end = 0, None
        for file in self._segments:
            base_offset = file.base_offset or 0
            start = base_offset if end is not None and base_offset > end else start
            end = base_offset
            data, position = file.read(self._storage), 0
            try:
                while position < len(data):
                    raw = read_raw_batch(data, position)
                    position, end = raw.end, raw.last_offset + 1
            except CorruptBatchError:
                pass  # a torn tail, or damage that reading the records reports
        return start, end

    def _begin(self, beginnings: list[StartingState]) -> tuple[StartingState, ImageBuilder]:
        """Return the newest of these with a readable state; raise `LogDamagedError` if there is none."""
        for beginning in reversed(beginnings):
            try:
                return beginning, self._builder_of(beginning)
            except LogDamagedError as error:
                self._damaged.append(error)
        raise self._damaged[0]

    def _builder_of(self, beginning: StartingState) -> ImageBuilder:
        builder = ImageBuilder()
        file = beginning.snapshot
        if file is not None:
            replay_snapshot(
                builder, raw_snapshot_batches(file.read(self._storage), str(file.path)), str(file.path)
            )
        return builder

    def _batches(self, start: int) -> Iterator[RecordBatch]:
        """Yield the batches of the log from an offset on; raise `LogDamagedError` where one is missing."""
        following = [file.base_offset for file in self._segments[1:]]
        offset, epoch = None, UNKNOWN_EPOCH
        for file, end in zip_longest(self._segments, following):
            if end is not None and end <= start:
                continue
            base_offset = file.base_offset or 0
            if offset not in {None, base_offset}:
                raise LogDamagedError(
                    f"`{self.path}` lacks the offsets from {offset} to {base_offset - 1}; restore the "
                    "directory from a copy"
                )
            epoch = 0 if base_offset == 0 else epoch
            data = file.read(self._storage)
            reader = SegmentReader(
                data,
                file.path,
                base_offset,
                epoch,
                is_last=end is None,
                recovery_point=recovery_point_of(file.path.parent, self._storage),
            )
            for batch in reader:
                if batch.base_offset >= start:
                    yield batch
            offset, epoch = reader.next_offset, reader.epoch
            if reader.torn is not None and not self._ignore_torn_tail:
                raise reader.torn.error()

    def _too_old(self, moment: Moment) -> str:
        oldest = self.beginnings[0]
        since = f"{moment_text(oldest.time_ms)}"
        if oldest.is_first:
            return f"`{self.path}` begins at {since}: there was nothing yet at `{moment.text}`"
        name = oldest.snapshot.path.name if oldest.snapshot is not None else ""
        return (
            f"`{self.path}` reaches back only to offset {oldest.offset - 1}, appended {since}, the end of "
            f"the snapshot `{name}`: what was at `{moment.text}` is in no file any more; ask for a later "
            "moment, or look into an older copy of the directory"
        )


class Passage:
    """A walk along a line: `view`, `offset` and `time_ms` are its current position.

    `latest_ms` is the latest time up to the last yielded change; it locates a time in a log whose clock went
    back.
    """

    def __init__(
        self,
        path: Path,
        beginning: StartingState,
        builder: ImageBuilder,
        batches: Callable[[int], Iterator[RecordBatch]],
        end_offset: int | None,
    ) -> None:
        self.beginning: Final = beginning
        self.offset = beginning.offset - 1
        self.time_ms = self.latest_ms = beginning.time_ms
        self._path: Final = path
        self._builder: Final = builder
        self._batches: Final = batches
        self._end_offset: Final = end_offset

    def view(self) -> MetadataImage:
        """Return a live view of the state so far, without a copy."""
        return self._builder.view()

    @property
    def in_transaction(self) -> bool:
        """Whether the last records take effect only if their transaction ends."""
        return self._builder.in_transaction

    def changes(self) -> Iterator[LoggedChange]:
        """Yield every change on the way, in log order; raise `LogDamagedError` at damage."""
        for batch in self._batches(self.beginning.offset):
            if self._end_offset is not None and batch.last_offset >= self._end_offset:
                return
            self.latest_ms = max(self.latest_ms, batch.max_timestamp_ms)
            try:
                for number, record in enumerate(records_of(batch)):
                    for change in self._builder.replay(record):
                        yield LoggedChange(
                            batch.base_offset + number, batch.max_timestamp_ms, batch.base_offset, change
                        )
            except (RecordError, ReplayError) as error:
                raise LogDamagedError(
                    f"the batch at offset {batch.base_offset} of the log in `{self._path}` cannot be "
                    f"applied: {error}"
                ) from error
            self.offset, self.time_ms = batch.last_offset, batch.max_timestamp_ms
