"""A start reads from the snapshot on: what it stands for is passed over, and nothing else changes."""

import shutil
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import load, read_image
from kustos.metadata.directory.repair import carry_out, plan_repair
from kustos.metadata.errors import LogDamagedError
from kustos.metadata.log import LogPolicy, LogReader, SegmentReader, SnapshotId, header_walk
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage
from testkit.clocks import ManualClock
from testkit.metadata_logs import (
    acl,
    partition,
    segment,
    segments,
    snapshots,
    take_snapshot,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three epochs in one segment, a snapshot amid the third, and the bootstrap snapshot."""
    clock = ManualClock()
    format_directory(tmp_path / "log", acls=[acl("first")], clock=clock)
    for life in range(3):
        store = MetadataStore.open(tmp_path / "log", policy=LogPolicy(snapshot_record_bytes=1), clock=clock)
        for number in range(40):
            clock.now_ms += 7
            store.create_acls([acl(f"{life}-{number}-{part}" + "x" * 60) for part in range(number % 3 + 1)])
            if (life, number) == (2, 33):
                assert take_snapshot(store)
        store.close()
    return tmp_path / "log"


def newest(directory: Path) -> SnapshotId:
    id_ = SnapshotId.of(snapshots(directory)[-1] + ".checkpoint")
    assert id_ is not None
    return id_


def read_whole(directory: Path) -> tuple[LogReader, int]:
    """The log read from the bootstrap snapshot on, and how many ACLs there are."""
    reader = LogReader(directory, FileSystemStorage(), skipped=frozenset({newest(directory)}))
    for _ in reader.raw_snapshot():
        continue
    return reader, sum(len(batch.records) for batch in reader.batches() if not batch.is_control)


@pytest.mark.parametrize("window_size_bytes", [61, 200, 1000, 1024 * 1024])
def test_skipping_ends_where_reading_does(
    window_size_bytes: int, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_walk, "WINDOW_SIZE_BYTES", window_size_bytes)
    reader, builder = load(directory, FileSystemStorage())
    whole, acls = read_whole(directory)
    assert len(builder.view().acls) == acls + 1
    for name in ("next_offset", "epoch", "epochs", "last_timestamp_ms", "active", "torn", "quorum_controls"):
        assert getattr(reader, name) == getattr(whole, name), name
    assert reader.unsnapshotted_bytes < whole.unsnapshotted_bytes / 10


class Counting(FileSystemStorage):
    """Counts what is held of a segment at once."""

    largest = 0

    def read(self, path: Path) -> bytes:
        data = super().read(path)
        self._note(path, data)
        return data

    def read_part(self, path: Path, position: int, size_bytes: int) -> bytes:
        data = super().read_part(path, position, size_bytes)
        self._note(path, data)
        return data

    def _note(self, path: Path, data: bytes) -> None:
        if path.suffix == ".log":
            type(self).largest = max(self.largest, len(data))


def test_no_more_is_held_than_a_window_and_what_follows_the_snapshot(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_walk, "WINDOW_SIZE_BYTES", 512)
    Counting.largest = 0
    load(directory, Counting())
    assert segment(directory, 0).stat().st_size > 20_000
    assert Counting.largest < 6_000


def places(directory: Path) -> Iterator[tuple[int, int]]:
    """Where the batches of the log lie that the snapshot stands for: position and size."""
    path = segment(directory, 0)
    reader = SegmentReader(path.read_bytes(), path, 0, 0, is_last=True)
    position = 0
    for batch in reader:
        if batch.last_offset < newest(directory).end_offset:
            yield position, reader.position - position
        position = reader.position


def test_damage_that_the_snapshot_makes_good_is_told_by_verify_alone(directory: Path) -> None:
    before = read_image(directory)
    data = bytearray(segment(directory, 0).read_bytes())
    position, size = list(places(directory))[5]
    data[position + size - 10] ^= 0xFF
    segment(directory, 0).write_bytes(data)
    assert read_image(directory).same_state(before)
    assert run(["metadata", "verify", str(directory)]) == ExitCode.FAILED
    MetadataStore.open(directory).close()
    assert plan_repair(directory, FileSystemStorage()) is None
    # nor does it hide what follows the snapshot from a repair
    last = segment(directory, segments(directory)[-1])
    end = last.stat().st_size
    with last.open("ab") as file:
        file.write(b"\xa5" * 100)
    plan = plan_repair(directory, FileSystemStorage())
    assert plan is not None
    assert [(cut.path, cut.position, cut.size_bytes) for cut in plan.cuts] == [(last, end, 100)]
    carry_out(plan, FileSystemStorage())
    assert read_image(directory).same_state(before)
    # without the snapshot nothing stands for it
    (partition(directory) / newest(directory).file_name).unlink()
    with pytest.raises(LogDamagedError, match="fails its checksum"):
        read_image(directory)


@pytest.mark.parametrize(
    ("at", "form", "change"), [(0, ">q", 1), (0, ">q", -1), (8, ">i", 1), (8, ">i", 2**20), (16, ">b", 1)]
)
def test_heads_that_do_not_lead_to_the_snapshot_are_damage(
    at: int, form: str, change: int, directory: Path, tmp_path: Path
) -> None:
    whole = segment(directory, 0).read_bytes()
    for number, (position, _) in enumerate([*places(directory)][::12]):
        data = bytearray(whole)
        (value,) = struct.unpack_from(form, data, position + at)
        struct.pack_into(form, data, position + at, value + change)
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(directory, copy)
        segment(copy, 0).write_bytes(data)
        with pytest.raises(LogDamagedError, match="is damaged at offset"):
            load(copy, FileSystemStorage())


def test_a_log_that_is_cut_below_its_snapshot_is_missed_wherever_it_is_cut(directory: Path) -> None:
    whole = segment(directory, 0).read_bytes()
    for (position, _), (following, _) in list(pairwise(places(directory)))[-4:]:
        for size in (position, position + 30, position + 70, following - 1):
            segment(directory, 0).write_bytes(whole[:size])
            with pytest.raises(LogDamagedError):
                load(directory, FileSystemStorage())
