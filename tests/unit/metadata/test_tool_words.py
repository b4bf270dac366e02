"""The tools of the metadata to the letter: what is shown of a record, refused of a value, told of damage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kustos.metadata.image import image_of
from kustos.metadata.inspection.shown import ShownRecord, shown_control, shown_record, shown_value
from kustos.metadata.inspection.tree import Leaf, Node, tree_of
from kustos.metadata.inspection.verification import Damage, Verification, verify
from kustos.metadata.log import METADATA_PARTITION
from kustos.metadata.portable.values import (
    UnfitValueError,
    mechanism,
    octets,
    text,
    texts,
    truth,
    uuid,
    whole_number,
)
from kustos.metadata.records import (
    BeginTransactionRecord,
    ConfigRecord,
    FeatureLevelRecord,
    LeaderChange,
    MetadataRecord,
    OpaqueRecord,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    encode_record,
)
from kustos.runtime import FileSystemStorage
from tests.unit.metadata.inspection_support import (
    BATCHES,
    acl,
    directory_with,
    log_bytes,
    snapshot_bytes,
    user,
)

VERSION = FeatureLevelRecord("metadata.version", 30)


@pytest.mark.parametrize(
    ("form", "value", "rule"),
    [
        (truth, 1, "must be true or false"),
        (truth, None, "must be true or false"),
        (text, 1, "must be a text"),
        (text, "\ud800", "holds half of a surrogate pair, which UTF-8 cannot express"),
        (text, "x" * 32_768, "has more than 32767 bytes of UTF-8, which no record holds"),
        (texts, "User:a", "must be a list of at most 10000 texts"),
        (texts, ["a"] * 10_001, "must be a list of at most 10000 texts"),
        (texts, [1], "must be a text"),
        (uuid, "short", "must be a UUID in 22 characters of URL-safe Base64"),
        (octets, "se cret", "must be Base64"),
        (octets, "é", "must be Base64"),
        (mechanism, "SCRAM-MD5", "must be SCRAM-SHA-256 or SCRAM-SHA-512"),
        (whole_number(1, 3), True, "must be a whole number from 1 to 3"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_rule_alone(
    form: Callable[[Any], Any], value: Any, rule: str
) -> None:
    with pytest.raises(UnfitValueError) as caught:
        form(value)
    assert str(caught.value) == rule


def test_values_that_fit_are_what_a_record_holds() -> None:
    assert (truth(True), truth(False), text("x" * 32_767)) == (True, False, "x" * 32_767)
    assert texts(["a"] * 10_000) == ("a",) * 10_000
    assert uuid("AAAAAAAAAAAAAAAAAAAABw") == UUID(int=7)
    assert octets("AQI=") == b"\x01\x02"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (shown_value(None), ShownRecord("(no value)", None, None, "a record without a value")),
        (
            shown_value(b"\x01"),
            ShownRecord(
                "(malformed)", None, None, "a metadata record is malformed: the message ends inside a varint"
            ),
        ),
        (
            shown_value(b"\x01\x02\x00a topic"),
            ShownRecord("TOPIC_RECORD", 0, None, "kept, but not read here"),
        ),
        (
            shown_record(OpaqueRecord(17, 3, b"")),
            ShownRecord("BROKER_REGISTRATION_CHANGE_RECORD", 3, None, "kept, but not read here"),
        ),
        (
            shown_value(encode_record(ConfigRecord(4, "1", "x", None))),
            ShownRecord(
                "CONFIG_RECORD", 0, {"resourceType": 4, "resourceName": "1", "name": "x", "value": None}
            ),
        ),
        (
            shown_control(UnknownControl(9, b"")),
            ShownRecord("control kind 9", None, None, "passed over by readers"),
        ),
        (
            shown_control(LeaderChange(1, (1, 2), (2,))),
            ShownRecord(
                "LEADER_CHANGE",
                None,
                {
                    "leaderId": 1,
                    "voters": [{"voterId": 1}, {"voterId": 2}],
                    "grantingVoters": [{"voterId": 2}],
                },
            ),
        ),
        (
            shown_control(SnapshotHeader(7)),
            ShownRecord("SNAPSHOT_HEADER", None, {"lastContainedLogTimestamp": 7}),
        ),
        (shown_control(SnapshotFooter()), ShownRecord("SNAPSHOT_FOOTER", None, {})),
    ],
    ids=lambda each: each.kind,
)
def test_a_record_is_shown_with_its_kind_and_fields_or_says_why_not(
    shown: ShownRecord, expected: ShownRecord
) -> None:
    assert shown == expected


def leaf(node: Node, *path: str) -> Leaf:
    for name in path:
        assert not isinstance(node, Leaf)
        node = node.children[name]
    assert isinstance(node, Leaf)
    return node


def test_the_leaves_of_the_tree_are_documents_and_words() -> None:
    records: list[MetadataRecord] = [VERSION, FeatureLevelRecord("group.version", 1), user("ann"), acl(1)]
    records.append(ConfigRecord(4, "r", "super.users", "User:a"))
    tree = tree_of(image_of(records, 17, 3), "1.2")
    assert leaf(tree, "features", "metadata.version") == Leaf(
        {"feature": "metadata.version", "level": 30, "metadata_version": "4.3-IV0"}, "30 (4.3-IV0)"
    )
    assert leaf(tree, "features", "group.version") == Leaf({"feature": "group.version", "level": 1}, "1")
    assert leaf(tree, "scram", "SCRAM-SHA-256", "ann") == Leaf(
        {"mechanism": "SCRAM-SHA-256", "user": "ann", "iterations": 4096}, "4096 iterations"
    )
    assert leaf(tree, "configs", "BROKER", "r", "super.users").document == {
        "name": "super.users",
        "value": "User:a",
    }
    assert leaf(tree, "provenance") == Leaf({"offset": 17, "epoch": 3}, "offset 17, epoch 3")


def verified(directory: Path) -> Verification:
    return verify([directory], FileSystemStorage())


def test_what_verify_tells_of_whole_files_is_to_the_letter(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes() + b"\x00" * 30)
    properties = directory / "meta.properties"
    properties.unlink()
    found = verified(directory)
    assert not found.is_whole
    assert not found.damage
    path = directory / METADATA_PARTITION / f"{0:020d}.log"
    assert found.notes == [f"`{properties}` is missing: no node starts on this directory as it is"]
    assert [str(torn.error()) for torn in found.torn] == [
        f"`{path}` ends in 30 bytes of an unfinished write after offset 10: a crash left them, or the copy "
        "is not whole, and then what follows is missing, denials too; let the node start, which cuts them, "
        "cut them by `kustos metadata repair`, or pass over them with `--ignore-torn-tail`; if a node is "
        "writing to it, try again"
    ]


@pytest.mark.parametrize(
    ("name", "offset", "where"),
    [("snapshot_12_1", 12, "the log ends at 10"), ("snapshot_5_1", 5, "that is inside a batch")],
)
def test_a_snapshot_that_ends_nowhere_is_told_to_the_letter(
    name: str, offset: int, where: str, tmp_path: Path
) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(), **{name: snapshot_bytes(*BATCHES[0])})
    path = directory / METADATA_PARTITION / f"{offset:020d}-{1:010d}.checkpoint"
    assert verified(directory).damage == [
        Damage(
            path,
            offset,
            f"the snapshot `{path}` ends before offset {offset}, but {where}; restore the directory from a "
            "copy",
        )
    ]


def test_holes_and_missing_beginnings_are_told_to_the_letter(tmp_path: Path) -> None:
    later = log_bytes((), base_offset=20, epoch=2)
    hole = directory_with(tmp_path / "hole", log_0=log_bytes(), log_20=later)
    path = hole / METADATA_PARTITION / f"{20:020d}.log"
    assert verified(hole).damage == [
        Damage(
            path,
            11,
            f"`{path}` begins at offset 20, but offset 11 comes next: a segment is missing; restore the "
            "directory from a copy",
        )
    ]
    cut = directory_with(tmp_path / "cut", log_20=later)
    assert verified(cut).damage == [
        Damage(
            cut,
            20,
            f"`{cut}` lacks what was before offset 20: no snapshot holds it; restore the directory from a "
            "copy",
        )
    ]


def test_epochs_and_batches_that_cannot_be_are_told_to_the_letter(tmp_path: Path) -> None:
    directory = directory_with(tmp_path / "epoch", log_0=log_bytes())
    state = directory / METADATA_PARTITION / "quorum-state"
    state.write_text('{"leaderEpoch": 0}')
    assert verified(directory).damage == [
        Damage(
            state,
            None,
            f"`{state}` knows only epoch 0, but the log ends in epoch 1; restore the directory from a copy",
        )
    ]
    twice = directory_with(tmp_path / "twice", log_0=log_bytes((*BATCHES, (acl(1),))))
    path = twice / METADATA_PARTITION / f"{0:020d}.log"
    (damage,) = verified(twice).damage
    assert (damage.path, damage.offset) == (path, 11)
    assert damage.message == (
        f"`{path}` has a batch at offset 11 that cannot be applied: two ACLs have the id "
        f"`{UUID(int=1)}`; if a newer Kafka wrote it, use a newer kustos, else restore the directory from a "
        "copy"
    )


def test_a_segment_under_another_name_is_checked_from_offset_0(tmp_path: Path) -> None:
    path = tmp_path / "copied.log"
    path.write_bytes(log_bytes())
    found = verified(path)
    assert (found.damage, found.first_offset, found.last_offset) == ([], 0, 10)
    path.write_bytes(log_bytes(base_offset=11, epoch=2))
    (damage,) = verified(path).damage
    assert damage.message.startswith(
        f"`{path}` is damaged at offset 0 (byte 0): the batch there claims offset 11; "
    )


def test_a_snapshot_amid_a_transaction_is_told_to_the_letter(tmp_path: Path) -> None:
    data = snapshot_bytes(VERSION, BeginTransactionRecord("x"), acl(1), epoch=0)
    directory = directory_with(tmp_path, snapshot_0_0=data)
    path = directory / METADATA_PARTITION / f"{0:020d}-{0:010d}.checkpoint"
    assert verified(directory).damage[0] == Damage(
        path,
        None,
        f"the snapshot `{path}` ends amid a metadata transaction, which nothing can end any more; restore it "
        "from a copy",
    )


def test_snapshots_that_cannot_be_are_told_to_the_letter(tmp_path: Path) -> None:
    twice = directory_with(tmp_path / "twice", snapshot_0_0=snapshot_bytes(VERSION, acl(1), acl(1), epoch=0))
    path = twice / METADATA_PARTITION / f"{0:020d}-{0:010d}.checkpoint"
    assert verified(twice).damage == [
        Damage(
            path,
            None,
            f"the snapshot `{path}` cannot be applied: two ACLs have the id `{UUID(int=1)}`; if a newer "
            "Kafka wrote it, use a newer kustos, else restore it from a copy",
        )
    ]
    wrong = directory_with(tmp_path / "wrong", log_0=log_bytes(), snapshot_11_1=snapshot_bytes(VERSION))
    path = wrong / METADATA_PARTITION / f"{11:020d}-{1:010d}.checkpoint"
    (damage,) = verified(wrong).damage
    assert damage.message.startswith(f"the snapshot `{path}` contradicts the log before offset 11: ")
    assert damage.message.endswith(
        "; find out which is right by `kustos metadata dump`, and restore the other from a copy"
    )
