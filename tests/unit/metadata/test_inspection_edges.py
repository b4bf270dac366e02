"""What the metadata tools do at the edges: rare records, rare files, and what does not fit together."""

import io
import json
import sys
from pathlib import Path
from uuid import UUID

import pytest

from kustos.acl.forms import LINE_CHARACTERS_MAX
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from kustos.metadata.errors import DirectoryError, LogDamagedError
from kustos.metadata.features import LATEST_LEVEL
from kustos.metadata.image import image_of
from kustos.metadata.inspection.dump import DumpedBatch, TornBytes, dump_file
from kustos.metadata.inspection.files import begins_itself, files_of
from kustos.metadata.inspection.moments import Moment
from kustos.metadata.inspection.shell import MetadataShell
from kustos.metadata.inspection.shown import shown_control
from kustos.metadata.inspection.sources import DirectorySource, FileSource, PastSource
from kustos.metadata.inspection.timeline import Timeline
from kustos.metadata.inspection.tree import tree_of
from kustos.metadata.inspection.verification import verify
from kustos.metadata.log import METADATA_PARTITION, SnapshotId
from kustos.metadata.portable import PortableError, apply_export, export_lines, read_export
from kustos.metadata.portable.values import UnfitValueError, mechanism, whole_number
from kustos.metadata.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    FeatureLevelRecord,
    KRaftVersion,
    LeaderChange,
    MetadataRecord,
    NoOpRecord,
    UnknownControl,
    UserScramCredentialRecord,
    Voter,
    VoterEndpoint,
    Voters,
)
from kustos.runtime import FileSystemStorage, SystemClock
from kustos.wire.record_batch import CONTROL_BIT, Record, RecordBatch, batch_of
from tests.unit.cli.test_storage import ACL
from tests.unit.metadata.inspection_support import (
    BATCHES,
    T0_MS,
    acl,
    directory_with,
    log_bytes,
    snapshot_bytes,
    token,
)

STORAGE = FileSystemStorage()
VERSION = FeatureLevelRecord("metadata.version", 30)


def test_control_records_are_shown_as_kafka_names_their_fields() -> None:
    voters = Voters((Voter(1, UUID(int=5), (VoterEndpoint("CONTROLLER", "h", 9093),), 0, 1),))
    assert shown_control(voters).value == {
        "voters": [
            {
                "voterId": 1,
                "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAABQ",
                "endpoints": [{"name": "CONTROLLER", "host": "h", "port": 9093}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
        ]
    }
    assert (shown_control(voters).kind, shown_control(voters).version) == ("KRAFT_VOTERS", None)
    assert shown_control(KRaftVersion(1)).value == {"kRaftVersion": 1}
    unknown = shown_control(UnknownControl(77, b"secret"))
    assert (unknown.kind, unknown.value) == ("control kind 77", None)


def test_a_control_record_that_says_nothing_is_shown_as_malformed(tmp_path: Path) -> None:
    odd = RecordBatch(0, 1, (Record(0, b"", key=b"\x00"),), attributes=CONTROL_BIT)
    directory = directory_with(tmp_path, log_0=odd.encode())
    (part,) = dump_file(files_of(directory, STORAGE)[0], STORAGE)
    assert isinstance(part, DumpedBatch)
    assert [record.shown.kind for record in part.records] == ["(malformed)"]


def test_what_a_newer_kafka_may_add_is_named_by_number() -> None:
    unknown: list[MetadataRecord] = [
        UserScramCredentialRecord("a", 9, b"s", b"k", b"v", 1),
        ConfigRecord(77, "r", "n", "v"),
    ]
    shell = MetadataShell(tree_of(image_of([VERSION, *unknown]), "1"))
    assert list(shell.run_line("ls /scram")) == ["9/"]
    assert list(shell.run_line("tree /configs")) == ["configs/", "  77/", "    r/", "      n: v"]
    assert shell.path == "/"
    lines = list(export_lines(image_of([VERSION, *unknown]), with_credentials=True))
    assert json.loads(lines[2])["mechanism"] == 9
    assert image_of([each.record for each in read_export(lines, "f").records]).same_state(
        image_of([VERSION, *unknown])
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", False),
        (log_bytes(()), False),
        (log_bytes(((VERSION,),)), True),
        (log_bytes(((NoOpRecord(),), (BeginTransactionRecord(None), VERSION))), True),
        (log_bytes(((acl(1),), (VERSION,))), False),
        (log_bytes(((FeatureLevelRecord("group.version", 1), VERSION),)), False),
        (log_bytes(()) + b"?" * 100, False),
        (log_bytes(()) + batch_of(1, 1, T0_MS, [b"\x01\x63\x00"]).encode(), False),
    ],
)
def test_a_log_begins_itself_if_it_sets_metadata_version_first(data: bytes, expected: bool) -> None:
    assert begins_itself(data) is expected


def test_a_partition_by_itself_is_a_directory(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(), snapshot_0_0=snapshot_bytes(VERSION, epoch=0))
    found = files_of(directory / METADATA_PARTITION, STORAGE)
    assert [file.path.suffix for file in found] == [".checkpoint", ".log"]
    assert [file.base_offset for file in found] == [None, 0]
    assert [file.snapshot_id for file in found] == [SnapshotId(0, 0), None]
    (tmp_path / "empty" / METADATA_PARTITION).mkdir(parents=True)
    with pytest.raises(DirectoryError, match="holds neither a segment nor a snapshot"):
        files_of(tmp_path / "empty", STORAGE)


def test_a_snapshot_whose_records_contradict_each_other_is_damage(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, snapshot_0_0=snapshot_bytes(VERSION, acl(1), acl(1), epoch=0))
    (damage,) = verify([directory], STORAGE).damage
    assert "cannot be applied: two ACLs have the id" in damage.message
    assert damage.path.suffix == ".checkpoint"


def test_the_oldest_snapshot_ends_where_a_batch_ends(tmp_path: Path) -> None:
    tail = log_bytes(((acl(1), acl(2)),), base_offset=5)
    directory = directory_with(tmp_path, log_5=tail, snapshot_7_1=snapshot_bytes(VERSION))
    damage = verify([directory], STORAGE).damage
    assert "the oldest snapshot ends inside it, before offset 7" in damage[0].message
    assert damage[0].offset == 6


def test_a_bootstrap_file_of_older_kafkas_is_checked_too(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    (directory / "bootstrap.checkpoint").write_bytes(b"?" * 100)
    (damage,) = verify([directory], STORAGE).damage
    assert damage.path == directory / "bootstrap.checkpoint"


def test_a_directory_of_snapshots_alone_has_its_states(tmp_path: Path) -> None:
    later = snapshot_bytes(VERSION, acl(1), last_contained_ms=T0_MS + 500)
    directory = directory_with(
        tmp_path, snapshot_3_1=snapshot_bytes(VERSION, last_contained_ms=T0_MS), snapshot_6_1=later
    )
    line = Timeline(directory, STORAGE)
    assert [each.offset for each in line.beginnings] == [3, 6]
    assert len(line.state_at(Moment.parse("5")).image.acls) == 1
    assert len(line.state_at(Moment.parse("2")).image.acls) == 0
    assert line.oldest().image.epoch == 1
    assert list(line.changes()) == []


def test_a_batch_that_cannot_be_applied_ends_the_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(((VERSION, acl(1)), (acl(1),))))
    assert run(["metadata", "history", str(directory)]) == ExitCode.FAILED
    assert "the batch at offset 3 of the log" in capsys.readouterr().err


def test_an_earlier_state_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    assert run(["metadata", "export", str(directory), "--out", "-", "--at", "3"]) == ExitCode.OK
    said = capsys.readouterr()
    head, *lines = [json.loads(line) for line in said.out.splitlines()]
    assert (head["offset"], head["epoch"], head["lines"]) == (3, 1, len(lines))
    assert sum(line["kind"] == "acl" for line in lines) == 1
    assert said.err.startswith("as of offset 3")


def test_what_the_directory_holds_must_fit_the_level_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    acls = tmp_path / "acls.jsonl"
    acls.write_text(json.dumps({**ACL, "host": "10.0.0.0/8"}) + "\n")
    arguments = ["storage", "format", "-t", "random", "-d", str(tmp_path / "meta"), "--acls", str(acls)]
    assert run([*arguments, "--feature", "metadata.version=4.4-IV2"]) == ExitCode.OK
    lines = "".join(export_lines(image_of([VERSION]), with_credentials=False))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert run(["metadata", "import", "-", str(tmp_path / "meta")]) == ExitCode.FAILED
    assert "does not fit the metadata.version of the export" in capsys.readouterr().err


def test_an_import_raises_the_level_before_it_looks_at_acls(tmp_path: Path) -> None:
    wide = image_of([FeatureLevelRecord("metadata.version", LATEST_LEVEL), acl(1)])
    lines = [line.replace('"*"', '"10.0.0.0/8"') for line in export_lines(wide, with_credentials=False)]
    # the level may come last
    lines = [lines[0], lines[2], lines[1]]
    format_directory(tmp_path / "meta")
    image = apply_export(tmp_path / "meta", read_export(lines, "f"), STORAGE, SystemClock())
    assert image.metadata_version == LATEST_LEVEL
    assert [binding.entry.host for binding in image.acls.values()] == ["10.0.0.0/8"]


def test_damage_is_told_with_its_file_and_offset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = bytearray(log_bytes(((acl(5),), (acl(6),)), base_offset=11, epoch=2))
    second[len(log_bytes((), base_offset=11, epoch=2)) + 70] ^= 0xFF
    directory = directory_with(tmp_path, log_0=log_bytes(), log_11=bytes(second))
    segment = directory / METADATA_PARTITION / f"{11:020d}.log"
    assert run(["metadata", "dump", str(segment)]) == ExitCode.FAILED
    assert f"`{segment}` cannot be read from byte" in (said := capsys.readouterr().err)
    assert "where offset 12 is due" in said
    assert run(["acls", "list", "--metadata-dir", str(directory), "--at", "2030-01-01"]) == ExitCode.FAILED
    assert f"`{segment}` is damaged at offset 12" in capsys.readouterr().err


def test_an_unfinished_write_in_a_later_segment_is_no_damage(tmp_path: Path) -> None:
    torn = log_bytes(((acl(5),),), base_offset=11, epoch=2)[:-10]
    directory = directory_with(tmp_path, log_0=log_bytes(), log_11=torn)
    found = verify([directory], STORAGE)
    assert (found.damage, len(found.torn), found.last_offset) == ([], 1, 11)
    timeline = Timeline(directory, STORAGE, ignore_torn_tail=True)
    assert timeline.state_at(Moment.parse("11")).image.offset == 11
    parts = list(dump_file(files_of(directory, STORAGE)[1], STORAGE))
    assert isinstance(parts[-1], TornBytes)
    whole_size = len(log_bytes((), base_offset=11, epoch=2))
    assert (parts[-1].position, parts[-1].size_bytes) == (whole_size, len(torn) - whole_size)


def test_a_setting_that_differs_is_named_unless_it_is_a_topics(tmp_path: Path) -> None:
    logged = (VERSION, ConfigRecord(4, "1", "a.b", "x"), ConfigRecord(2, "t", "c.d", "x"))
    kept = (VERSION, ConfigRecord(4, "1", "a.b", "y"))
    files = {"log_0": log_bytes((logged,)), "snapshot_4_1": snapshot_bytes(*kept)}
    (damage,) = verify([directory_with(tmp_path, **files)], STORAGE).damage
    assert "the setting `a.b` is another one in the log than in the snapshot" in damage.message
    whole = {**files, "snapshot_4_1": snapshot_bytes(*logged[:2])}
    assert verify([directory_with(tmp_path / "topic", **whole)], STORAGE).is_whole


def test_names_of_all_scripts_are_shown_as_they_are() -> None:
    odd = AccessControlEntryRecord(UUID(int=1), 2, "näme", 4, "User:ü", "*", 3, 3)
    image = image_of([VERSION, FeatureLevelRecord("group.version", 1), odd])
    shell = MetadataShell(tree_of(image, "1"))
    assert '  "resource_name": "näme",' in list(shell.run_line("cat /acl/id/*"))
    assert next(iter(shell.run_line("grep näme /acl/id"))).endswith('"permission_type": "ALLOW"}')
    assert list(shell.run_line("tree /features"))[1:] == [
        "  group.version: 1",
        "  metadata.version: 30 (4.3-IV0)",
    ]
    assert list(shell.run_line("tree /acl/by-principal"))[2] == (
        "    AAAAAAAAAAAAAAAAAAAAAQ: ALLOW READ to User:ü from * on TOPIC näme (prefix)"
    )
    assert list(shell.run_line("tree /provenance /local")) == [
        "provenance: offset -1, epoch 0",
        "local/",
        "  version: 1",
    ]


def test_sources_are_called_by_their_paths(tmp_path: Path) -> None:
    for source in (DirectorySource(tmp_path, STORAGE), FileSource(tmp_path, STORAGE)):
        assert source.name == str(tmp_path)
    past = PastSource(tmp_path, Moment.parse("2026-11-03"), STORAGE)
    assert past.name == f"{tmp_path} at 2026-11-03"


def test_a_line_has_a_limit() -> None:
    with pytest.raises(PortableError) as caught:
        read_export(["x" * (LINE_CHARACTERS_MAX + 1)], "f")
    assert str(caught.value) == f"f, line 1: the line has more than {LINE_CHARACTERS_MAX} characters"


def test_a_damaged_snapshot_is_told_with_its_file_and_remedy(tmp_path: Path) -> None:
    data = snapshot_bytes(VERSION, acl(1))
    directory = directory_with(tmp_path, log_0=log_bytes(), snapshot_4_1=data[:-10])
    (damage,) = verify([directory], STORAGE).damage
    path = directory / METADATA_PARTITION / f"{4:020d}-{1:010d}.checkpoint"
    assert (damage.path, damage.offset) == (path, None)
    assert damage.message.startswith(f"the snapshot `{path}` is damaged: at byte ")
    assert damage.message.endswith("; restore it from a copy")


@pytest.mark.parametrize("position", [30, -100], ids=["its head", "its records"])
def test_the_log_stands_in_for_a_damaged_snapshot(position: int, tmp_path: Path) -> None:
    data = bytearray(snapshot_bytes(*image_of([r for b in BATCHES for r in b]).records()))
    data[position] ^= 0xFF
    directory = directory_with(tmp_path, log_0=log_bytes(), snapshot_11_1=bytes(data))
    assert len(Timeline(directory, STORAGE).state_at(Moment.parse("10")).image.acls) == 3
    alone = directory_with(tmp_path / "alone", snapshot_11_1=bytes(data))
    with pytest.raises(LogDamagedError, match="is damaged: at byte"):
        Timeline(alone, STORAGE).state_at(Moment.parse("10"))


def test_all_that_is_read_is_told_to_who_shows_progress(tmp_path: Path) -> None:
    files = {"log_0": log_bytes(), "log_11": log_bytes(((acl(5),), (acl(6),)), base_offset=11, epoch=2)}
    files["snapshot_11_1"] = snapshot_bytes(*image_of([r for b in BATCHES for r in b]).records())
    files["snapshot_14_2"] = snapshot_bytes(
        *image_of([*(r for b in BATCHES for r in b), acl(5), acl(6)]).records(), epoch=2
    )
    directory = directory_with(tmp_path, **files)
    done: list[int] = []
    found = verify([directory], STORAGE, done.append)
    assert (found.is_whole, found.compared_snapshots) == (True, 2)
    assert sum(done) == sum(map(len, files.values()))


def test_a_state_that_a_snapshot_holds_has_its_epoch(tmp_path: Path) -> None:
    snapshot = snapshot_bytes(VERSION, acl(1), last_contained_ms=T0_MS, epoch=7)
    directory = directory_with(tmp_path, snapshot_3_7=snapshot)
    state = Timeline(directory, STORAGE).state_at(Moment.parse("2"))
    assert (state.image.offset, state.image.epoch, state.time_ms) == (2, 7, T0_MS)


def test_a_leaders_change_and_a_token_are_shown_whole() -> None:
    assert shown_control(LeaderChange(1, (1, 2), (2,))).value == {
        "leaderId": 1,
        "voters": [{"voterId": 1}, {"voterId": 2}],
        "grantingVoters": [{"voterId": 2}],
    }
    shell = MetadataShell(tree_of(image_of([VERSION, token()]), "1"))
    assert json.loads("\n".join(shell.run_line("cat /delegationToken/token-1"))) == {
        "token_id": "token-1",
        "owner": "User:a",
        "requester": "User:b",
        "renewers": ["User:c"],
        "issue_timestamp": "1970-01-01T00:00:00.001Z",
        "max_timestamp": "1970-01-01T00:00:00.003Z",
        "expiration_timestamp": "1970-01-01T00:00:00.002Z",
    }


def test_a_mechanism_without_a_name_is_its_number() -> None:
    assert [mechanism(value) for value in (0, 3, 127, "SCRAM-SHA-512")] == [0, 3, 127, 2]
    with pytest.raises(UnfitValueError):
        mechanism(128)


def test_a_file_without_its_beginning_is_named(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, snapshot_0_0=snapshot_bytes(acl(1), epoch=0))
    path = directory / METADATA_PARTITION / SnapshotId(0, 0).file_name
    with pytest.raises(LogDamagedError, match=f"^the log in `{path}` lacks its beginning"):
        FileSource(path, STORAGE).image()


@pytest.mark.parametrize("value", [["SCRAM-SHA-256"], 1, True, None, "SCRAM_SHA_256", 300])
def test_only_the_name_of_a_mechanism_names_it(value: object) -> None:
    with pytest.raises(UnfitValueError, match="must be SCRAM-SHA-256 or SCRAM-SHA-512"):
        mechanism(value)


@pytest.mark.parametrize(("value", "fits"), [(0, False), (1, True), (3, True), (4, False), (2.0, False)])
def test_a_number_has_bounds(value: object, fits: bool) -> None:
    checked = whole_number(1, 3)
    if fits:
        assert checked(value) == value
    else:
        with pytest.raises(UnfitValueError, match="must be a whole number from 1 to 3"):
            checked(value)


def test_each_batch_is_dumped_where_it_lies(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    parts = list(dump_file(files_of(directory, STORAGE)[0], STORAGE))
    position = 0
    for part in parts:
        assert isinstance(part, DumpedBatch)
        assert part.position == position
        position += part.size_bytes
    assert position == len(log_bytes())
