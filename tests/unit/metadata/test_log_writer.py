"""The writer: what it writes in which order, when it begins a segment, and when it stops for good."""

import errno
import json
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import load
from kustos.metadata.errors import (
    BatchTooLargeError,
    DirectoryError,
    LogDamagedError,
    LogFailedError,
    LogFullError,
    RecordError,
)
from kustos.metadata.log import MAX_BATCH_SIZE_BYTES, LogPolicy, LogWriter, SegmentReader, layout, writer
from kustos.metadata.log.writer import encode_values
from kustos.metadata.records import FeatureLevelRecord, LeaderChange, NoOpRecord, controls_of, encode_record
from kustos.runtime import AppendFile, FileSystemStorage
from kustos.wire.record_batch import batch_of
from testkit.clocks import ManualClock
from testkit.metadata_logs import partition, segment, segments

NOTHING = [NoOpRecord()]
BATCH_BYTES = len(batch_of(0, 0, 0, [encode_record(NoOpRecord())]).encode())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_directory(tmp_path / "log", clock=ManualClock(1_000))
    return tmp_path / "log"


class Watched(FileSystemStorage):
    """Notes in which order files are written, and fails where it is told to."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.fails_at = ""

    def write(self, path: Path, data: bytes, mode: int = 0o644) -> None:
        self.written.append(path.name)
        if path.name == self.fails_at:
            raise OSError(5, "no")
        super().write(path, data, mode)


def opened(
    directory: Path,
    policy: LogPolicy | None = None,
    clock: ManualClock | None = None,
    storage: FileSystemStorage | None = None,
) -> LogWriter:
    storage = storage or FileSystemStorage()
    reader, _ = load(directory, storage)
    return LogWriter(directory, storage, clock or ManualClock(), reader, policy or LogPolicy())


def begun(directory: Path, policy: LogPolicy | None = None, clock: ManualClock | None = None) -> LogWriter:
    log = opened(directory, policy, clock)
    log.begin_epoch(1)
    return log


def test_an_epoch_is_claimed_before_it_is_used_and_noted_afterwards(directory: Path) -> None:
    storage, clock = Watched(), ManualClock(5_000)
    log = opened(directory, clock=clock, storage=storage)
    assert (log.last_offset, log.next_offset, log.epoch) == (-1, 0, 0)
    log.begin_epoch(7)
    assert storage.written == ["kustos.recovery-point", "quorum-state", "leader-epoch-checkpoint"]
    assert (log.last_offset, log.next_offset, log.epoch) == (0, 1, 1)
    state = json.loads((partition(directory) / "quorum-state").read_text())
    assert (state["leaderId"], state["leaderEpoch"]) == (7, 1)
    (batch,) = SegmentReader(segment(directory, 0).read_bytes(), segment(directory, 0), 0, 0, is_last=True)
    assert controls_of(batch) == [LeaderChange(7, (7,), (7,))]
    assert (batch.partition_leader_epoch, batch.max_timestamp_ms) == (1, 5_000)
    log.close()


def test_an_epoch_that_was_claimed_by_a_start_that_crashed_is_not_used_again(directory: Path) -> None:
    begun(directory).close()
    (partition(directory) / "quorum-state").write_text('{"leaderEpoch":7}')
    log = begun(directory)
    assert log.epoch == 8
    log.close()
    checkpoint = (partition(directory) / "leader-epoch-checkpoint").read_text()
    assert checkpoint == "0\n2\n1 0\n8 1\n"


def test_a_log_beyond_its_claimed_epoch_is_damaged(directory: Path) -> None:
    for _ in range(2):
        begun(directory).close()
    (partition(directory) / "quorum-state").write_text('{"leaderEpoch":1}')
    with pytest.raises(LogDamagedError) as caught:
        opened(directory)
    assert str(caught.value) == (
        f"the metadata log in `{partition(directory)}` ends in epoch 2, but `quorum-state` knows only 1; "
        "restore the directory from a copy"
    )


@pytest.mark.parametrize(("epochs", "told"), [("1 0\n2 2\n", (2, 2)), ("1 0\n3 1\n", (3, 1))])
def test_a_log_that_ends_before_an_epoch_that_began_in_it_is_damaged(
    epochs: str, told: tuple[int, int], directory: Path
) -> None:
    for _ in range(2):
        begun(directory).close()
    (partition(directory) / "leader-epoch-checkpoint").write_text(f"0\n2\n{epochs}")
    with pytest.raises(LogDamagedError) as caught:
        opened(directory)
    assert str(caught.value) == (
        f"the metadata log in `{partition(directory)}` ends at offset 1 in epoch 2, but "
        f"`leader-epoch-checkpoint` knows of epoch {told[0]} from offset {told[1]} on: its end is missing; "
        "restore the directory from a copy, or, if it may be lost, let `kustos metadata repair` forget it"
    )


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_a_log_that_ends_before_its_recovery_point_is_damaged(lag: int, directory: Path) -> None:
    log = begun(directory)
    log.append([NOTHING, NOTHING])
    log.close()
    point = partition(directory) / "kustos.recovery-point"
    assert point.read_bytes() == b"%020d\n" % 3
    # a power cut may keep an older one
    point.write_bytes(b"%020d\n" % (3 - lag))
    whole = segment(directory, 0).read_bytes()
    opened(directory).close()
    assert point.read_bytes() == b"%020d\n" % 3, "what was read was written again, durably"
    segment(directory, 0).write_bytes(whole[:-BATCH_BYTES])
    with pytest.raises(LogDamagedError) as caught:
        opened(directory)
    assert str(caught.value) == (
        f"the metadata log in `{partition(directory)}` ends at offset 1, but `kustos.recovery-point` knows "
        "that 2 was on the disk: its end is missing; restore the directory from a copy, or, if it may be "
        "lost, let `kustos metadata repair` forget it"
    )
    for text in (b"", b"3\n", b"%020d" % 3, bytes(21)):
        point.write_bytes(text)
        with pytest.raises(LogDamagedError, match=r"recovery-point` names no offset; restore it from"):
            opened(directory)


def test_a_recovery_point_that_cannot_be_written_acknowledges_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = begun(directory)

    def fail(*_: object) -> int:
        raise OSError(5, "no")

    with monkeypatch.context() as patched:
        patched.setattr("kustos.runtime.storage.os.pwrite", fail)
        with pytest.raises(LogFailedError):
            log.append([NOTHING])
    with pytest.raises(LogFailedError):
        log.append([NOTHING])
    log.close()
    storage = Watched()
    storage.fails_at = "kustos.recovery-point"
    with pytest.raises(LogFailedError, match=r"could not be written .*check the disk and"):
        opened(directory, storage=storage)


def test_a_log_of_nobody_is_not_continued(directory: Path) -> None:
    begun(directory).close()
    (partition(directory) / "quorum-state").unlink()
    with pytest.raises(DirectoryError) as caught:
        opened(directory)
    assert str(caught.value) == (
        f"`{partition(directory)}` holds a log without `quorum-state`: a copy of another's, such as a node "
        "keeps in cluster mode, and to continue it here would part it from the original; name another "
        "directory in `metadata.log.dir`, or restore the missing file"
    )


def test_groups_are_batches_of_one_write(directory: Path) -> None:
    clock = ManualClock(9_000)
    log = begun(directory, clock=clock)
    before = log.written_bytes
    clock.now_ms = 10_000
    assert log.append([NOTHING * 2, NOTHING]) == [2, 3]
    assert (log.last_offset, log.last_timestamp_ms) == (3, 10_000)
    assert log.append([]) == []
    clock.now_ms = 8_000  # a clock that goes back
    assert log.append([NOTHING]) == [4]
    assert (log.last_offset, log.last_timestamp_ms) == (4, 10_000)
    log.close()
    batches = list(
        SegmentReader(segment(directory, 0).read_bytes(), segment(directory, 0), 0, 0, is_last=True)
    )
    assert [(each.base_offset, each.last_offset, each.max_timestamp_ms) for each in batches[1:]] == [
        (1, 2, 10_000),
        (3, 3, 10_000),
        (4, 4, 8_000),
    ]
    assert log.written_bytes - before == sum(len(each.encode()) for each in batches[1:])


def test_a_segment_ends_before_the_batch_that_does_not_fit(directory: Path) -> None:
    log = begun(directory)
    first = segment(directory, 0).stat().st_size
    log.close()
    # room for the next leader's batch and two more, to the byte
    policy = LogPolicy(segment_bytes=2 * first + 2 * BATCH_BYTES)
    log = begun(directory, policy)
    log.append([NOTHING, NOTHING])
    assert segments(directory) == [0]
    with capture_logs() as logs:
        assert log.append([NOTHING]) == [4]
    assert segments(directory) == [0, 4]
    assert log.active_base_offset == 4
    assert logs == [
        {
            "event": "began a new segment of the metadata log",
            "log_level": "info",
            "path": str(segment(directory, 4)),
        }
    ]
    assert (partition(directory) / "kustos.active-segment").read_text() == "4\n"
    log.close()
    tighter = begun(directory, LogPolicy(segment_bytes=first + BATCH_BYTES - 1))
    assert segments(directory) == [0, 4, 5]
    tighter.close()


def test_many_groups_fill_segment_after_segment(directory: Path) -> None:
    log = begun(directory, LogPolicy(segment_bytes=2 * BATCH_BYTES))
    assert log.append([NOTHING] * 7) == list(range(1, 8))
    log.close()
    # the leader's batch is larger than one of ours
    sizes = [segment(directory, base).stat().st_size // BATCH_BYTES for base in segments(directory)[1:]]
    assert sizes[:-1] == [2] * (len(sizes) - 1)
    assert sum(sizes) in {6, 7}
    reader, _ = load(directory, FileSystemStorage())
    assert reader.next_offset == 8


def test_no_write_is_larger_than_what_is_saved_again_at_a_start(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = begun(directory)
    sizes: list[int] = []
    append = type(log._file).append

    def noting(file: AppendFile, data: bytes) -> None:
        sizes.append(len(data))
        append(file, data)

    monkeypatch.setattr(type(log._file), "append", noting)
    monkeypatch.setattr(writer, "UNSYNCED_MAX_BYTES", 3 * BATCH_BYTES)
    log.append([NOTHING] * 7)
    log.close()
    assert sizes == [3 * BATCH_BYTES, 3 * BATCH_BYTES, BATCH_BYTES]


def test_at_a_start_the_end_of_the_log_is_saved_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten: list[tuple[str, int]] = []

    def noting(_: object, path: Path, position: int) -> None:
        rewritten.append((path.name, position))

    monkeypatch.setattr(FileSystemStorage, "rewrite", noting)
    log = begun(directory)
    assert rewritten == [], "there was nothing yet"
    log.append([NOTHING])
    log.close()
    size_bytes = segment(directory, 0).stat().st_size
    begun(directory).close()
    assert rewritten == [(segment(directory, 0).name, 0)]
    monkeypatch.setattr(writer, "UNSYNCED_MAX_BYTES", 10)
    size_bytes = segment(directory, 0).stat().st_size
    opened(directory).close()
    assert rewritten[1:] == [(segment(directory, 0).name, size_bytes - 10)]


@pytest.mark.parametrize("file", ["quorum-state", "leader-epoch-checkpoint"])
def test_an_epoch_that_the_disk_does_not_take_never_begins(file: str, directory: Path) -> None:
    storage = Watched()
    log = opened(directory, storage=storage)
    storage.fails_at = file
    for _ in range(2):
        with pytest.raises(LogFailedError) as caught:
            log.begin_epoch(1)
        storage.fails_at = ""
        assert str(caught.value) == (
            f"the metadata log in `{partition(directory)}` could not be written (no); nothing is "
            "acknowledged any more, check the disk and restart"
        )
    with pytest.raises(LogFailedError):
        log.append([NOTHING])
    log.close()


def test_a_segment_that_cannot_be_begun_ends_the_log(directory: Path) -> None:
    storage = Watched()
    log = opened(directory, LogPolicy(segment_bytes=1), storage=storage)
    log.begin_epoch(1)
    storage.fails_at = "kustos.active-segment"
    with pytest.raises(LogFailedError):
        log.append([NOTHING])
    storage.fails_at = ""
    with pytest.raises(LogFailedError):
        log.append([NOTHING])
    assert log.last_offset == 0
    log.close()


@pytest.mark.parametrize(
    ("writes", "fails"), [(0, LogFullError), (1, LogFailedError)], ids=["first write", "second write"]
)
def test_only_a_full_disk_before_any_fsync_can_be_taken_back(
    directory: Path, monkeypatch: pytest.MonkeyPatch, writes: int, fails: type[Exception]
) -> None:
    """A batch that was synced and not acknowledged cannot be taken back: the log ends."""
    log = begun(directory)
    size_bytes = segment(directory, 0).stat().st_size
    real, left = os.write, writes

    def full(descriptor: int, data: bytes) -> int:
        nonlocal left
        left -= 1
        if left >= 0:
            return real(descriptor, data)
        real(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(writer, "UNSYNCED_MAX_BYTES", 1)
    with monkeypatch.context() as patched:
        patched.setattr("kustos.runtime.storage.os.write", full)
        with pytest.raises(fails):
            log.append([[NOTHING[0]], [NOTHING[0]]])
    if fails is LogFullError:
        assert segment(directory, 0).stat().st_size == size_bytes
        assert log.append([NOTHING]) == [1]
    else:
        with pytest.raises(LogFailedError):
            log.append([NOTHING])
    log.close()


@pytest.mark.parametrize(("is_created", "fails"), [(False, LogFullError), (True, LogFailedError)])
def test_a_new_segment_waits_for_room_unless_its_file_is_there(
    directory: Path, monkeypatch: pytest.MonkeyPatch, is_created: bool, fails: type[Exception]
) -> None:
    """XFS and Btrfs have no room for a new file; one whose name could not be synced must not be passed by."""
    log = begun(directory, LogPolicy(segment_bytes=1))
    before = segments(directory)

    class Full(FileSystemStorage):
        def open_append(self, path: Path) -> AppendFile:
            if is_created:
                super().open_append(path).close()
            raise OSError(errno.ENOSPC, "no space left on device")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(log, "_storage", Full())
        patched.setattr("kustos.runtime.storage.os.write", full)
        with pytest.raises(fails):
            log.append([NOTHING])
    if fails is LogFullError:
        assert segments(directory) == before
        assert log.append([NOTHING]) == [1]
        assert len(segments(directory)) == len(before) + 1
    log.close()
    reader, _ = load(directory, FileSystemStorage())
    assert reader.next_offset == (1 if is_created else 2)


def test_a_full_disk_that_fsync_reports_ends_the_log(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = begun(directory)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("kustos.runtime.storage.os.fsync", full)
        with pytest.raises(LogFailedError):
            log.append([NOTHING])
    with pytest.raises(LogFailedError):
        log.append([NOTHING])
    log.close()


def test_an_interrupt_amid_a_write_ends_the_log_too(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = begun(directory)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(log._file), "sync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append([NOTHING])
    with pytest.raises(LogFailedError):
        log.append([NOTHING])
    assert log.last_offset == 0
    log.close()


def test_a_record_that_cannot_be_expressed_costs_nothing(directory: Path) -> None:
    log = begun(directory)
    size_bytes = segment(directory, 0).stat().st_size
    with pytest.raises(RecordError):
        log.append([NOTHING, [FeatureLevelRecord("x" * 40_000, 1)]])
    assert segment(directory, 0).stat().st_size == size_bytes
    assert log.append([NOTHING]) == [1]
    log.close()


def test_a_batch_is_measured_when_it_comes_close_to_its_limit() -> None:
    value_bytes = len(encode_record(FeatureLevelRecord("x" * 32_000, 1)))
    count = MAX_BATCH_SIZE_BYTES // value_bytes
    records = [FeatureLevelRecord("x" * 32_000, 1)] * count
    size_bytes = len(batch_of(0, 0, 0, map(encode_record, records)).encode())
    last = FeatureLevelRecord("x" * (32_000 - (size_bytes - MAX_BATCH_SIZE_BYTES)), 1)
    exact = [*records[:-1], last]
    assert len(batch_of(0, 0, 0, encode_values(exact)).encode()) == MAX_BATCH_SIZE_BYTES
    over = [*records[:-1], FeatureLevelRecord(last.name + "x", 1)]
    with pytest.raises(BatchTooLargeError) as caught:
        encode_values(over)
    assert str(caught.value) == (
        f"The total record(s) size of {MAX_BATCH_SIZE_BYTES + 1} exceeds the maximum allowed batch size of "
        f"{MAX_BATCH_SIZE_BYTES}"
    )


class Starved(FileSystemStorage):
    """Has no file descriptor where it is told to have none."""

    def __init__(self) -> None:
        self.lacks: set[str] = set()

    def open_append(self, path: Path) -> AppendFile:
        self._take(path)
        return super().open_append(path)

    def write(self, path: Path, data: bytes, mode: int = 0o644) -> None:
        self._take(path)
        super().write(path, data, mode)

    def _take(self, path: Path) -> None:
        if self.lacks & {path.name, path.suffix}:
            raise OSError(errno.EMFILE, "too many open files", str(path))


@pytest.mark.parametrize("lacks", [{".log"}, {"kustos.active-segment"}, {".log", "kustos.active-segment"}])
def test_a_want_of_descriptors_ends_nothing(directory: Path, lacks: set[str]) -> None:
    storage = Starved()
    log = opened(directory, LogPolicy(segment_bytes=1), storage=storage)
    log.begin_epoch(1)
    storage.lacks = lacks
    assert log.append([NOTHING, NOTHING]) == [1, 2]
    assert log.append([NOTHING]) == [3]
    storage.lacks = set()
    assert log.append([NOTHING]) == [4]
    log.close()
    again, _ = load(directory, FileSystemStorage())
    assert again.next_offset == 5
    names = storage.names(partition(directory))
    last = max(name for name in names if name.endswith(".log"))
    assert last == "00000000000000000004.log"
    marker = partition(directory) / layout.ACTIVE_SEGMENT
    assert layout.decode_active_segment(marker.read_bytes(), marker) == 4
