"""Segments: when one is begun, how many are read as one log, and what is damage."""

import json
import shutil
from pathlib import Path

import pytest

from kustos.acl import AclBindingFilter
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import BatchTooLargeError, LogDamagedError
from kustos.metadata.log import MAX_BATCH_SIZE_BYTES, LogPolicy
from kustos.metadata.log.writer import encode_values
from kustos.metadata.records import FeatureLevelRecord
from kustos.metadata.store.store import CreateAcls, MetadataStore
from kustos.wire import ErrorCode
from kustos.wire.record_batch import batch_of
from testkit.clocks import ManualClock
from testkit.metadata_logs import (
    SMALL_SEGMENTS,
    acl,
    many_segments,
    partition,
    segment,
    segments,
)


def test_a_segment_is_closed_before_it_would_exceed_its_size_and_all_are_read(tmp_path: Path) -> None:
    directory = many_segments(tmp_path / "log")
    bases = segments(directory)
    assert len(bases) > 3
    assert all(segment(directory, base).stat().st_size <= SMALL_SEGMENTS.segment_bytes for base in bases)
    names = {binding.pattern.name for binding in read_image(directory).acls.values()}
    assert names == {"first", *(f"t{number}" for number in range(12))}
    store = MetadataStore.open(directory, policy=SMALL_SEGMENTS)
    store.create_acls([acl("after")])
    store.close()
    assert len(read_image(directory).acls) == 14


def test_requests_of_one_write_may_lie_in_two_segments(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    store = MetadataStore.open(directory, policy=SMALL_SEGMENTS)
    store.append_many([CreateAcls((acl(f"t{number}"),)) for number in range(12)])
    store.close()
    assert len(segments(directory)) > 2
    assert len(read_image(directory).acls) == 12


def test_a_segment_is_closed_when_it_is_old(tmp_path: Path) -> None:
    directory, clock = tmp_path / "log", ManualClock()
    format_directory(directory, clock=clock)
    store = MetadataStore.open(directory, policy=LogPolicy(segment_ms=1000), clock=clock)
    clock.now_ms += 1000
    store.create_acls([acl("in-time")])
    assert segments(directory) == [0]
    assert not list(directory.rglob("kustos.active-segment")), "the first one is begun by nobody"
    clock.now_ms += 1
    store.create_acls([acl("late")])
    assert segments(directory) == [0, 2]
    store.close()
    # the age of a segment survives a restart
    clock.now_ms += 1001
    MetadataStore.open(directory, policy=LogPolicy(segment_ms=1000), clock=clock).close()
    assert segments(directory) == [0, 2, 3]


@pytest.mark.parametrize("position", [0, 1, -1])
def test_a_segment_that_is_missing_stops_the_start(tmp_path: Path, position: int) -> None:
    directory = many_segments(tmp_path / "log")
    segment(directory, segments(directory)[position]).unlink()
    with pytest.raises(LogDamagedError, match="lacks"):
        MetadataStore.open(directory)


def test_a_log_that_lost_its_end_at_a_batch_stops_the_start(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    MetadataStore.open(directory).close()
    size_bytes = segment(directory, 0).stat().st_size
    MetadataStore.open(directory).close()
    with segment(directory, 0).open("r+b") as file:
        file.truncate(size_bytes)
    with pytest.raises(LogDamagedError, match="its end is missing"):
        MetadataStore.open(directory)


def test_segments_that_overlap_stop_the_start(tmp_path: Path) -> None:
    directory = many_segments(tmp_path / "log")
    second = segments(directory)[1]
    shutil.copy(segment(directory, second), segment(directory, second + 1))
    with pytest.raises(LogDamagedError, match="overlap"):
        MetadataStore.open(directory)


def test_only_the_last_segment_may_be_torn(tmp_path: Path) -> None:
    directory = many_segments(tmp_path / "log")
    bases = segments(directory)
    for base in (bases[0], bases[1], bases[-1]):
        copy = tmp_path / f"copy-{base}"
        shutil.copytree(directory, copy)
        with segment(copy, base).open("ab") as file:
            file.write(b"\x00\x00\x00")
        if base == bases[-1]:
            MetadataStore.open(copy).close()
            assert read_image(copy).same_state(read_image(directory))
        else:
            with pytest.raises(LogDamagedError, match=f"{base:020d}.log"):
                MetadataStore.open(copy)


def test_a_request_larger_than_a_batch_fails_alone_and_nothing_of_it_is_written(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    store = MetadataStore.open(directory)
    huge = CreateAcls(tuple(acl(f"{number:05d}" * 6000) for number in range(300)))
    before, mixed, deletion = store.append_many([CreateAcls((acl("a"),)), huge, CreateAcls((acl("b"),))])
    assert [result.error for result in (*before, *deletion)] == [None, None]
    # as Kafka 4.3.1 answers it
    assert {result.error.code for result in mixed} == {ErrorCode.unknown_server_error}
    assert len(mixed) == 300
    assert {binding.pattern.name for binding in store.image.acls.values()} == {"a", "b"}
    # the store goes on
    assert store.delete_acls([AclBindingFilter()])[0].error is None
    store.close()
    assert segment(directory, 0).stat().st_size < 1000
    assert not read_image(directory).acls


def test_the_largest_batch_is_eight_mebibytes(tmp_path: Path) -> None:
    def records(total: int) -> list[FeatureLevelRecord]:
        return [FeatureLevelRecord("x" * 32_000, 1)] * (total // 32_100)

    count = len(encode_values(records(MAX_BATCH_SIZE_BYTES)))
    while True:
        wanted = [FeatureLevelRecord("x" * 32_000, 1)] * count
        try:
            values = encode_values(wanted)
        except BatchTooLargeError:
            break
        assert len(batch_of(0, 0, 0, values).encode()) <= MAX_BATCH_SIZE_BYTES
        count += 1
    assert count > 260


def test_each_start_begins_the_next_epoch_and_the_files_say_where(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    for start in range(1, 5):
        store = MetadataStore.open(directory, policy=SMALL_SEGMENTS)
        assert store.image.epoch == start
        store.create_acls([acl(f"{start}-a")])
        store.create_acls([acl(f"{start}-b")])
        store.close()
    checkpoint = (partition(directory) / "leader-epoch-checkpoint").read_text()
    assert checkpoint == "0\n4\n1 0\n2 3\n3 6\n4 9\n"
    state = json.loads((partition(directory) / "quorum-state").read_text())
    assert (state["leaderEpoch"], state["leaderId"], state["data_version"]) == (4, 1, 0)
