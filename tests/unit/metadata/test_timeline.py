"""A metadata directory back in time: `--at`, and how far back the files reach."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.errors import LogDamagedError
from kustos.metadata.image import EMPTY_IMAGE, AclAdded, AclRemoved, ImageBuilder, image_of
from kustos.metadata.inspection.moments import Moment
from kustos.metadata.inspection.timeline import OutOfReachError, StateAt, Timeline
from kustos.metadata.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from kustos.runtime import FileSystemStorage
from tests.unit.metadata.inspection_support import (
    BATCHES,
    T0_MS,
    acl,
    directory_with,
    log_bytes,
    snapshot_bytes,
)

ENDS = (0, 3, 6, 8, 10)
"""The last offset of each batch; the n-th came n seconds after the first."""


def timeline(directory: Path) -> Timeline:
    return Timeline(directory, FileSystemStorage())


def at(directory: Path, text: str) -> StateAt:
    return timeline(directory).state_at(Moment.parse(text))


def names(state: StateAt) -> list[str]:
    return sorted(binding.pattern.name for binding in state.image.acls.values())


@pytest.mark.parametrize(
    ("moment", "offset", "expected"),
    [
        ("0", 0, []),
        ("2", 0, []),  # amid a batch, which then was not in force
        ("3", 3, ["t1"]),
        ("5", 3, ["t1"]),
        ("6", 6, ["t1", "t2", "t3"]),
        ("8", 8, ["t1", "t3"]),
        ("9", 8, ["t1", "t3"]),
        ("10", 10, ["t1", "t3", "t4"]),
        ("2023-11-14T22:13:20", 0, []),
        ("2023-11-14T22:13:20.999Z", 0, []),
        ("2023-11-14T22:13:21Z", 3, ["t1"]),
        ("2023-11-14T23:13:22+01:00", 6, ["t1", "t2", "t3"]),
        ("2023-11-15", 10, ["t1", "t3", "t4"]),
    ],
)
def test_the_state_of_a_moment_is_what_was_in_force(
    moment: str, offset: int, expected: list[str], tmp_path: Path
) -> None:
    state = at(directory_with(tmp_path, log_0=log_bytes()), moment)
    assert (state.image.offset, names(state)) == (offset, expected)
    assert state.time_ms == T0_MS + 1000 * ENDS.index(offset)


def test_what_is_before_and_after_the_log_is_told(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    with pytest.raises(OutOfReachError, match=r"begins at 2023-11-14T22:13:20\.000Z: there was nothing yet"):
        at(directory, "2023-11-14T22:13:19Z")
    with pytest.raises(OutOfReachError, match=r"ends at offset 10, appended 2023.*there is no offset 11 yet"):
        at(directory, "11")


def test_a_log_that_retention_cut_says_how_far_it_reaches(tmp_path: Path) -> None:
    state = image_of([record for batch in BATCHES for record in batch])
    snapshot = snapshot_bytes(*state.records(), last_contained_ms=T0_MS + 4000)
    tail = log_bytes(((acl(5),),), base_offset=11, epoch=2)
    directory = directory_with(tmp_path, log_11=tail, snapshot_11_1=snapshot)
    for moment in ("9", "2023-11-14T22:13:23Z"):
        with pytest.raises(OutOfReachError) as caught:
            at(directory, moment)
        assert "reaches back only to offset 10, appended 2023-11-14T22:13:24.000Z" in str(caught.value)
        assert "00000000000000000011-0000000001.checkpoint" in str(caught.value)
        assert f"what was at `{moment}` is in no file any more" in str(caught.value)
    assert names(at(directory, "10")) == ["t1", "t3", "t4"]
    assert names(at(directory, "12")) == ["t1", "t3", "t4", "t5"]


def test_what_a_format_put_before_the_log_is_the_beginning(tmp_path: Path) -> None:
    first = snapshot_bytes(FeatureLevelRecord("metadata.version", 30), acl(9), last_contained_ms=0, epoch=0)
    directory = directory_with(tmp_path, log_0=log_bytes(((acl(1),),)), snapshot_0_0=first)
    # the snapshot was written a minute after the batches of these tests
    assert names(at(directory, "0")) == ["t9"]
    assert names(at(directory, "1")) == ["t1", "t9"]


def test_a_directory_without_a_beginning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogDamagedError, match="the snapshot before its log is missing"):
        timeline(directory_with(tmp_path, log_5=log_bytes((), base_offset=5)))


def test_a_missing_segment_stops_the_line(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(), log_20=log_bytes((), base_offset=20, epoch=2))
    assert names(at(directory, "6")) == ["t1", "t2", "t3"]
    with pytest.raises(LogDamagedError) as caught:
        at(directory, "20")
    assert str(caught.value) == (
        f"`{directory}` lacks the offsets from 11 to 19; restore the directory from a copy"
    )


def test_a_snapshot_behind_a_hole_begins_the_line_anew(tmp_path: Path) -> None:
    state = image_of([record for batch in BATCHES for record in batch])
    directory = directory_with(
        tmp_path,
        log_0=log_bytes(),
        log_20=log_bytes(((acl(7),),), base_offset=20, epoch=2),
        snapshot_20_1=snapshot_bytes(*state.records(), last_contained_ms=T0_MS),
    )
    assert names(at(directory, "21")) == ["t1", "t3", "t4", "t7"]
    assert names(at(directory, "6")) == ["t1", "t2", "t3"]


def test_a_segment_that_lies_below_the_beginning_is_not_read(tmp_path: Path) -> None:
    state = image_of([record for batch in BATCHES for record in batch])
    directory = directory_with(
        tmp_path,
        log_0=log_bytes(),
        log_11=log_bytes(((acl(7),),), base_offset=11, epoch=2),
        snapshot_11_1=snapshot_bytes(*state.records(), last_contained_ms=T0_MS),
    )
    log = directory / "__cluster_metadata-0" / f"{0:020d}.log"
    damaged = bytearray(log.read_bytes())
    damaged[-10] ^= 0xFF
    log.write_bytes(bytes(damaged))
    assert names(at(directory, "12")) == ["t1", "t3", "t4", "t7"]


def test_a_transaction_counts_from_its_end(tmp_path: Path) -> None:
    held: tuple[tuple[MetadataRecord, ...], ...] = (
        (FeatureLevelRecord("metadata.version", 30),),
        (BeginTransactionRecord("x"), acl(1)),
        (acl(2),),
        (EndTransactionRecord(),),
    )
    directory = directory_with(tmp_path, log_0=log_bytes(held))
    assert [names(at(directory, str(offset))) for offset in (1, 3, 4, 5)] == [[], [], [], ["t1", "t2"]]
    added = [(each.offset, each.time_ms) for each in timeline(directory).changes()][1:]
    assert added == [(5, T0_MS + 4000)] * 2


RECORDS = st.lists(
    st.lists(st.integers(1, 6).map(acl), min_size=1, max_size=2, unique_by=lambda each: each.id), max_size=6
)


@given(groups=RECORDS, data=st.data())
def test_the_state_at_an_offset_is_the_sum_of_the_records_up_to_it(
    groups: list[list[AccessControlEntryRecord]],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seen: set[object] = set()
    batches: list[tuple[MetadataRecord, ...]] = [(FeatureLevelRecord("metadata.version", 30),)]
    for group in groups:
        fresh = tuple(each for each in group if each.id not in seen)
        seen |= {each.id for each in fresh}
        batches += [fresh] if fresh else []
    log = log_bytes(tuple(batches))
    ends = [sum(map(len, batches[:count])) for count in range(len(batches) + 1)]
    cut = data.draw(st.sampled_from(ends))
    below = [record for batch in batches[: ends.index(cut)] for record in batch]
    snapshot = snapshot_bytes(*image_of(below).records(), last_contained_ms=T0_MS + 1000 * ends.index(cut))
    files = {"log_0": log}
    if cut:
        files[f"snapshot_{cut + 1}_1"] = snapshot
    directory = directory_with(tmp_path_factory.mktemp("line"), **files)
    for count, end in enumerate(ends):
        expected = ImageBuilder(EMPTY_IMAGE)
        expected.replay_all(record for batch in batches[:count] for record in batch)
        assert at(directory, str(end)).image.same_state(expected.view())


def test_the_changes_of_a_line_add_up_to_its_end(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    line = timeline(directory)
    there: set[AclBinding] = set(line.oldest().image.acls.values())
    offsets = []
    for each in line.changes():
        offsets.append((each.offset, each.batch_base_offset))
        if isinstance(each.change, AclAdded):
            there.add(each.change.binding)
        elif isinstance(each.change, AclRemoved):
            there.remove(each.change.binding)
    assert there == set(at(directory, "10").image.acls.values())
    assert offsets == [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4), (7, 7), (9, 9), (10, 9)]


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "-1", "99999-01-01"])
def test_what_names_no_moment_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="neither an offset nor a time"):
        Moment.parse(text)
    assert run(["what-can", "User:a", "--metadata-dir", str(tmp_path), f"--at={text}"]) == ExitCode.USAGE
    assert "neither an offset nor a time" in capsys.readouterr().err


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return directory_with(tmp_path, log_0=log_bytes())


def test_questions_are_answered_as_of_a_moment(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = ["--metadata-dir", str(directory)]
    read = ["--operation", "Read", "--topic", "t2"]
    explain = ["explain", "--principal", "User:alice", *read, *source, "--exit-code"]
    assert run([*explain, "--at", "6"]) == ExitCode.OK
    as_of, note = capsys.readouterr().err.splitlines()
    assert as_of == "as of offset 6, appended 2023-11-14T22:13:22.000Z"
    assert note.startswith("note: super.users and allow.everyone.if.no.acl.found are unknown for ")
    assert run([*explain, "--at", "8"]) == ExitCode.NO
    assert run(explain) == ExitCode.NO
    capsys.readouterr()
    assert run(["who-can", *read, *source, "--at", "2023-11-14T22:13:22Z"]) == ExitCode.OK
    assert "User:alice" in capsys.readouterr().out
    assert run(["what-can", "User:alice", *source, "--at", "3"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "t1" in out
    assert "t3" not in out
    assert run(["acls", "list", *source, "--at", "8", "--principal", "User:alice", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["resource_name"] for each in document["acls"]] == ["t1", "t3"]
    assert run(["acls", "list", *source, "--topic", "t4", "-o", "json"]) == ExitCode.OK
    assert len(json.loads(capsys.readouterr().out)["acls"]) == 1


def test_a_policy_held_until_somebody_broke_it(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nstatements:\n- never: User:alice READ topic t2\n")
    ask = ["verify", str(policy), "--metadata-dir", str(directory), "-o", "json"]
    held = {at: run([*ask, "--at", at]) for at in ("3", "6", "8")}
    assert held == {"3": ExitCode.OK, "6": ExitCode.NO, "8": ExitCode.OK}
    assert "as of offset 6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ats", "gained", "lost"),
    [
        (["6"], ["t4"], ["t2"]),
        (["3"], ["t3"], []),
        (["3", "6"], ["t2", "t3"], []),
        (["6", "8"], [], ["t2"]),
        (["8", "8"], [], []),
    ],
)
def test_two_moments_are_compared(
    ats: list[str], gained: list[str], lost: list[str], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [word for moment in ats for word in ("--at", moment)]
    assert run(["diff", str(directory), *arguments, "-o", "json"]) == ExitCode.OK
    text = capsys.readouterr().out
    document = json.loads(text)
    # the DENY for t4 takes away nothing that was there
    assert {name for name in ("t2", "t3") if name in json.dumps(document)} == {
        name for name in (*gained, *lost) if name != "t4"
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["diff", "a.yaml"],
        ["diff", "a.yaml", "--at", "3"],
        ["diff", "a", "b", "--at", "1", "--at", "2", "--at", "3"],
        ["who-can", "--operation", "Read", "--topic", "t", "--acls", "a.yaml", "--at", "3"],
        ["acls", "list", "--bootstrap-server", "h:1", "--at", "3"],
        ["acls", "list", "--bootstrap-server", "h:1", "--metadata-dir", "d"],
    ],
)
def test_a_moment_needs_a_directory(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == ExitCode.USAGE
    assert capsys.readouterr().out == ""


def test_out_of_reach_is_an_error_of_the_command(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["acls", "list", "--metadata-dir", str(directory), "--at", "99"]) == ExitCode.FAILED
    assert "there is no offset 99 yet" in capsys.readouterr().err
