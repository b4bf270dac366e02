"""Control records of the log, which have no frames (KIP-595, KIP-630, KIP-853).

A control batch's record has the key `int16 0 | int16 type`; its value begins with an int16 version.
"""

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from kustos.metadata.errors import RecordError
from kustos.metadata.records import fields
from kustos.metadata.records.fields import FieldReader
from kustos.wire import CONTROL_BIT, Record, RecordBatch, uvarint


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """An epoch begins, with the ids of the voters and of the voters that granted their vote.

    In version 1 each id has its directory; the ids alone are kept here, in the order of the record.
    """

    type: ClassVar[int] = 2
    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """The first record of a snapshot."""

    type: ClassVar[int] = 3
    last_contained_log_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotFooter:
    """The last record of a snapshot; without it a snapshot is incomplete."""

    type: ClassVar[int] = 4


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """The level of the feature kraft.version."""

    type: ClassVar[int] = 5
    kraft_version: int


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    """The address of a voter."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """One controller of a quorum with dynamic membership."""

    voter_id: int
    directory_id: UUID
    endpoints: tuple[VoterEndpoint, ...]
    min_kraft_version: int
    max_kraft_version: int


@dataclass(frozen=True, slots=True)
class Voters:
    """All controllers of the quorum."""

    type: ClassVar[int] = 6
    voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class UnknownControl:
    """A control record of another type; readers skip it."""

    type: int
    value: bytes


ControlRecord = LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | Voters | UnknownControl


def control_batch(
    base_offset: int, epoch: int, timestamp_ms: int, controls: tuple[ControlRecord, ...]
) -> RecordBatch:
    """Return a control batch of these records."""
    records = tuple(
        Record(delta, encode_control(control), key=_key(control.type))
        for delta, control in enumerate(controls)
    )
    return RecordBatch(
        base_offset,
        epoch,
        records,
        attributes=CONTROL_BIT,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
    )


def controls_of(batch: RecordBatch) -> list[ControlRecord]:
    """Return the parsed records of a control batch; raise `RecordError` if they are malformed."""
    found = []
    for record in batch.records:
        if record.key is None or len(record.key) < 4 or record.value is None:
            raise RecordError("a control record has no type or no value")
        reader = FieldReader(record.key)
        reader.number(fields.INT16)  # the key's own version: its first two fields never change
        found.append(decode_control(reader.number(fields.INT16), record.value))
    return found


def encode_control(control: ControlRecord) -> bytes:
    """Return the value of a control record, in version 0, as Kafka 4.4 writes it."""
    version = b"\x00\x00"
    match control:
        case LeaderChange(leader_id, voters, granting):
            body = fields.number_field(fields.INT32, leader_id) + _voter_ids(voters) + _voter_ids(granting)
        case SnapshotHeader(timestamp_ms):
            body = fields.number_field(fields.INT64, timestamp_ms)
        case SnapshotFooter():
            body = b""
        case KRaftVersion(level):
            body = fields.number_field(fields.INT16, level)
        case Voters(voters_with_endpoints):
            body = uvarint(len(voters_with_endpoints) + 1) + b"".join(map(_voter, voters_with_endpoints))
        case UnknownControl(_, value):
            return value
    return version + body + b"\x00"


def decode_control(control_type: int, value: bytes) -> ControlRecord:
    """Return the control record with this value; raise `RecordError` if it is malformed."""
    if not LeaderChange.type <= control_type <= Voters.type:
        return UnknownControl(control_type, value)
    reader = FieldReader(value)
    version = reader.number(fields.INT16)
    control: ControlRecord
    if control_type == LeaderChange.type:
        leader_id = reader.number(fields.INT32)
        control = LeaderChange(leader_id, _read_voter_ids(reader, version), _read_voter_ids(reader, version))
    elif control_type == SnapshotHeader.type:
        control = SnapshotHeader(reader.number(fields.INT64))
    elif control_type == SnapshotFooter.type:
        control = SnapshotFooter()
    elif control_type == KRaftVersion.type:
        control = KRaftVersion(reader.number(fields.INT16))
    else:
        control = Voters(tuple(_read_voter(reader) for _ in range(_count(reader))))
    reader.no_tags()
    reader.end()
    return control


def _key(control_type: int) -> bytes:
    return b"\x00\x00" + fields.number_field(fields.INT16, control_type)


def _count(reader: FieldReader) -> int:
    count = reader.uvarint() - 1
    if count < 0:
        raise RecordError("a control record has null in a list that cannot be null")
    return count


def _voter_ids(ids: tuple[int, ...]) -> bytes:
    return uvarint(len(ids) + 1) + b"".join(fields.number_field(fields.INT32, each) + b"\x00" for each in ids)


def _read_voter_ids(reader: FieldReader, version: int) -> tuple[int, ...]:
    ids = []
    for _ in range(_count(reader)):
        ids.append(reader.number(fields.INT32))
        if version >= 1:
            reader.uuid()
        reader.no_tags()
    return tuple(ids)


def _voter(voter: Voter) -> bytes:
    endpoints = b"".join(
        fields.string_field(each.name)
        + fields.string_field(each.host)
        + fields.number_field(fields.UINT16, each.port)
        + b"\x00"
        for each in voter.endpoints
    )
    return (
        fields.number_field(fields.INT32, voter.voter_id)
        + voter.directory_id.bytes
        + uvarint(len(voter.endpoints) + 1)
        + endpoints
        + fields.number_field(fields.INT16, voter.min_kraft_version)
        + fields.number_field(fields.INT16, voter.max_kraft_version)
        + b"\x00\x00"
    )


def _read_voter(reader: FieldReader) -> Voter:
    voter_id, directory_id = reader.number(fields.INT32), reader.uuid()
    endpoints = []
    for _ in range(_count(reader)):
        endpoints.append(VoterEndpoint(reader.string(), reader.string(), reader.number(fields.UINT16)))
        reader.no_tags()
    low, high = reader.number(fields.INT16), reader.number(fields.INT16)
    reader.no_tags()
    reader.no_tags()
    return Voter(voter_id, directory_id, tuple(endpoints), low, high)
