"""ACLs created, deleted and described: pure functions of an image, after `AclControlManager`.

Texts and codes are Kafka's, since clients show them and their tests compare them. So is the order of the
checks: the first failure is reported.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kustos.acl import (
    CLUSTER_NAME,
    EVERY_BINDING,
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AclValueError,
    HostRange,
    PatternType,
    ResourcePattern,
    ResourceType,
    java_int,
    java_ipv6,
)
from kustos.metadata.control.acl_filters import Acl, each_match
from kustos.metadata.control.results import (
    EXCESSIVE_BATCH,
    MAX_RECORDS_PER_USER_OPERATION,
    ApiError,
    ControlResult,
)
from kustos.metadata.errors import RecordError
from kustos.metadata.features import CIDR_ACL_LEVEL, metadata_version_name
from kustos.metadata.image import MetadataImage, acl_record
from kustos.metadata.records import MetadataRecord, RemoveAccessControlEntryRecord
from kustos.metadata.records.fields import string_field
from kustos.runtime import Entropy
from kustos.wire import ErrorCode, new_uuid

NAMED_ACLS_MAX: Final = 500_000
"""The maximum number of ACLs in the answer to one deletion, if several filters match the same ones: about 30
MB. Kafka has no such limit; there ten thousand filters can request an answer of gigabytes."""

_NOT_STORED: Final = {0, 1}
"""UNKNOWN and ANY, the same codes in all four enums."""

_IPV4_RANGE: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class AclCreated:
    """The result of one creation: in force (even if the ACL existed before), or the error."""

    error: ApiError | None = None
    change_offset: int | None = None
    """The offset of the first record of the whole request, once written; None if there are none."""


@dataclass(frozen=True, slots=True)
class AclsDeleted:
    """The result of one filter: the deleted ACLs, or the error."""

    deleted: tuple[AclBinding, ...] = ()
    error: ApiError | None = None
    change_offset: int | None = None
    """As in `AclCreated`."""


def create_acls(
    image: MetadataImage, bindings: Sequence[AclBinding], entropy: Entropy
) -> ControlResult[AclCreated]:
    """Return the records that create these ACLs and one result per binding, in order.

    Invalid entries fail alone. An ACL that exists, or is repeated in the request, succeeds without a record.
    More than 10,000 new ACLs fail together.
    """
    results, records = [], list[MetadataRecord]()
    fresh: set[AclBinding] = set()
    ids: set[UUID] = set()
    for binding in bindings:
        error = new_acl_error(binding, image.metadata_version)
        results.append(AclCreated(error))
        if error is None and binding not in image.acl_ids and binding not in fresh:
            if len(records) == MAX_RECORDS_PER_USER_OPERATION:
                refused = AclCreated(ApiError(ErrorCode.policy_violation, EXCESSIVE_BATCH))
                return ControlResult((), (refused,) * len(bindings))
            fresh.add(binding)
            acl_id = _new_id(image, ids, entropy)
            ids.add(acl_id)
            records.append(acl_record(acl_id, binding))
    return ControlResult(tuple(records), tuple(results))


def _new_id(image: MetadataImage, taken: set[UUID], entropy: Entropy) -> UUID:
    while (acl_id := new_uuid(entropy)) in image.acls or acl_id in taken:
        continue
    return acl_id


def new_acl_error(binding: AclBinding, metadata_version: int) -> ApiError | None:
    """Return the error if this ACL cannot be created, else None."""
    pattern, entry = binding.pattern, binding.entry
    return (
        name_error(pattern.resource_type, pattern.name)
        or codes_error(pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type)
        or texts_error(pattern.name, entry.principal, entry.host, metadata_version)
    )


def name_error(resource_type: ResourceType, name: str) -> ApiError | None:
    """Return the error if no resource of the type can have this name; in Kafka this is a check of the API
    layer."""
    if resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        return _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        return _invalid("Invalid empty resource name")
    return None


def codes_error(
    resource_type: ResourceType,
    pattern_type: PatternType,
    operation: AclOperation,
    permission_type: AclPermissionType,
) -> ApiError | None:
    """Return the error for a code that no stored ACL can have, None if all are valid."""
    if resource_type in _NOT_STORED:
        return _invalid(f"Invalid resourceType {resource_type}")
    if not pattern_type.is_specific:
        return _invalid(f"Invalid patternType {pattern_type}")
    if operation in _NOT_STORED:
        return _invalid(f"Invalid operation {operation}")
    if permission_type in _NOT_STORED:
        return _invalid(f"Invalid permissionType {permission_type}")
    return None


def texts_error(name: str, principal: str, host: str, metadata_version: int) -> ApiError | None:
    """Return the error for an invalid text of a new ACL, None if all are valid."""
    if not name:
        return _invalid("Resource name should not be empty")
    if ":" not in principal:
        return _invalid(
            f"Could not parse principal from `{principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    if (error := host_error(host, metadata_version)) is not None:
        return error
    try:
        for text in (name, principal, host):
            string_field(text)
    except RecordError as unfit:
        return _invalid(str(unfit))
    return None


class _TooManyError(Exception):
    """There are more removals than one request may make, or than its answer may name."""

    def __init__(self, verb: str, limit: int) -> None:
        super().__init__(f"Cannot {verb} more than {limit} acls in a single delete operation.")


def delete_acls(image: MetadataImage, filters: Sequence[AclBindingFilter]) -> ControlResult[AclsDeleted]:
    """Return the records that remove the matches, each once, and one result per filter, in order.

    An ACL that two filters match is in both results. With more than 10,000 removals nothing is removed
    and every filter fails (INVALID_REQUEST).
    """
    errors = {acl_filter: filter_error(acl_filter) for acl_filter in filters}
    removed: dict[UUID, None] = {}
    results = []
    try:
        matches = _matches(image, Counter(acl_filter for acl_filter in filters if errors[acl_filter] is None))
        for acl_filter in filters:
            found = matches.get(acl_filter, [])
            _count(found, removed)
            results.append(AclsDeleted(tuple(binding for _, binding in found), errors[acl_filter]))
    except _TooManyError as error:
        refused = AclsDeleted(error=_invalid(str(error)))
        return ControlResult((), (refused,) * len(filters))
    return ControlResult(tuple(RemoveAccessControlEntryRecord(each) for each in removed), tuple(results))


def _matches(image: MetadataImage, filters: Counter[AclBindingFilter]) -> dict[AclBindingFilter, list[Acl]]:
    """Return the matches of filters, each with its number of occurrences.

    Raise `_TooManyError` as soon as there are too many, in any order of counting.
    """
    matches: dict[AclBindingFilter, list[Acl]] = {}
    union: set[UUID] = set()
    named = 0
    for acl_filter, acl in each_match(image, filters):
        matches.setdefault(acl_filter, []).append(acl)
        union.add(acl[0])
        named += filters[acl_filter]
        if len(union) > MAX_RECORDS_PER_USER_OPERATION:
            raise _TooManyError("remove", MAX_RECORDS_PER_USER_OPERATION)
        if named > NAMED_ACLS_MAX:
            raise _TooManyError("name", NAMED_ACLS_MAX)
    return matches


def _count(found: Sequence[Acl], removed: dict[UUID, None]) -> None:
    for acl_id, _ in found:
        # as Kafka counts: at the limit the next match fails, even of an ACL already counted
        if len(removed) >= MAX_RECORDS_PER_USER_OPERATION:
            raise _TooManyError("remove", MAX_RECORDS_PER_USER_OPERATION)
        removed[acl_id] = None


def filter_error(acl_filter: AclBindingFilter) -> ApiError | None:
    """Return the error if this filter is invalid, else None."""
    if acl_filter.pattern_filter.is_unknown:
        return _invalid("Unknown patternFilter.")
    if acl_filter.entry_filter.is_unknown:
        return _invalid("Unknown entryFilter.")
    return None


def describe_acls(
    image: MetadataImage, acl_filter: AclBindingFilter = EVERY_BINDING
) -> dict[ResourcePattern, list[AccessControlEntry]]:
    """Return the matching entries by pattern, without empty patterns."""
    found: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for binding in image.acls.values():
        if acl_filter.matches(binding):
            found.setdefault(binding.pattern, []).append(binding.entry)
    return found


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)


def host_error(host: str, metadata_version: int) -> ApiError | None:
    """Return the error if a new ACL cannot have this host, else None.

    Ranges of addresses need metadata.version 4.4-IV1 (KIP-1276).
    """
    if not host:
        return ApiError(ErrorCode.invalid_request, "Host pattern cannot be null or empty")
    if host == WILDCARD or "/" not in host:
        return None
    if metadata_version < CIDR_ACL_LEVEL:
        return ApiError(
            ErrorCode.unsupported_version,
            "CIDR-based ACL host patterns require metadata version "
            f"{metadata_version_name(CIDR_ACL_LEVEL)} or higher.",
        )
    try:
        HostRange.parse(host)
    except AclValueError:
        reason = _ipv6_reason(host) if ":" in host else _ipv4_reason(host)
        return ApiError(ErrorCode.invalid_request, f"Invalid CIDR notation '{host}': {reason}")
    return None


def _ipv4_reason(host: str) -> str:
    match = _IPV4_RANGE.fullmatch(host)
    if match is not None:
        for part, highest in zip(map(int, match.groups()), (255, 255, 255, 255, 32), strict=True):
            if part > highest:
                return f"Value [{part}] not in range [0,{highest}]"
    return f"Could not parse [{host}]"


def _ipv6_reason(host: str) -> str:
    address, _, prefix_text = host.partition("/")
    prefix = java_int(prefix_text)
    if prefix is None:
        return f"Could not parse [{host}] - invalid prefix length"
    if not 0 <= prefix <= 128:
        return f"Could not parse [{host}] - prefix length must be between 0 and 128"
    is_mapped = java_ipv6(address) is not None
    return f"Could not parse [{address}]" + (" - not an IPv6 address" if is_mapped else "")
