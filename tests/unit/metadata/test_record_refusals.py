"""Bytes that are no record, and values that no record holds: refused, in words for whoever reads the log."""

from uuid import UUID

import pytest

from kustos.metadata.errors import RecordError
from kustos.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    KRaftVersion,
    LeaderChange,
    MetadataRecord,
    OpaqueRecord,
    SnapshotHeader,
    UnknownControl,
    Voter,
    Voters,
    control_batch,
    controls_of,
    decode_control,
    decode_record,
    encode_control,
    encode_record,
)
from kustos.metadata.records.serde import OPAQUE_VERSIONS
from kustos.wire.primitives import uvarint
from kustos.wire.record_batch import CONTROL_BIT, Record, RecordBatch

LONGEST = 0x7FFF


def refusal(value: bytes) -> str:
    with pytest.raises(RecordError) as caught:
        decode_record(value)
    return str(caught.value)


def feature(name: bytes) -> bytes:
    """A FeatureLevelRecord with these bytes where the name is."""
    return b"\x01\x0c\x00" + name + b"\x00\x01\x00"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", "a metadata record is malformed: the message ends inside a varint"),
        (b"\x02\x0c\x00", "a metadata record has frame version 2, only 1 is known"),
        (b"\x01\x0c\x00\x05abc", "a metadata record ends inside a field"),
        (feature(b"\x00"), "a metadata record has null in a field that cannot be null"),
        (feature(b"\x02\xff"), "a string in a metadata record is not UTF-8"),
        (
            feature(uvarint(LONGEST + 2) + b"x" * (LONGEST + 1)),
            "a string in a metadata record has 32768 bytes, 32767 are allowed",
        ),
        (feature(b"\x02x") + b"\x00\x00", "a metadata record has 2 bytes too many"),
        (feature(b"\x02x")[:-1] + b"\x01\x00\x01x", "a metadata record has an unknown tagged field"),
        (
            b"\x01\x0c\x01",
            "a metadata record has kind 12 in version 1, which is not known here; a newer Kafka may have "
            "written it",
        ),
        (
            b"\x01\x7f\x00",
            "a metadata record has kind 127 in version 0, which is not known here; a newer Kafka may have "
            "written it",
        ),
        (b"\x01\x17\x00\x01\x01\x02\x02x", "a metadata record has an unknown tagged field"),
        (b"\x01\x17\x00\x01\x00\x03\x02x\x00", "a metadata record has 1 bytes too many"),
        (
            b"\x01\x0a\x00\x02a\x02b\x00",
            "a metadata record has null in a list that cannot be null",
        ),
    ],
)
def test_bytes_that_are_no_record_are_refused(value: bytes, words: str) -> None:
    assert refusal(value) == words


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (FeatureLevelRecord("x", 2**15), "the number 32768 does not fit its field of 2 bytes"),
        (ConfigRecord(128, "", "x", None), "the number 128 does not fit its field of 1 bytes"),
        (
            FeatureLevelRecord("x" * (LONGEST + 1), 1),
            "a text has 32768 bytes of UTF-8, a record holds at most 32767",
        ),
        (
            ConfigRecord(4, "", "x", "\ud800"),
            "a text holds half of a surrogate pair, which UTF-8 cannot express",
        ),
    ],
)
def test_values_that_no_record_holds_are_refused(record: MetadataRecord, words: str) -> None:
    with pytest.raises(RecordError) as caught:
        encode_record(record)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    "record",
    [
        FeatureLevelRecord("x" * LONGEST, 2**15 - 1),
        FeatureLevelRecord("", -(2**15)),
        ConfigRecord(127, "é" * (LONGEST // 2), "x", "y" * LONGEST),
        AccessControlEntryRecord(UUID(int=2**128 - 1), -128, "", 127, "", "", -1, 0),
        DelegationTokenRecord("a", "b", (), -(2**63), 2**63 - 1, 0, ""),
        DelegationTokenRecord("a", "b", ("c", "", "d"), 0, 0, 0, "t"),
        BeginTransactionRecord("x" * LONGEST),
        AbortTransactionRecord(""),
        AbortTransactionRecord(None),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_just_fits_is_read_again(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


def test_kinds_that_are_kept_unread_are_kept_up_to_the_version_that_kafka_has() -> None:
    for kind, highest in OPAQUE_VERSIONS.items():
        for version in range(highest + 1):
            value = bytes((1, kind, version)) + b"whatever"
            assert decode_record(value) == OpaqueRecord(kind, version, b"whatever")
            assert encode_record(OpaqueRecord(kind, version, b"whatever")) == value
        assert refusal(bytes((1, kind, highest + 1))).endswith("a newer Kafka may have written it")


def test_a_control_record_of_another_type_is_passed_over() -> None:
    for control_type in (0, 1, 7, -1):
        control = UnknownControl(control_type, b"\x01\x02\x03")
        assert decode_control(control_type, b"\x01\x02\x03") == control
        assert encode_control(control) == b"\x01\x02\x03"


def test_voters_of_a_later_version_come_with_their_directories() -> None:
    # `LeaderChangeMessage` in version 1: each voter has the id of its directory
    one = b"\x00\x00\x00\x01" + bytes(16) + b"\x00"
    two = b"\x00\x00\x00\x02" + bytes(16) + b"\x00"
    value = b"\x00\x01" + b"\x00\x00\x00\x01" + b"\x03" + one + two + b"\x02" + two + b"\x00"
    assert decode_control(2, value) == LeaderChange(1, (1, 2), (2,))


@pytest.mark.parametrize(
    ("control_type", "value", "words"),
    [
        (2, b"\x00\x00\x00\x00\x00\x01\x00", "a control record has null in a list that cannot be null"),
        (3, b"\x00\x00" + bytes(7), "a metadata record ends inside a field"),
        (4, b"\x00\x00\x01\x00\x00", "a metadata record has an unknown tagged field"),
        (4, b"\x00\x00\x00\x00", "a metadata record has 1 bytes too many"),
        (6, b"\x00\x00\x00", "a control record has null in a list that cannot be null"),
    ],
)
def test_a_control_record_that_says_nothing_sane_is_refused(
    control_type: int, value: bytes, words: str
) -> None:
    with pytest.raises(RecordError) as caught:
        decode_control(control_type, value)
    assert str(caught.value) == words


def test_a_voter_may_listen_nowhere() -> None:
    voters = Voters((Voter(2**31 - 1, UUID(int=3), (), 0, 1), Voter(2, UUID(int=4), (), 1, 1)))
    assert decode_control(6, encode_control(voters)) == voters


def test_a_control_batch_holds_its_records_in_order_and_says_so() -> None:
    controls = (SnapshotHeader(7), KRaftVersion(1), LeaderChange(1, (1,), ()))
    batch = control_batch(5, 3, 99, controls)
    assert batch.is_control
    assert (batch.attributes, batch.base_offset, batch.last_offset) == (CONTROL_BIT, 5, 7)
    assert (batch.partition_leader_epoch, batch.base_timestamp_ms, batch.max_timestamp_ms) == (3, 99, 99)
    assert [record.key for record in batch.records] == [
        b"\x00\x00\x00\x03",
        b"\x00\x00\x00\x05",
        b"\x00\x00\x00\x02",
    ]
    assert controls_of(batch) == list(controls)


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"\x00\x00\x00"), (b"\x00\x00\x00", b"\x00\x00\x00"), (b"\x00\x00\x00\x04", None)],
)
def test_a_control_record_has_a_type_and_a_value(key: bytes | None, value: bytes | None) -> None:
    batch = RecordBatch(0, 1, (Record(0, value, key=key),), attributes=CONTROL_BIT)
    with pytest.raises(RecordError) as caught:
        controls_of(batch)
    assert str(caught.value) == "a control record has no type or no value"


def test_a_longer_key_of_a_later_version_is_read_by_its_first_two_fields() -> None:
    batch = RecordBatch(
        0, 1, (Record(0, b"\x00\x00\x00", key=b"\x00\x01\x00\x04more"),), attributes=CONTROL_BIT
    )
    assert len(controls_of(batch)) == 1
