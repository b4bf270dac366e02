"""From where a log leads on to its end without a gap, and what is told where it does not."""

from pathlib import Path

import pytest

from kustos.metadata.errors import LogDamagedError
from kustos.metadata.image import image_of
from kustos.metadata.inspection.timeline import Timeline
from kustos.metadata.records import FeatureLevelRecord
from kustos.runtime import FileSystemStorage
from tests.unit.metadata.inspection_support import (
    BATCHES,
    T0_MS,
    acl,
    directory_with,
    log_bytes,
    snapshot_bytes,
)

VERSION = FeatureLevelRecord("metadata.version", 30)
STATE = snapshot_bytes(*image_of([record for batch in BATCHES for record in batch]).records())
SECOND = log_bytes(((acl(5),),), base_offset=11, epoch=2)


def timeline(directory: Path) -> Timeline:
    return Timeline(directory, FileSystemStorage())


def refusal(directory: Path) -> str:
    with pytest.raises(LogDamagedError) as caught:
        timeline(directory).unbroken()
    return str(caught.value)


def test_a_whole_log_is_unbroken_from_its_beginning(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(), log_11=SECOND, snapshot_11_1=STATE)
    line = timeline(directory)
    assert [each.offset for each in line.beginnings] == [0, 11]
    assert (line.unbroken().offset, line.unbroken().is_first) == (0, True)
    changes = [change.offset for change in line.passage(line.unbroken()).changes()]
    assert changes[-1] == 12
    assert [change.offset for change in line.passage(line.beginnings[1]).changes()] == [12]
    # up to an offset, not including it
    assert max(change.offset for change in line.passage(line.unbroken(), 9).changes()) < 9


def test_behind_a_hole_the_snapshot_there_is_where_it_begins(tmp_path: Path) -> None:
    later = log_bytes(((acl(6),),), base_offset=20, epoch=3)
    directory = directory_with(tmp_path, log_0=log_bytes(), log_20=later, snapshot_20_2=STATE)
    begun = timeline(directory).unbroken()
    assert (begun.offset, begun.is_first, begun.snapshot is not None) == (20, False, True)
    without = directory_with(tmp_path / "without", log_0=log_bytes(), log_20=later, snapshot_11_1=STATE)
    assert refusal(without) == (
        f"`{without}` lacks offsets before 20, and no snapshot covers them; restore the directory from a copy"
    )


def test_a_log_that_ends_before_its_snapshot_has_lost_its_end(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(), snapshot_12_1=STATE)
    assert refusal(directory) == (
        f"`{directory}` has a snapshot up to offset 11, but its log ends at 10; restore the directory from a "
        "copy"
    )
    fits = directory_with(tmp_path / "fits", log_0=log_bytes(), snapshot_11_1=STATE)
    assert timeline(fits).unbroken().offset == 0
    alone = directory_with(tmp_path / "alone", snapshot_12_1=STATE)
    assert timeline(alone).unbroken().offset == 12


def test_what_was_torn_from_the_end_does_not_count(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes() + b"\x00" * 20, log_11=SECOND)
    assert timeline(directory).unbroken().offset == 0
    lost = directory_with(tmp_path / "lost", log_0=log_bytes()[:-1], log_11=SECOND, snapshot_11_1=STATE)
    assert timeline(lost).unbroken().offset == 11


def test_the_oldest_state_is_that_of_the_first_beginning(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_11=SECOND, snapshot_11_1=STATE)
    oldest = timeline(directory).oldest()
    assert (oldest.image.offset, oldest.image.epoch, oldest.time_ms) == (10, 1, T0_MS)
    assert oldest.text == "offset 10, appended 2023-11-14T22:13:20.000Z"
    whole = timeline(directory_with(tmp_path / "whole", log_0=log_bytes())).oldest()
    assert (whole.image.offset, whole.image.epoch, whole.time_ms) == (-1, 0, T0_MS)
    assert whole.text == "the beginning, 2023-11-14T22:13:20.000Z"


def test_a_snapshot_without_a_time_has_that_of_its_writing(tmp_path: Path) -> None:
    untimed = snapshot_bytes(VERSION, last_contained_ms=0)
    oldest = timeline(directory_with(tmp_path, snapshot_11_1=untimed)).oldest()
    assert oldest.time_ms == T0_MS + 60_000


def test_no_snapshot_that_can_be_read_is_no_beginning(tmp_path: Path) -> None:
    empty = directory_with(tmp_path / "empty", log_11=SECOND, snapshot_11_1=b"")
    path = empty / "__cluster_metadata-0" / "00000000000000000011-0000000001.checkpoint"
    with pytest.raises(LogDamagedError, match=f"^the snapshot `{path}` is damaged: "):
        timeline(empty)
    missing = directory_with(tmp_path / "missing", log_11=SECOND)
    with pytest.raises(LogDamagedError) as caught:
        timeline(missing)
    assert str(caught.value) == (
        f"`{missing}` holds no state to begin with: the snapshot before its log is missing; restore the "
        "directory from a copy"
    )
