"""`kustos metadata verify`: whole logs pass, and damage is found with its place and a remedy."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.image import image_of
from kustos.metadata.inspection.verification import Verification, verify
from kustos.metadata.log import METADATA_PARTITION
from kustos.metadata.records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)
from kustos.runtime import FileSystemStorage
from kustos.wire.record_batch import batch_of
from tests.unit.metadata.inspection_support import (
    BATCHES,
    T0_MS,
    acl,
    directory_with,
    log_bytes,
    snapshot_bytes,
    token,
    user,
)

STATE = [record for batch in BATCHES for record in batch]
"""All records of the log, up to offset 10."""


def records_of_state() -> list[MetadataRecord]:
    return list(image_of(STATE).records())


def verified(*paths: Path) -> Verification:
    return verify(paths, FileSystemStorage())


def whole_directory(tmp_path: Path) -> Path:
    """Two segments, and a snapshot of all that is in the first."""
    second = log_bytes(((acl(5), acl(6)),), base_offset=11, epoch=2)
    snapshot = snapshot_bytes(*records_of_state(), last_contained_ms=T0_MS + 4000)
    return directory_with(tmp_path, log_0=log_bytes(), log_11=second, snapshot_11_1=snapshot)


def test_a_whole_directory_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = whole_directory(tmp_path)
    assert run(["metadata", "verify", str(directory), "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "whole": True,
        "segments": 2,
        "snapshots": 1,
        "batches": 10,
        "records": 22,
        "compared_snapshots": 1,
        "first_offset": 0,
        "last_offset": 13,
        "notes": [],
        "torn": [],
        "damage": [],
    }
    assert run(["metadata", "verify", str(directory)]) == ExitCode.OK
    assert capsys.readouterr().out.endswith("whole\n")


@settings(max_examples=150)
@given(data=st.data())
def test_no_flipped_bit_stays_unseen(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = whole_directory(tmp_path_factory.mktemp("flip"))
    partition = directory / METADATA_PARTITION
    # of the last segment a damaged end is an unfinished write, which is not damage
    path = data.draw(st.sampled_from(sorted(partition.iterdir())[:2]))
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(content))
    found = verified(directory)
    if path.suffix == ".log" or not in_epoch_field(bytes(content), bit // 8):
        assert not found.is_whole
        assert all(str(path) in each.message or "snapshot" in each.message for each in found.damage)
        assert all("restore" in each.message or "copy" in each.message for each in found.damage)


def in_epoch_field(content: bytes, position: int) -> bool:
    """Whether a byte is of a batch's epoch, which no checksum covers and a snapshot does not need."""
    start = 0
    while start < len(content):
        if start + 12 <= position < start + 16:
            return True
        start += 12 + int.from_bytes(content[start + 8 : start + 12], "big")
    return False


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ([acl(7)], "the ACL `AAAAAAAAAAAAAAAAAAAABw` is in the snapshot, but not in the log"),
        ([token("t2")], "the delegation token `t2` is in the snapshot, but not in the log"),
        ([user("bob")], "a SCRAM credential of `bob` is in the snapshot, but not in the log"),
        ([FeatureLevelRecord("metadata.version", 31)], "the feature `metadata.version` is another one"),
        (
            [RemoveAccessControlEntryRecord(UUID(int=3))],
            "the ACL `AAAAAAAAAAAAAAAAAAAAAw` is in the log, but not in the snapshot",
        ),
    ],
)
def test_a_snapshot_that_contradicts_the_log_is_found(
    changed: list[MetadataRecord], difference: str, tmp_path: Path
) -> None:
    snapshot = snapshot_bytes(*image_of([*STATE, *changed]).records())
    (damage,) = verified(directory_with(tmp_path, log_0=log_bytes(), snapshot_11_1=snapshot)).damage
    assert damage.offset == 11
    assert difference in damage.message


@pytest.mark.parametrize(
    ("name", "where"), [("snapshot_12_1", "the log ends at 10"), ("snapshot_5_1", "that is inside a batch")]
)
def test_a_snapshot_ends_where_a_batch_of_the_log_ends(name: str, where: str, tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(), **{name: snapshot_bytes(*STATE[:1])})
    (damage,) = verified(directory).damage
    assert where in damage.message


def test_a_snapshot_that_ends_amid_a_batch_does_not_hide_the_next(tmp_path: Path) -> None:
    state = image_of(record for batch in BATCHES[:2] for record in batch)
    directory = directory_with(
        tmp_path,
        log_0=log_bytes(),
        snapshot_5_1=snapshot_bytes(*STATE[:1]),
        snapshot_7_1=snapshot_bytes(*state.records()),
    )
    found = verified(directory)
    (damage,) = found.damage
    assert damage.offset == 5
    assert found.compared_snapshots == 1


def test_a_log_that_a_snapshot_precedes_is_compared_from_there_on(tmp_path: Path) -> None:
    tail = log_bytes(((acl(5),),), base_offset=11, epoch=2)
    later = image_of([*STATE, acl(5)])
    files = {"log_11": tail, "snapshot_11_1": snapshot_bytes(*records_of_state())}
    whole = directory_with(tmp_path / "whole", **files, snapshot_13_2=snapshot_bytes(*later.records()))
    found = verified(whole)
    assert (found.is_whole, found.compared_snapshots, found.snapshots) == (True, 1, 2)
    wrong = directory_with(tmp_path / "wrong", **files, snapshot_13_2=snapshot_bytes(*records_of_state()))
    (damage,) = verified(wrong).damage
    assert "the ACL `AAAAAAAAAAAAAAAAAAAABQ` is in the log, but not in the snapshot" in damage.message


def test_a_missing_segment_and_a_missing_beginning_are_found(tmp_path: Path) -> None:
    later = log_bytes(((acl(5),),), base_offset=20, epoch=2)
    (damage,) = verified(directory_with(tmp_path / "hole", log_0=log_bytes(), log_20=later)).damage
    assert "begins at offset 20, but offset 11 comes next" in damage.message
    (damage,) = verified(directory_with(tmp_path / "cut", log_20=later)).damage
    assert "lacks what was before offset 20" in damage.message


def test_one_run_tells_of_all_damage(tmp_path: Path) -> None:
    directory = whole_directory(tmp_path)
    partition = directory / METADATA_PARTITION
    for path in partition.iterdir():
        content = bytearray(path.read_bytes())
        content[70] ^= 0xFF
        path.write_bytes(bytes(content))
    (directory / "meta.properties").write_text("version=7\n")
    (partition / "quorum-state").write_text("{}")
    found = verified(directory)
    assert {each.path.name for each in found.damage} == {
        "meta.properties",
        "quorum-state",
        *(path.name for path in partition.iterdir()),
    }


def test_an_epoch_that_the_quorum_state_does_not_know_is_found(tmp_path: Path) -> None:
    directory = whole_directory(tmp_path)
    state = directory / METADATA_PARTITION / "quorum-state"
    state.write_text('{"leaderEpoch": 1}')
    (damage,) = verified(directory).damage
    assert "knows only epoch 1, but the log ends in epoch 2" in damage.message
    state.write_text('{"leaderEpoch": 2}')
    assert verified(directory).is_whole


def test_a_record_that_contradicts_the_log_is_found(tmp_path: Path) -> None:
    twice = (*BATCHES, (acl(1),))
    (damage,) = verified(directory_with(tmp_path, log_0=log_bytes(twice))).damage
    assert damage.offset == 11
    assert "a batch at offset 11 that cannot be applied" in damage.message


def test_a_record_that_a_newer_kafka_wrote_is_told_as_such(tmp_path: Path) -> None:
    unknown = batch_of(1, 1, T0_MS, [b"\x01\x63\x00whatever"]).encode()
    (damage,) = verified(directory_with(tmp_path, log_0=log_bytes(()) + unknown, snapshot_0_0=first())).damage
    assert "use a newer kustos" in damage.message


def first() -> bytes:
    return snapshot_bytes(FeatureLevelRecord("metadata.version", 30), epoch=0)


def test_an_unfinished_write_and_missing_properties_are_told_apart_from_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes() + b"\x00" * 30)
    (directory / "meta.properties").unlink()
    assert run(["metadata", "verify", str(directory)]) == ExitCode.FAILED
    assert run(["metadata", "verify", str(directory), "--ignore-torn-tail"]) == ExitCode.OK
    said = " ".join(capsys.readouterr().out.split())
    assert "30 bytes of an unfinished write" in said
    assert "no node starts on this directory" in said


def test_a_file_by_itself_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = whole_directory(tmp_path)
    for path in (directory / METADATA_PARTITION).iterdir():
        assert run(["metadata", "verify", str(path)]) == ExitCode.OK
        content = path.read_bytes()
        path.write_bytes(content[:70] + b"?" + content[71:])
        capsys.readouterr()
        assert run(["metadata", "verify", str(path)]) == ExitCode.FAILED
        said: Any = " ".join(capsys.readouterr().out.split())
        assert f"`{path}`" in said
        assert said.endswith("1 place damaged")


def test_what_would_keep_a_node_from_starting_is_found(tmp_path: Path) -> None:
    directory = whole_directory(tmp_path / "cut")
    (directory / METADATA_PARTITION / "kustos.active-segment").write_text("14\n")
    (damage,) = verified(directory).damage
    assert f"lacks its last segment, `{14:020d}.log`" in damage.message
    empty = directory_with(tmp_path / "empty", log_0=log_bytes(()), snapshot_0_0=snapshot_bytes(epoch=0))
    (damage,) = verified(empty).damage
    assert "lacks its beginning: no record sets metadata.version" in damage.message
    newer = log_bytes((*BATCHES, (FeatureLevelRecord("acl.version", 1),)))
    (damage,) = verified(directory_with(tmp_path / "newer", log_0=newer)).damage
    assert "the feature `acl.version` (at level 1) is not known here" in damage.message


def test_a_snapshot_amid_a_transaction_is_found(tmp_path: Path) -> None:
    version = FeatureLevelRecord("metadata.version", 30)
    snapshot = snapshot_bytes(version, BeginTransactionRecord("x"), acl(1), epoch=0)
    damage = verified(directory_with(tmp_path, snapshot_0_0=snapshot)).damage
    assert "ends amid a metadata transaction" in damage[0].message
