"""Metadata record values as bytes: frame version, kind, version, body (`MetadataRecordSerde`).

`value = uvarint 1 | uvarint apiKey | uvarint version | body`. A kind is a row of `_KINDS`: its fields in
order, each with its form. Kinds that Kafka has and kustos does not use stay opaque; a kind or version that
Kafka does not have is an error.
"""

from typing import Any, Final, NamedTuple, get_args

from kustos.metadata.errors import RecordError
from kustos.metadata.records import fields
from kustos.metadata.records.fields import FieldReader
from kustos.metadata.records.values import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kustos.wire import uvarint

FRAME_VERSION: Final = 1
RECORD_VERSION: Final = 0
"""Every kind in the table below exists in version 0 only (Kafka 4.4)."""

OPAQUE_VERSIONS: Final[dict[int, int]] = {
    0: 4,  # RegisterBroker
    1: 0,  # UnregisterBroker
    2: 0,  # Topic
    3: 2,  # Partition
    5: 2,  # PartitionChange
    7: 0,  # FenceBroker
    8: 0,  # UnfenceBroker
    9: 0,  # RemoveTopic
    14: 0,  # ClientQuota
    15: 0,  # ProducerIds
    17: 3,  # BrokerRegistrationChange
    21: 0,  # ZkMigrationState
    27: 0,  # RegisterController
    28: 0,  # ClearElr
    29: 0,  # UnregisterController
}
"""Opaque kinds, kept undecoded, with the highest version in Kafka 4.4."""

_UUID: Final = "uuid"
_STRING: Final = "string"
_NULLABLE_STRING: Final = "nullable string"
_STRINGS: Final = "strings"
_BYTES: Final = "bytes"
_INT8: Final = "int8"
_INT16: Final = "int16"
_INT32: Final = "int32"
_INT64: Final = "int64"
_TAGGED_STRING: Final = "tag 0: nullable string"

_NUMBERS: Final = {_INT8: fields.INT8, _INT16: fields.INT16, _INT32: fields.INT32, _INT64: fields.INT64}


class _Kind(NamedTuple):
    type: type[Any]
    forms: tuple[tuple[str, str], ...]


def _kind(record_type: type[Any], **forms: str) -> tuple[int, _Kind]:
    return record_type.api_key, _Kind(record_type, tuple(forms.items()))


_KINDS: Final[dict[int, _Kind]] = dict(
    (
        _kind(ConfigRecord, resource_type=_INT8, resource_name=_STRING, name=_STRING, value=_NULLABLE_STRING),
        _kind(
            DelegationTokenRecord,
            owner=_STRING,
            requester=_STRING,
            renewers=_STRINGS,
            issue_timestamp_ms=_INT64,
            max_timestamp_ms=_INT64,
            expiration_timestamp_ms=_INT64,
            token_id=_STRING,
        ),
        _kind(
            UserScramCredentialRecord,
            name=_STRING,
            mechanism=_INT8,
            salt=_BYTES,
            stored_key=_BYTES,
            server_key=_BYTES,
            iterations=_INT32,
        ),
        _kind(FeatureLevelRecord, name=_STRING, feature_level=_INT16),
        _kind(
            AccessControlEntryRecord,
            id=_UUID,
            resource_type=_INT8,
            resource_name=_STRING,
            pattern_type=_INT8,
            principal=_STRING,
            host=_STRING,
            operation=_INT8,
            permission_type=_INT8,
        ),
        _kind(RemoveAccessControlEntryRecord, id=_UUID),
        _kind(NoOpRecord),
        _kind(RemoveUserScramCredentialRecord, name=_STRING, mechanism=_INT8),
        _kind(BeginTransactionRecord, name=_TAGGED_STRING),
        _kind(EndTransactionRecord),
        _kind(AbortTransactionRecord, reason=_TAGGED_STRING),
        _kind(RemoveDelegationTokenRecord, token_id=_STRING),
    )
)


def encode_record(record: MetadataRecord) -> bytes:
    """Return the whole record value; raise `RecordError` if a field does not fit its schema."""
    if isinstance(record, OpaqueRecord):
        return uvarint(FRAME_VERSION) + uvarint(record.api_key) + uvarint(record.version) + record.body
    out = bytearray(uvarint(FRAME_VERSION) + uvarint(record.api_key) + uvarint(RECORD_VERSION))
    tags = b"\x00"
    for name, form in _KINDS[record.api_key].forms:
        value = getattr(record, name)
        if form in _NUMBERS:
            out += fields.number_field(_NUMBERS[form], value)
        elif form == _STRING:
            out += fields.string_field(value)
        elif form == _NULLABLE_STRING:
            out += fields.nullable_string_field(value)
        elif form == _BYTES:
            out += fields.bytes_field(value)
        elif form == _UUID:
            out += value.bytes
        elif form == _STRINGS:
            out += uvarint(len(value) + 1) + b"".join(map(fields.string_field, value))
        elif value is not None:
            data = fields.string_field(value)
            tags = b"\x01\x00" + uvarint(len(data)) + data
    return bytes(out) + tags


def decode_record(value: bytes, *, passes_unknown_tags: bool = False) -> MetadataRecord:
    """Return the record in these bytes; `encode_record` restores them.

    With `passes_unknown_tags`, unknown tagged fields are dropped. Raises
    `RecordError` for another frame version, an unknown kind or version, and bytes that do not
    fill the schema exactly.
    """
    reader = FieldReader(value, passes_unknown_tags=passes_unknown_tags)
    frame_version, api_key, version = reader.uvarint(), reader.uvarint(), reader.uvarint()
    if frame_version != FRAME_VERSION:
        raise RecordError(f"a metadata record has frame version {frame_version}, only 1 is known")
    if api_key in OPAQUE_VERSIONS and version <= OPAQUE_VERSIONS[api_key]:
        return OpaqueRecord(api_key, version, reader.rest())
    if api_key not in _KINDS or version != RECORD_VERSION:
        raise RecordError(
            f"a metadata record has kind {api_key} in version {version}, which is not known here; "
            "a newer Kafka may have written it"
        )
    kind = _KINDS[api_key]
    tagged = any(form == _TAGGED_STRING for _, form in kind.forms)
    values = [_read(reader, form) for _, form in kind.forms if form != _TAGGED_STRING]
    if tagged:
        values.append(_read_tagged_string(reader))
    else:
        reader.no_tags()
    reader.end()
    record: MetadataRecord = kind.type(*values)
    return record


def _read(reader: FieldReader, form: str) -> Any:
    if form in _NUMBERS:
        return reader.number(_NUMBERS[form])
    if form == _STRING:
        return reader.string()
    if form == _NULLABLE_STRING:
        return reader.nullable_string()
    if form == _BYTES:
        return reader.bytes_()
    if form == _UUID:
        return reader.uuid()
    count = reader.uvarint() - 1
    if count < 0:
        raise RecordError("a metadata record has null in a list that cannot be null")
    return tuple(reader.string() for _ in range(count))


def _read_tagged_string(reader: FieldReader) -> str | None:
    data = reader.only_tag(0)
    if data is None:
        return None
    inner = FieldReader(data)
    text = inner.string()
    inner.end()
    return text


_UNLISTED = set(get_args(MetadataRecord)) - {kind.type for kind in _KINDS.values()} - {OpaqueRecord}
assert not _UNLISTED, f"record kinds without a row in the table: {_UNLISTED}"
