"""Records for display: Kafka's names of kinds and fields, and no secrets.

The names are the same as in `kafka-dump-log --cluster-metadata-decoder`. Unlike that tool, kustos never shows
login secrets: salts, stored keys and server keys of SCRAM credentials, and values of dynamic broker settings,
because some are passwords. (No record holds the HMAC of a delegation token.) Opaque kinds are shown by name
and size, unknown kinds and versions by number and size.
"""

import json
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from kustos.acl import AclOperation, AclPermissionType, PatternType, ResourceType
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
    Voters,
    decode_record,
)
from kustos.metadata.scram import ScramMechanism
from kustos.wire import MalformedMessageError, read_uvarint, uuid_text

FIELD_NAMES_MAX: Final = 128
"""Field names cached in Kafka's spelling: more than all records here have."""

REDACTED: Final = "(redacted)"
"""Replaces a secret."""

KIND_NAMES: Final[dict[int, str]] = {
    0: "REGISTER_BROKER_RECORD",
    1: "UNREGISTER_BROKER_RECORD",
    2: "TOPIC_RECORD",
    3: "PARTITION_RECORD",
    ConfigRecord.api_key: "CONFIG_RECORD",
    5: "PARTITION_CHANGE_RECORD",
    7: "FENCE_BROKER_RECORD",
    8: "UNFENCE_BROKER_RECORD",
    9: "REMOVE_TOPIC_RECORD",
    DelegationTokenRecord.api_key: "DELEGATION_TOKEN_RECORD",
    UserScramCredentialRecord.api_key: "USER_SCRAM_CREDENTIAL_RECORD",
    FeatureLevelRecord.api_key: "FEATURE_LEVEL_RECORD",
    14: "CLIENT_QUOTA_RECORD",
    15: "PRODUCER_IDS_RECORD",
    17: "BROKER_REGISTRATION_CHANGE_RECORD",
    AccessControlEntryRecord.api_key: "ACCESS_CONTROL_ENTRY_RECORD",
    RemoveAccessControlEntryRecord.api_key: "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    NoOpRecord.api_key: "NO_OP_RECORD",
    21: "ZK_MIGRATION_STATE_RECORD",
    RemoveUserScramCredentialRecord.api_key: "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    BeginTransactionRecord.api_key: "BEGIN_TRANSACTION_RECORD",
    EndTransactionRecord.api_key: "END_TRANSACTION_RECORD",
    AbortTransactionRecord.api_key: "ABORT_TRANSACTION_RECORD",
    RemoveDelegationTokenRecord.api_key: "REMOVE_DELEGATION_TOKEN_RECORD",
    27: "REGISTER_CONTROLLER_RECORD",
    28: "CLEAR_ELR_RECORD",
    29: "UNREGISTER_CONTROLLER_RECORD",
}
"""Kind number to name, as in Kafka's enum `MetadataRecordType`."""

CONTROL_NAMES: Final[dict[int, str]] = {
    LeaderChange.type: "LEADER_CHANGE",
    SnapshotHeader.type: "SNAPSHOT_HEADER",
    SnapshotFooter.type: "SNAPSHOT_FOOTER",
    KRaftVersion.type: "KRAFT_VERSION",
    Voters.type: "KRAFT_VOTERS",
}

_OTHER_NAMES: Final = {
    "kraft_version": "kRaftVersion",
    "last_contained_log_timestamp_ms": "lastContainedLogTimestamp",
}

_ENUMS: Final[dict[str, Any]] = {
    "resourceType": ResourceType,
    "patternType": PatternType,
    "operation": AclOperation,
    "permissionType": AclPermissionType,
    "mechanism": ScramMechanism,
}
"""Fields with enum values; an unknown number stays a number."""

_CONFIG_RESOURCES: Final[dict[int, str]] = {
    2: "TOPIC",
    4: "BROKER",
    8: "BROKER_LOGGER",
    16: "CLIENT_METRICS",
    32: "GROUP",
}
"""Resource types of settings (`ConfigResource.Type`), which have their own numbers."""

_BROKER_CONFIG: Final = 4
_OPEN_SETTINGS: Final = frozenset({"super.users"})
"""Broker settings that are not secret and concern access."""


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record for display.

    `value` is None if unknown; so is `version`, which control records lack too. `note` says why there is no
    value, None if there is one.
    """

    kind: str
    version: int | None
    value: dict[str, Any] | None
    note: str | None = None


def shown_value(data: bytes | None) -> ShownRecord:
    """Return the displayable part of a record's value; malformed bytes are shown as malformed."""
    if data is None:
        return ShownRecord("(no value)", None, None, "a record without a value")
    try:
        record = decode_record(data)
    except RecordError as error:
        return _shown_unread(data, str(error))
    return shown_record(record)


def shown_record(record: MetadataRecord) -> ShownRecord:
    """Return the displayable part of a record."""
    name = kind_name(record.api_key)
    if isinstance(record, OpaqueRecord):
        return ShownRecord(name, record.version, None, "kept, but not read here")
    value = _document(record)
    if isinstance(record, ConfigRecord):
        value["value"] = shown_setting(record.resource_type, record.name, record.value)
    return ShownRecord(name, 0, value)


def shown_control(control: ControlRecord) -> ShownRecord:
    """Return a control record for display; all of it may be shown."""
    name = CONTROL_NAMES.get(control.type, f"control kind {control.type}")
    match control:
        case LeaderChange(leader_id, voters, granting):
            value = {
                "leaderId": leader_id,
                "voters": [{"voterId": each} for each in voters],
                "grantingVoters": [{"voterId": each} for each in granting],
            }
        case SnapshotHeader() | SnapshotFooter() | KRaftVersion():
            value = _document(control)
        case Voters(voters):
            value = {"voters": [_voter(each) for each in voters]}
        case _:
            return ShownRecord(name, None, None, "passed over by readers")
    return ShownRecord(name, None, value)


def kind_name(api_key: int) -> str:
    """Return Kafka's name of a kind of record, `kind 99` for a number without one."""
    return KIND_NAMES.get(api_key, f"kind {api_key}")


def field_text(kind: str, name: str, value: Any) -> str:
    """Return a field of a shown value as text: `TOPIC` for the code 2 of a `resourceType`."""
    if name == "resourceType" and kind == KIND_NAMES[ConfigRecord.api_key]:
        return config_resource_name(value)
    if name in _ENUMS and isinstance(value, int):
        meant = _ENUMS[name].from_code(value)
        return str(value) if not meant else meant.name
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown_unread(data: bytes, why: str) -> ShownRecord:
    position, numbers = 0, []
    try:
        for _ in range(3):
            number, position = read_uvarint(data, position)
            numbers.append(number)
    except MalformedMessageError:
        return ShownRecord("(malformed)", None, None, why)
    _, api_key, version = numbers
    return ShownRecord(kind_name(api_key), version, None, why)


def _document(record: Any) -> dict[str, Any]:
    values = ((each.name, getattr(record, each.name)) for each in fields(record))
    return {_field_name(name): _field_value(value) for name, value in values if value is not None}


def shown_setting(resource_type: int, name: str, value: str | None) -> str | None:
    """Return the value of a dynamic setting, `REDACTED` if it may be secret; None without one."""
    is_open = resource_type != _BROKER_CONFIG or name in _OPEN_SETTINGS
    return value if is_open or value is None else REDACTED


def config_resource_name(resource_type: int) -> str:
    """Return the resource type of a dynamic setting, such as `TOPIC`; an unknown one as its number."""
    return _CONFIG_RESOURCES.get(resource_type, str(resource_type))


@lru_cache(maxsize=FIELD_NAMES_MAX)
def _field_name(name: str) -> str:
    """Return the name of a field in Kafka's schema."""
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    first, *others = name.removesuffix("_ms").split("_")
    return first + "".join(map(str.capitalize, others))


def _field_value(value: Any) -> Any:
    if isinstance(value, bytes):
        # only credentials have byte strings in these records
        return REDACTED
    if isinstance(value, UUID):
        return uuid_text(value)
    return list(value) if isinstance(value, tuple) else value


def _voter(voter: Voter) -> dict[str, Any]:
    return {
        "voterId": voter.voter_id,
        "voterDirectoryId": uuid_text(voter.directory_id),
        "endpoints": [{"name": each.name, "host": each.host, "port": each.port} for each in voter.endpoints],
        "kRaftVersionFeature": {
            "minSupportedVersion": voter.min_kraft_version,
            "maxSupportedVersion": voter.max_kraft_version,
        },
    }
