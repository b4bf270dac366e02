"""A metadata directory as a line of time: its state at any offset or moment that its files still hold.

The line begins at each snapshot, and at offset 0 of a log that holds its own beginning; from there the log
leads on. Batches carry the time at which they were appended, by the clock of whoever appended them. A
batch counts whole or not at all, as it did when it was new.

Where a clock went back, the state at a moment is that before the first batch that is later than it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final, Self

from kustos.metadata.errors import LogDamagedError, MetadataError, RecordError, ReplayError
from kustos.metadata.image import Change, ImageBuilder, MetadataImage
from kustos.metadata.inspection.files import (
    FileKind,
    MetadataFile,
    begins_itself,
    files_of,
    metadata_directory,
)
from kustos.metadata.inspection.moments import moment_ms, moment_text
from kustos.metadata.loader import records_of, replay_batches, replay_snapshot
from kustos.metadata.log import METADATA_PARTITION, SegmentReader, SnapshotId
from kustos.metadata.log.segment import UNKNOWN_EPOCH
from kustos.metadata.log.snapshot import raw_snapshot_batches, snapshot_batches
from kustos.metadata.records import SnapshotHeader, controls_of
from kustos.runtime import Storage
from kustos.wire.record_batch import CorruptBatchError, RecordBatch, read_raw_batch

FILE_SUFFIXES: Final = frozenset(kind.value for kind in FileKind)


class OutOfReachError(MetadataError):
    """The files do not hold what is asked for: it is older or newer than they are."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What people ask for: an offset, or a time. Exactly one is given."""

    text: str
    offset: int | None = None
    time_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the moment that a text names: digits are an offset, else ISO 8601; raise `ValueError`."""
        if text.isascii() and text.isdigit():
            return cls(text, offset=int(text))
        try:
            return cls(text, time_ms=moment_ms(text))
        except (ValueError, OverflowError):
            raise ValueError(
                f"`{text}` is neither an offset nor a time: write `1234`, `2026-11-03`, "
                "`2026-11-03T09:30` (UTC) or `2026-11-03T09:30+01:00`"
            ) from None

    def includes(self, batch: RecordBatch) -> bool:
        """Return whether a batch was there at this moment."""
        if self.offset is not None:
            return batch.last_offset <= self.offset
        return self.time_ms is not None and batch.max_timestamp_ms <= self.time_ms


@dataclass(frozen=True, slots=True)
class Beginning:
    """A place from which the line can be followed: the state below `offset`, reached at `time_ms`.

    `snapshot` is None for a log that holds its own beginning.
    """

    offset: int
    time_ms: int
    snapshot: MetadataFile | None

    @property
    def is_first(self) -> bool:
        """Whether nothing was ever before it."""
        return self.offset == 0

    def is_within(self, moment: Moment) -> bool:
        """Return whether it was there at a moment."""
        if moment.offset is not None:
            return self.offset <= moment.offset + 1
        return moment.time_ms is not None and self.time_ms <= moment.time_ms


@dataclass(frozen=True, slots=True)
class StateAt:
    """The state at a moment, and the last change of the log before it: `image.offset`, at `time_ms`."""

    image: MetadataImage
    time_ms: int

    @property
    def text(self) -> str:
        """Where it stands, in words."""
        if self.image.offset < 0:
            return f"the beginning, {moment_text(self.time_ms)}"
        return f"offset {self.image.offset}, appended {moment_text(self.time_ms)}"


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change, the record that made it, and the batch in which it came into force."""

    offset: int
    time_ms: int
    batch_base_offset: int
    change: Change


class Timeline:
    """The line of one directory, or of one file, as it was then. Nothing is changed or locked."""

    def __init__(self, path: Path, storage: Storage) -> None:
        """Look at the files; raise `MetadataError` for a directory without a beginning."""
        self.path: Final = path
        self._storage: Final = storage
        is_file = path.suffix in FILE_SUFFIXES and not storage.exists(path / METADATA_PARTITION)
        files = files_of(path if is_file else metadata_directory(path, storage), storage)
        self._segments: Final = [file for file in files if file.kind is FileKind.SEGMENT]
        log_start = self._segments[0].base_offset or 0 if self._segments else None
        self._damaged: Final[list[LogDamagedError]] = []
        """Of snapshots that cannot be begun with: older ones and the log stand in for them."""
        self.beginnings: Final = list(self._find_beginnings(files, log_start))
        """Oldest first."""
        if not self.beginnings:
            missing = LogDamagedError(
                f"`{path}` holds no state to begin with: the snapshot before its log is missing; "
                "restore the directory from a copy"
            )
            raise [*self._damaged, missing][0]

    def _find_beginnings(self, files: list[MetadataFile], log_start: int | None) -> Iterator[Beginning]:
        snapshots = [file for file in files if file.kind is FileKind.SNAPSHOT]
        first = self._segments[0].read(self._storage) if log_start == 0 else b""
        if first and begins_itself(first):
            for batch in SegmentReader(first, str(self._segments[0].path), 0, 0, is_last=True):
                yield Beginning(0, batch.max_timestamp_ms, None)
                break
        for file in snapshots:
            end_offset = (file.snapshot_id or SnapshotId(0, 0)).end_offset
            if log_start is None or end_offset >= log_start:
                try:
                    yield Beginning(end_offset, self._time_of(file), file)
                except LogDamagedError as error:
                    self._damaged.append(error)

    def _time_of(self, file: MetadataFile) -> int:
        """Return when the last record in a snapshot was appended, else when the snapshot was written."""
        for batch in snapshot_batches(file.read(self._storage), str(file.path)):
            header = next(each for each in controls_of(batch) if isinstance(each, SnapshotHeader))
            return header.last_contained_log_timestamp_ms or batch.base_timestamp_ms
        raise LogDamagedError(f"the snapshot `{file.path}` is damaged: it is empty; restore it from a copy")

    def state_at(self, moment: Moment) -> StateAt:
        """Return the state at a moment; raise `OutOfReachError` if the files do not hold it."""
        within = [each for each in self.beginnings if each.is_within(moment)]
        if not within:
            raise OutOfReachError(self._too_old(moment))
        beginning, builder = self._begin(within)
        offset, epoch, time_ms = beginning.offset - 1, 0, beginning.time_ms
        if beginning.snapshot is not None and beginning.snapshot.snapshot_id is not None:
            epoch = beginning.snapshot.snapshot_id.epoch
        goes_on = False
        for batch in self._batches(beginning.offset):
            if not moment.includes(batch):
                goes_on = True
                break
            replay_batches(builder, (batch,), self.path)
            offset, epoch, time_ms = batch.last_offset, batch.partition_leader_epoch, batch.max_timestamp_ms
        if moment.offset is not None and moment.offset > offset and not goes_on:
            state = StateAt(builder.build(offset, epoch), time_ms)
            raise OutOfReachError(
                f"`{self.path}` ends at {state.text}; there is no offset {moment.offset} yet"
            )
        return StateAt(builder.build(offset, epoch), time_ms)

    def oldest(self) -> StateAt:
        """Return the oldest state that the files hold."""
        beginning = self.beginnings[0]
        epoch = 0
        if beginning.snapshot is not None and beginning.snapshot.snapshot_id is not None:
            epoch = beginning.snapshot.snapshot_id.epoch
        return StateAt(self._builder_of(beginning).build(beginning.offset - 1, epoch), beginning.time_ms)

    def changes(self) -> Iterator[LoggedChange]:
        """Yield every change after the oldest state, in log order; raise `LogDamagedError` at damage."""
        yield from self.passage(self.beginnings[0]).changes()

    def passage(self, beginning: Beginning, end_offset: int | None = None) -> "Passage":
        """Return a walk along the line from a beginning up to, not including, an offset, or to its end."""
        return Passage(self.path, beginning, self._builder_of(beginning), self._batches, end_offset)

    def unbroken(self) -> Beginning:
        """Return the oldest beginning from which the log leads on to its end without a gap.

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
            f"`{self.path}` lacks offsets before {start}, and no snapshot stands for them; restore the "
            "directory from a copy"
        )

    def _unbroken_offsets(self) -> tuple[int, int | None]:
        """Return where the last row of segments without a gap begins and ends; no end without a segment."""
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
                pass  # a torn tail, or damage that whoever reads the records tells of
        return start, end

    def _begin(self, beginnings: list[Beginning]) -> tuple[Beginning, ImageBuilder]:
        """Return the newest of these whose state can be read; raise `LogDamagedError` if none can."""
        for beginning in reversed(beginnings):
            try:
                return beginning, self._builder_of(beginning)
            except LogDamagedError as error:
                self._damaged.append(error)
        raise self._damaged[0]

    def _builder_of(self, beginning: Beginning) -> ImageBuilder:
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
            reader = SegmentReader(data, str(file.path), base_offset, epoch, is_last=end is None)
            for batch in reader:
                if batch.base_offset >= start:
                    yield batch
            offset, epoch = reader.next_offset, reader.epoch

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
    """A walk along a line: `view`, `offset` and `time_ms` tell how far it has come.

    `latest_ms` is the latest time so far, as far as the change that was yielded last: by it a moment is
    found in a log whose clock went back.
    """

    def __init__(
        self,
        path: Path,
        beginning: Beginning,
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
        """Return the state so far without a copy; it moves on with the walk."""
        return self._builder.view()

    @property
    def in_transaction(self) -> bool:
        """Whether the records that came last count only if their transaction ends."""
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
