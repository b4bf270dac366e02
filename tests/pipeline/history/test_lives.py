"""The lives of what a metadata log tells of: theorems on random logs, and examples of odd directories."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.metadata.errors import LogDamagedError, MetadataError, TornTailError
from kustos.metadata.inspection.moments import Moment
from kustos.metadata.inspection.timeline import Timeline
from kustos.pipeline.history.lives import microseconds, rows_of
from kustos.pipeline.history.source import TABLES
from kustos.runtime import FileSystemStorage
from kustos.wire import uuid_text
from tests.pipeline.history.worlds import T0_MS, State, World, is_at_rest, random_world

STORAGE = FileSystemStorage()


def table(directory: Path, name: str, end_offset: int | None = None) -> list[dict[str, Any]]:
    names = TABLES[name].fieldNames()
    return [dict(zip(names, row, strict=True)) for row in rows_of(directory, name, STORAGE, end_offset)]


def alive(rows: list[dict[str, Any]], offset: int) -> list[dict[str, Any]]:
    return [
        row
        for row in rows
        if row["valid_from_offset"] <= offset
        and (row["valid_to_offset"] is None or offset < row["valid_to_offset"])
    ]


def acls_of(state: State) -> set[tuple[Any, ...]]:
    return {
        (
            uuid_text(acl_id), ResourceType(kind).name, name, PatternType(pattern).name, principal, host,
            AclOperation(operation).name, AclPermissionType(permission).name,
        )
        for acl_id, (kind, name, pattern, principal, host, operation, permission) in state.acls.items()
    }  # fmt: skip


MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def check(directory: Path, world: World, since: int) -> None:
    """At each offset from `since` on the rows that were valid then are the state."""
    acls, scram = table(directory, "acls"), table(directory, "scram_credentials")
    tokens = table(directory, "delegation_tokens")
    acl_columns = [*TABLES["acls"].fieldNames()[:8]]
    for offset, state in enumerate(world.states()):
        if offset < since:
            continue
        found = [tuple(row[name] for name in acl_columns) for row in alive(acls, offset)]
        assert len(found) == len(set(found))
        assert set(found) == acls_of(state)
        credentials = {(row["user"], row["mechanism"]): row["iterations"] for row in alive(scram, offset)}
        assert credentials == {(user, MECHANISMS[code]): n for (user, code), n in state.scram.items()}
        assert len(credentials) == len(alive(scram, offset))
        expiries = [(row["token_id"], row["expiry_time"]) for row in alive(tokens, offset)]
        assert sorted(expiries) == sorted(
            (name, microseconds(token.expiration_timestamp_ms)) for name, token in state.tokens.items()
        )
    for row in [*acls, *scram, *tokens]:
        if not row["is_in_first_snapshot"]:
            assert row["valid_from_time"] == time_of(world, row["valid_from_offset"])
        if row["valid_to_offset"] is not None:
            assert row["valid_to_time"] == time_of(world, row["valid_to_offset"])


def time_of(world: World, offset: int) -> int:
    batch = next(number for number, end in enumerate(world.ends) if offset <= end)
    return world.latest_ms(batch) * 1000


@given(random=st.randoms(use_true_random=False))
def test_at_every_offset_the_rows_valid_then_are_the_state(random: Random) -> None:
    world = random_world(random)
    with tempfile.TemporaryDirectory() as folder:
        check(world.write(Path(folder, "whole")), world, since=0)


@given(random=st.randoms(use_true_random=False))
def test_a_history_that_begins_at_a_snapshot_is_the_end_of_the_whole_one(random: Random) -> None:
    world = random_world(random, batches=10)
    rests = [number for number in range(len(world.batches)) if is_at_rest(world, number)]
    oldest, newer = sorted(random.choices(rests, k=2))
    first = random.randint(0, oldest + 1)
    with tempfile.TemporaryDirectory() as folder:
        whole = world.write(Path(folder, "whole"))
        # `first` below the oldest snapshot: segments that go further back than any state
        cut = world.write(Path(folder, "cut"), first=max(first, 1), snapshots=[oldest, newer])
        since = world.ends[oldest]
        check(cut, world, since)
        (log_range,) = table(cut, "range")
        assert (log_range["from_offset"], log_range["to_offset"]) == (since, world.ends[-1])
        assert log_range["is_in_transaction"] is not is_at_rest(world, len(world.batches) - 1)
        for name in ("acls", "scram_credentials", "delegation_tokens"):
            later = [row for row in table(whole, name) if (row["valid_to_offset"] or since + 1) > since]
            for row in later:
                if row["valid_from_offset"] <= since:
                    times = world.latest_ms(oldest) * 1000
                    row.update(valid_from_offset=since, valid_from_time=times, is_in_first_snapshot=True)
            assert sorted(map(repr, table(cut, name))) == sorted(map(repr, later))


@given(random=st.randoms(use_true_random=False))
def test_at_the_end_of_each_batch_the_rows_are_what_the_timeline_says(random: Random) -> None:
    world = random_world(random)
    with tempfile.TemporaryDirectory() as folder:
        directory = world.write(Path(folder, "log"))
        acls, line = table(directory, "acls"), Timeline(directory, STORAGE)
        for end in world.ends:
            image = line.state_at(Moment("", offset=end)).image
            assert {row["acl_id"] for row in alive(acls, end)} == set(map(uuid_text, image.acls))


@given(random=st.randoms(use_true_random=False), data=st.data())
def test_nothing_from_the_end_offset_on_is_told(random: Random, data: st.DataObject) -> None:
    world = random_world(random)
    number = data.draw(st.integers(0, len(world.batches) - 1))
    shorter = World(world.batches[: number + 1], world.times_ms[: number + 1])
    with tempfile.TemporaryDirectory() as folder:
        long, short = world.write(Path(folder, "long")), shorter.write(Path(folder, "short"))
        for name in TABLES:
            assert table(long, name, world.ends[number] + 1) == table(short, name)


def test_secrets_are_in_no_row(tmp_path: Path) -> None:
    directory = random_world(Random(7), batches=30).write(tmp_path / "log")
    told = repr([table(directory, name) for name in TABLES])
    assert "SCRAM-SHA-256" in told
    assert not any(word in told for word in ("the-salt", "the-stored-key", "the-server-key"))


def holed(tmp_path: Path) -> tuple[World, Path, Path]:
    """A directory whose log lacks its middle; the last segment begins after batch 5."""
    world = random_world(Random(3), batches=9, with_transactions=False)
    directory = world.write(tmp_path / "log", snapshots=[6])
    partition = directory / "__cluster_metadata-0"
    early = World(world.batches[:3], world.times_ms[:3])
    (partition / f"{0:020d}.log").write_bytes(early.log())
    (partition / f"{world.ends[5] + 1:020d}.log").write_bytes(world.log(6))
    return world, directory, partition


def test_a_history_begins_at_the_snapshot_after_a_gap(tmp_path: Path) -> None:
    world, directory, _ = holed(tmp_path)
    check(directory, world, since=world.ends[6])
    (log_range,) = table(directory, "range")
    assert (log_range["from_offset"], log_range["is_whole"]) == (world.ends[6], False)


def test_a_gap_that_no_snapshot_bridges_is_an_error(tmp_path: Path) -> None:
    _, directory, partition = holed(tmp_path)
    for path in partition.glob("*.checkpoint"):
        path.unlink()
    with pytest.raises(LogDamagedError, match="no snapshot covers them"):
        table(directory, "acls")


def test_a_log_that_ends_before_its_snapshot_is_an_error(tmp_path: Path) -> None:
    world, directory, partition = holed(tmp_path)
    (partition / f"{world.ends[5] + 1:020d}.log").unlink()
    with pytest.raises(LogDamagedError, match="but its log ends at"):
        table(directory, "acls")


def test_a_snapshot_alone_is_a_history_without_changes(tmp_path: Path) -> None:
    world, _, partition = holed(tmp_path)
    (snapshot,) = partition.glob("*.checkpoint")
    rows = table(snapshot, "acls")
    assert {row["acl_id"] for row in rows} == {uuid_text(each) for each in world.states()[world.ends[6]].acls}
    assert all(row["is_in_first_snapshot"] and row["valid_to_offset"] is None for row in rows)
    assert {row["valid_from_offset"] for row in rows} == {world.ends[6]}


def test_a_torn_tail_is_left_out_and_damage_before_it_is_an_error(tmp_path: Path) -> None:
    world = random_world(Random(5), batches=6, with_transactions=False)
    directory = world.write(tmp_path / "log")
    (log,) = (directory / "__cluster_metadata-0").glob("*.log")
    data = log.read_bytes()
    log.write_bytes(data[:-3])
    with pytest.raises(TornTailError, match="bytes of an unfinished write"):
        table(directory, "range")
    (log_range,) = rows_of(directory, "range", STORAGE, ignore_torn_tail=True)
    assert log_range[TABLES["range"].fieldNames().index("to_offset")] == world.ends[-2]
    middle = bytearray(data)
    middle[len(data) // 2] ^= 0xFF
    log.write_bytes(middle)
    with pytest.raises(LogDamagedError, match="is damaged at offset"):
        table(directory, "acls")


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match="nor a metadata directory"):
        table(tmp_path, "acls")


def test_a_time_beyond_what_spark_shows_is_cut() -> None:
    assert microseconds(2**63 - 1) == 253_402_300_799_999_000
    assert microseconds(T0_MS) == T0_MS * 1000
