"""The bytes of records, as Kafka 4.4.0's own classes write them."""

from uuid import UUID

import pytest

from kustos.metadata.errors import RecordError
from kustos.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    ControlRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    KRaftVersion,
    LeaderChange,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    SnapshotFooter,
    SnapshotHeader,
    UserScramCredentialRecord,
    Voter,
    VoterEndpoint,
    Voters,
    decode_control,
    decode_record,
    encode_control,
    encode_record,
)

ID = UUID(bytes=bytes(range(16)))

RECORDS: list[tuple[MetadataRecord, str]] = [
    (
        AccessControlEntryRecord(ID, 2, "foo", 3, "User:bob", "*", 3, 3),
        "011200000102030405060708090a0b0c0d0e0f0204666f6f0309557365723a626f62022a030300",
    ),
    (RemoveAccessControlEntryRecord(ID), "011300000102030405060708090a0b0c0d0e0f00"),
    (
        UserScramCredentialRecord("bob", 1, b"\1\2", b"\3", b"\4", 4096),
        "010b0004626f6201030102020302040000100000",
    ),
    (RemoveUserScramCredentialRecord("bob", 2), "01160004626f620200"),
    (
        DelegationTokenRecord("User:a", "User:b", ("User:c",), 1, 3, 2, "t"),
        "010a0007557365723a6107557365723a620207557365723a63000000000000000100000000000000030000000000000002"
        "027400",
    ),
    (RemoveDelegationTokenRecord("t"), "011a00027400"),
    (FeatureLevelRecord("metadata.version", 33), "010c00116d657461646174612e76657273696f6e002100"),
    (BeginTransactionRecord(), "01170000"),
    (BeginTransactionRecord("x"), "0117000100020278"),
    (EndTransactionRecord(), "01180000"),
    (NoOpRecord(), "01140000"),
    (AbortTransactionRecord("r"), "0119000100020272"),
    (ConfigRecord(4, "1", "super.users", "User:a"), "0104000402310c73757065722e757365727307557365723a6100"),
    (ConfigRecord(4, "", "super.users", None), "01040004010c73757065722e75736572730000"),
    (ConfigRecord(2, "t", "k", ""), "010400020274026b0100"),
]

CONTROLS: list[tuple[ControlRecord, str]] = [
    (LeaderChange(1, (1,), (1,)), "00000000000102000000010002000000010000"),
    (SnapshotHeader(5), "0000000000000000000500"),
    (SnapshotFooter(), "000000"),
    (KRaftVersion(1), "0000000100"),
    (
        Voters((Voter(1, ID, (VoterEndpoint("CONTROLLER", "h", 9093),), 0, 1),)),
        "00000200000001000102030405060708090a0b0c0d0e0f020b434f4e54524f4c4c4552026823850000000001000000",
    ),
]


@pytest.mark.parametrize(("record", "golden"), RECORDS, ids=lambda value: type(value).__name__)
@pytest.mark.behaviour("B036", "B061", "B069")
def test_a_record_is_written_and_read_to_the_letter(record: MetadataRecord, golden: str) -> None:
    assert encode_record(record).hex() == golden
    assert decode_record(bytes.fromhex(golden)) == record


@pytest.mark.parametrize(("control", "golden"), CONTROLS, ids=lambda value: type(value).__name__)
def test_a_control_record_is_written_and_read_to_the_letter(control: ControlRecord, golden: str) -> None:
    assert encode_control(control).hex() == golden
    assert decode_control(control.type, bytes.fromhex(golden)) == control


@pytest.mark.parametrize("key", [0, 2, 3, 14, 17, 27])
def test_a_record_of_another_kind_is_kept_as_it_is(key: int) -> None:
    value = bytes((1, key, 0)) + b"whatever"
    record = decode_record(value)
    assert record == OpaqueRecord(key, 0, b"whatever")
    assert encode_record(record) == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00140000",  # the frame of a preview release
        "02140000",  # a frame nobody knows yet
        "017f0000",  # a kind nobody knows
        "0114000000",  # a byte too many
        "0114",  # no version
        "011300000102030405060708090a0b0c0d0e0f",  # no tags
        "01140100",  # a version nobody knows
        "8100140000",  # a longer varint than its value needs
    ],
)
def test_what_is_not_a_record_is_refused(value: str) -> None:
    with pytest.raises(RecordError):
        decode_record(bytes.fromhex(value))


def test_the_value_of_a_setting_is_not_in_its_text() -> None:
    text = repr(ConfigRecord(4, "1", "listener.name.tls.ssl.key.password", "hunter2"))
    assert "ssl.key.password" in text
    assert "hunter2" not in text


@pytest.mark.behaviour("B061", "B070")
def test_the_secrets_of_a_credential_are_not_in_its_text() -> None:
    text = repr(UserScramCredentialRecord("bob", 1, b"salt-bytes", b"stored-bytes", b"server-bytes", 4096))
    assert "bob" in text
    assert "bytes" not in text
