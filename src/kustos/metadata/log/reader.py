"""Reads a metadata directory of kustos or of Kafka: the newest snapshot, then the log after it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.metadata.errors import LogDamagedError, RecordError
from kustos.metadata.log import layout
from kustos.metadata.log.header_walk import LogPosition, skip_batches
from kustos.metadata.log.layout import SnapshotId
from kustos.metadata.log.segment import UNKNOWN_EPOCH, SegmentReader, TornTail, begins_epoch
from kustos.metadata.log.snapshot import decoded, raw_snapshot_batches, snapshot_batches
from kustos.metadata.log.unfinished import SECTOR_SIZE_BYTES
from kustos.metadata.records import ControlRecord, KRaftVersion, Voters, controls_of
from kustos.runtime import Storage
from kustos.wire import RawBatch, RecordBatch

KRAFT_VERSION_MAX: Final = 1
"""The highest level of kraft.version that Kafka 4.4 knows."""


@dataclass(slots=True)
class ActiveSegment:
    """The state of the segment that a writer continues."""

    base_offset: int
    size_bytes: int = 0
    first_timestamp_ms: int | None = None
    """Timestamp of its first batch; None while it has none."""


class LogReader:
    """Reads once, in order: first `snapshot()` to its end, then `batches()` to its end.

    Afterwards `next_offset`, `epoch`, `epochs`, `active`, `quorum_controls` and `torn` are where a writer
    continues. Nothing is changed. Raises `LogDamagedError` for anything but a torn tail.

    `skipped` are unreadable snapshots to skip: the next older one is used instead, which gives the same
    state if the log after it is whole.
    """

    def __init__(
        self, directory: Path, storage: Storage, *, skipped: frozenset[SnapshotId] = frozenset()
    ) -> None:
        self._storage = storage
        self._partition = directory / layout.METADATA_PARTITION
        # read it before the log: in a directory in use it must not be ahead of the log as read
        self.recovery_point = recovery_point_of(self._partition, storage)
        self._begun_epochs = begun_epochs(self._partition, storage)
        names = storage.names(self._partition)
        self.segments = tuple(
            sorted(base for name in names if (base := layout.segment_base_offset(name)) is not None)
        )
        found = sorted(id_ for name in names if (id_ := SnapshotId.of(name)) is not None)
        self.skipped_snapshots = skipped
        self.snapshots = tuple(id_ for id_ in found if id_ not in skipped)
        self.snapshot_id = self.snapshots[-1] if self.snapshots else None
        self._reached_offset = found[-1].end_offset if found else 0
        self.next_offset = 0 if self.snapshot_id is None else self.snapshot_id.end_offset
        self.epoch = 0 if self.snapshot_id is None else self.snapshot_id.epoch
        self.epochs: list[tuple[int, int]] = []
        self._kraft_version: KRaftVersion | None = None
        self._voters: Voters | None = None
        self.active = ActiveSegment(self.segments[-1] if self.segments else self.next_offset)
        self.last_timestamp_ms = 0
        self.unsnapshotted_bytes = 0
        """Size of data batches after the snapshot."""
        self.opaque_records = 0
        """Records of opaque kinds, counted by the caller that decodes them."""
        self.torn: TornTail | None = None
        self.bootstrapped = False
        self._legacy_bootstrap = directory / layout.LEGACY_BOOTSTRAP
        self._require_segments(names)

    def _require_segments(self, names: list[str]) -> None:
        """Raise `LogDamagedError` if the last segment that the directory names is missing."""
        if not self.segments and layout.QUORUM_STATE in names:
            raise LogDamagedError(
                f"`{self._partition}` was written to, but its log is missing; "
                "restore the directory from a copy"
            )
        if layout.ACTIVE_SEGMENT in names:
            path = self._partition / layout.ACTIVE_SEGMENT
            last = layout.decode_active_segment(self._storage.read(path), path)
            if last > max(self.segments, default=-1):
                raise LogDamagedError(
                    f"`{self._partition}` lacks its last segment, `{layout.segment_name(last)}`; "
                    "restore the directory from a copy"
                )

    @property
    def segment(self) -> Path:
        """The segment that a writer appends to."""
        return self._partition / layout.segment_name(self.active.base_offset)

    @property
    def quorum_controls(self) -> tuple[ControlRecord, ...]:
        """The quorum records that a new snapshot must repeat after its header (KIP-853)."""
        return tuple(each for each in (self._kraft_version, self._voters) if each is not None)

    def snapshot(self) -> Iterator[RecordBatch]:
        """Yield the batches of the newest snapshot, if there is one."""
        for raw in self.raw_snapshot():
            yield decoded(raw, str(self.snapshot_path))

    def raw_snapshot(self) -> Iterator[RawBatch]:
        """Yield the batches of the newest snapshot with undecoded records; use instead of `snapshot`."""
        if self.snapshot_id is None:
            return
        path = self.snapshot_path
        for raw in raw_snapshot_batches(self._storage.read(path), str(path)):
            if raw.is_control:
                self._note_controls(decoded(raw, str(path)), path)
            self.last_timestamp_ms = max(self.last_timestamp_ms, raw.max_timestamp_ms)
            yield raw

    @property
    def snapshot_path(self) -> Path:
        """The file of the newest snapshot, if there is one."""
        return self._partition / ("" if self.snapshot_id is None else self.snapshot_id.file_name)

    def legacy_bootstrap(self) -> Iterator[RecordBatch]:
        """Yield the batches of an old bootstrap file; used only if the log has no state yet.

        Afterwards `bootstrapped` is true, and a writer must copy their state into the log.
        """
        if self.snapshot_id is None and self._storage.exists(self._legacy_bootstrap):
            data = self._storage.read(self._legacy_bootstrap)
            yield from snapshot_batches(data, str(self._legacy_bootstrap))
            self.bootstrapped = True

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the batches of the log that the snapshot does not contain.

        Segments entirely below its end are not read, and batches below it are skipped by their headers: they
        do not contribute to the state.
        """
        start = self.next_offset
        if self.segments:
            if self.segments[0] > start:
                raise self._lacking(start, self.segments[0])
            needed = [base for base in self.segments if base > start]
            first = max(base for base in self.segments if base <= start)
            yield from self._read((first, *needed), start)
        if self.next_offset < self._reached_offset:
            raise LogDamagedError(
                f"`{self._partition}` has a snapshot up to offset {self._reached_offset - 1}, but "
                + ("its log is missing" if not self.segments else f"its log ends at {self.next_offset - 1}")
                + "; restore the directory from a copy, or, if that snapshot can be read, remove the "
                "segments, which it contains whole"
            )
        self._require_end()

    def _require_end(self) -> None:
        """Raise `LogDamagedError` if the log ends before its known end."""
        end = f"the metadata log in `{self._partition}` ends at offset {self.next_offset - 1}"
        remedy = (
            ": its end is missing; restore the directory from a copy, or, if it may be lost, "
            "let `kustos metadata repair` forget it"
        )
        if self.recovery_point is not None and self.next_offset < self.recovery_point:
            raise LogDamagedError(
                f"{end}, but `{layout.RECOVERY_POINT}` knows that {self.recovery_point - 1} was on the disk"
                + remedy
            )
        epoch, offset = self._begun_epochs[-1] if self._begun_epochs else (0, -1)
        if offset >= self.next_offset or epoch > self.epoch:
            raise LogDamagedError(
                f"{end} in epoch {self.epoch}, but `{layout.LEADER_EPOCH_CHECKPOINT}` knows of epoch {epoch} "
                f"from offset {offset} on{remedy}"
            )

    def _read(self, segments: tuple[int, ...], start: int) -> Iterator[RecordBatch]:
        offset, epoch = segments[0], 0 if segments[0] == 0 else UNKNOWN_EPOCH
        for base_offset in segments:
            if base_offset > offset:
                raise self._lacking(offset, base_offset)
            path = self._partition / layout.segment_name(base_offset)
            if base_offset < offset:
                raise LogDamagedError(
                    f"`{path}` begins at offset {base_offset}, but the segment before it reaches "
                    f"{offset - 1}: they overlap, and only one can be true; restore the directory from a copy"
                )
            self.active = ActiveSegment(base_offset)
            place = self._pass_over(path, LogPosition(0, offset, epoch), start)
            is_last = base_offset == segments[-1]
            reader = SegmentReader(
                self._read_rest(path, place.position),
                path,
                place.next_offset,
                place.epoch,
                is_last=is_last,
                recovery_point=self.recovery_point,
                position=place.position,
            )
            position = place.position
            for batch in reader:
                self._note(batch, path)
                size_bytes, position = reader.position - position, reader.position
                if batch.last_offset >= start:
                    if batch.base_offset < start:
                        raise LogDamagedError(
                            f"`{path}` has a batch from offset {batch.base_offset} to {batch.last_offset}, "
                            f"amid which the snapshot ends ({start - 1}); restore the directory from a copy"
                        )
                    self.unsnapshotted_bytes += 0 if batch.is_control else size_bytes
                    yield batch
            offset, epoch = reader.next_offset, reader.epoch
            self.active.size_bytes = reader.position
            self.torn = reader.torn
        if offset < start:
            raise LogDamagedError(
                f"`{self._partition}` has a snapshot up to offset {start - 1}, but its log ends at "
                f"{offset - 1}; restore the directory from a copy, or remove the segments, which the "
                "snapshot contains whole"
            )
        self.next_offset, self.epoch = offset, max(epoch, self.epoch)

    def _pass_over(self, path: Path, place: LogPosition, start: int) -> LogPosition:
        if place.next_offset >= start:
            return place
        passed = skip_batches(self._storage, path, place, start, lambda batch: self._note(batch, path))
        self.last_timestamp_ms = max(self.last_timestamp_ms, passed.last_timestamp_ms)
        return passed

    def _read_rest(self, path: Path, position: int) -> bytes:
        edge = position - position % SECTOR_SIZE_BYTES
        return self._storage.read_part(path, edge, max(0, self._storage.size_bytes(path) - edge))

    def _lacking(self, first: int, after: int) -> LogDamagedError:
        return LogDamagedError(
            f"`{self._partition}` lacks the offsets from {first} to {after - 1}: no snapshot "
            "and no segment holds them; restore the directory from a copy"
        )

    def _note(self, batch: RecordBatch, path: Path) -> None:
        if self.active.first_timestamp_ms is None:
            self.active.first_timestamp_ms = batch.max_timestamp_ms
        self.last_timestamp_ms = max(self.last_timestamp_ms, batch.max_timestamp_ms)
        epoch = batch.partition_leader_epoch
        if not self.epochs or (epoch > self.epochs[-1][0] and begins_epoch(batch)):
            self.epochs.append((epoch, batch.base_offset))
        if batch.is_control:
            self._note_controls(batch, path)

    def _note_controls(self, batch: RecordBatch, path: Path) -> None:
        try:
            controls = controls_of(batch)
        except RecordError as error:
            raise LogDamagedError(
                f"`{path}` has a control batch at offset {batch.base_offset} that is invalid: {error}"
                "; restore the directory from a copy"
            ) from error
        for control in controls:
            if isinstance(control, KRaftVersion) and control.kraft_version > KRAFT_VERSION_MAX:
                raise LogDamagedError(
                    f"`{path}` sets kraft.version to {control.kraft_version}, only levels up to "
                    f"{KRAFT_VERSION_MAX} are known here; a newer Kafka wrote it, use a newer kustos"
                )
            if isinstance(control, KRaftVersion):
                self._kraft_version = control
            elif isinstance(control, Voters):
                self._voters = control


def recovery_point_of(partition: Path, storage: Storage) -> int | None:
    """Return the offset below which the log was known to be durable, None if not recorded.

    Raises `LogDamagedError` if the file names none.
    """
    path = partition / layout.RECOVERY_POINT
    return layout.decode_recovery_point(storage.read(path), path) if storage.exists(path) else None


def begun_epochs(partition: Path, storage: Storage) -> tuple[tuple[int, int], ...]:
    """Return the epochs known to have begun in the log, with their first offsets.

    Raises `LogDamagedError` if the file that names them is malformed.
    """
    path = partition / layout.LEADER_EPOCH_CHECKPOINT
    return layout.decode_epochs(storage.read(path), path) if storage.exists(path) else ()
