"""The changes that a worker requests, their results, and the records that make them, as bytes.

Requests that only the writer process makes (settings, features, sweeps, copies) have no form here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.gateway.workers.encoding import (
    BYTES,
    FLAG,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    Form,
    code_of,
    one_of,
    optional,
    record,
    tuple_of,
)
from kustos.metadata.control import (
    AclCreated,
    AclsDeleted,
    ApiError,
    ScramAlterResult,
    ScramDeletion,
    ScramUpsertion,
    TokenChangeResult,
    TokenCreateResult,
    TokenCreation,
    TokenExpiry,
    TokenRenewal,
)
from kustos.metadata.image import (
    AclAdded,
    AclRemoved,
    Change,
    ConfigRemoved,
    ConfigSet,
    DelegationTokenRemoved,
    DelegationTokenSet,
    FeatureLevelSet,
    MetadataImage,
    ScramCredentialRemoved,
    ScramCredentialSet,
    acl_record,
    scram_record,
)
from kustos.metadata.records import (
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    encode_record,
)
from kustos.metadata.store import AlterScram, CreateAcls, DeleteAcls, StoreRequest
from kustos.wire import encoded_batch_of

_RESOURCE_TYPE: Final = code_of(ResourceType)
_PATTERN_TYPE: Final = code_of(PatternType)
_OPERATION: Final = code_of(AclOperation)
_PERMISSION_TYPE: Final = code_of(AclPermissionType)

_BINDING: Final = record(
    AclBinding,
    pattern=record(ResourcePattern, resource_type=_RESOURCE_TYPE, name=TEXT, pattern_type=_PATTERN_TYPE),
    entry=record(
        AccessControlEntry,
        principal=TEXT,
        host=TEXT,
        operation=_OPERATION,
        permission_type=_PERMISSION_TYPE,
    ),
)
_FILTER: Final = record(
    AclBindingFilter,
    pattern_filter=record(
        ResourcePatternFilter,
        resource_type=_RESOURCE_TYPE,
        name=optional(TEXT),
        pattern_type=_PATTERN_TYPE,
    ),
    entry_filter=record(
        AccessControlEntryFilter,
        principal=optional(TEXT),
        host=optional(TEXT),
        operation=_OPERATION,
        permission_type=_PERMISSION_TYPE,
    ),
)
_PRINCIPAL: Final = record(KafkaPrincipal, principal_type=TEXT, name=TEXT, token_authenticated=FLAG)
_TOKEN: Final = record(
    DelegationTokenRecord,
    owner=TEXT,
    requester=TEXT,
    renewers=tuple_of(TEXT),
    issue_timestamp_ms=INT64,
    max_timestamp_ms=INT64,
    expiration_timestamp_ms=INT64,
    token_id=TEXT,
)
_ERROR: Final = optional(record(ApiError, code=code_of(ErrorCode, INT16), message=optional(TEXT)))


def _row(value_type: type[Any], **fields: Form[Any]) -> tuple[type[Any], Form[Any]]:
    return value_type, record(value_type, **fields)


_REQUESTS: Final = {
    1: _row(CreateAcls, bindings=tuple_of(_BINDING)),
    2: _row(DeleteAcls, filters=tuple_of(_FILTER)),
    3: _row(
        AlterScram,
        deletions=tuple_of(record(ScramDeletion, user=TEXT, mechanism=INT8)),
        upsertions=tuple_of(
            record(
                ScramUpsertion,
                user=TEXT,
                mechanism=INT8,
                iterations=INT32,
                salt=BYTES,
                salted_password=BYTES,
            )
        ),
    ),
    4: _row(
        TokenCreation,
        requester=_PRINCIPAL,
        owner=_PRINCIPAL,
        renewers=tuple_of(_PRINCIPAL),
        max_lifetime_ms=INT64,
    ),
    5: _row(TokenRenewal, caller=_PRINCIPAL, hmac=BYTES, period_ms=INT64),
    6: _row(TokenExpiry, caller=_PRINCIPAL, hmac=BYTES, period_ms=INT64),
}

REQUEST: Final = one_of(_REQUESTS)
REQUESTABLE_CHANGES: Final = tuple(value_type for value_type, _ in _REQUESTS.values())
"""The changes that a worker can request."""


def items_of(request: StoreRequest) -> int:
    """Return how many items a change has."""
    match request:
        case CreateAcls(items) | DeleteAcls(items):
            return len(items)
        case TokenCreation():
            return len(request.renewers)
        case AlterScram(deletions, upsertions):
            return len(deletions) + len(upsertions)
        case _:
            return 1


def items_of_results(results: Sequence[object]) -> int:
    """Return how many items the results of a change have."""
    return sum(1 + len(each.deleted) if isinstance(each, AclsDeleted) else 1 for each in results)


RESULTS: Final = tuple_of(
    one_of(
        {
            1: _row(AclCreated, error=_ERROR, change_offset=optional(INT64)),
            2: _row(AclsDeleted, deleted=tuple_of(_BINDING), error=_ERROR, change_offset=optional(INT64)),
            3: _row(ScramAlterResult, user=TEXT, error=_ERROR),
            4: _row(
                TokenCreateResult,
                owner=_PRINCIPAL,
                requester=_PRINCIPAL,
                token=optional(_TOKEN),
                hmac=BYTES,
                error=_ERROR,
            ),
            5: _row(TokenChangeResult, expiry_timestamp_ms=INT64, error=_ERROR, token_id=TEXT),
        }
    )
)

_RECORDS: Final[dict[type[Any], Callable[[Any], MetadataRecord]]] = {
    AclAdded: lambda change: acl_record(change.id, change.binding),
    AclRemoved: lambda change: RemoveAccessControlEntryRecord(change.id),
    ScramCredentialSet: lambda change: scram_record(change.user, change.mechanism, change.credential),
    ScramCredentialRemoved: lambda change: RemoveUserScramCredentialRecord(change.user, change.mechanism),
    FeatureLevelSet: lambda change: FeatureLevelRecord(change.name, change.level),
    DelegationTokenSet: lambda change: change.token,
    DelegationTokenRemoved: lambda change: RemoveDelegationTokenRecord(change.token_id),
    ConfigSet: lambda change: ConfigRecord(
        change.resource_type, change.resource_name, change.name, change.value
    ),
    ConfigRemoved: lambda change: ConfigRecord(change.resource_type, change.resource_name, change.name, None),
}
"""The record for each kind of change."""


def record_values(changes: Iterable[Change]) -> tuple[bytes, ...]:
    """Return the values of the records that made these changes, in order."""
    return tuple(encode_record(_RECORDS[type(change)](change)) for change in changes)


CHUNK_MAX_BYTES: Final = 256 * 1024
CHUNK_MAX_RECORDS: Final = 1024
"""Records of the image in one message: some milliseconds of work at either end, and as many as a Kafka
snapshot has in a batch, which are read in bulk."""


def record_chunks(image: MetadataImage) -> Iterator[bytes]:
    """Yield the records of an image as record batches."""
    values: list[bytes] = []
    size = 0
    for each in image.records():
        value = encode_record(each)
        if values and (len(values) == CHUNK_MAX_RECORDS or size + len(value) > CHUNK_MAX_BYTES):
            yield encoded_batch_of(0, image.epoch, 0, values)
            values, size = [], 0
        values.append(value)
        size += len(value)
    if values:
        yield encoded_batch_of(0, image.epoch, 0, values)
