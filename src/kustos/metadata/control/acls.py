"""ACLs created, deleted and described: pure functions of an image, after `AclControlManager`.

Texts and codes are Kafka's, since clients show them and tests of clients compare them. The order of the
checks is Kafka's too: the first that fails is the one reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from kustos.acl import (
    CLUSTER_NAME,
    EVERY_BINDING,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.metadata.control.hosts import host_error
from kustos.metadata.control.results import (
    EXCESSIVE_BATCH,
    MAX_RECORDS_PER_USER_OPERATION,
    ApiError,
    ControlResult,
)
from kustos.metadata.errors import RecordError
from kustos.metadata.ids import new_uuid
from kustos.metadata.image import MetadataImage, acl_record
from kustos.metadata.records import MetadataRecord, RemoveAccessControlEntryRecord
from kustos.metadata.records.fields import string_field
from kustos.runtime import Entropy

_NOT_STORED: Final = {0, 1}
"""UNKNOWN and ANY, the same codes in all four enums."""


@dataclass(frozen=True, slots=True)
class AclCreateResult:
    """One creation: it holds now (also if it did before), or the error says why not."""

    error: ApiError | None = None
    change_offset: int | None = None
    """Where the records of the whole request begin in the log, once they are there; None: there are none."""


@dataclass(frozen=True, slots=True)
class AclDeleteResult:
    """One filter: the ACLs that matched and are gone, or the error."""

    deleted: tuple[AclBinding, ...] = ()
    error: ApiError | None = None
    change_offset: int | None = None
    """As of `AclCreateResult`."""


def create_acls(
    image: MetadataImage, bindings: Sequence[AclBinding], entropy: Entropy
) -> ControlResult[AclCreateResult]:
    """Return the records that make these ACLs and one result per binding, in order.

    Invalid entries fail alone. What exists already, or twice in the request, succeeds without a record.
    More than 10,000 new ACLs fail together.
    """
    results, records = [], list[MetadataRecord]()
    fresh: set[AclBinding] = set()
    ids: set[UUID] = set()
    for binding in bindings:
        error = new_acl_error(binding, image.metadata_version)
        results.append(AclCreateResult(error))
        if error is None and binding not in image.acl_ids and binding not in fresh:
            if len(records) == MAX_RECORDS_PER_USER_OPERATION:
                refused = AclCreateResult(ApiError(ErrorCode.policy_violation, EXCESSIVE_BATCH))
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
    """Return why this ACL cannot be made, None if it can."""
    pattern, entry = binding.pattern, binding.entry
    return (
        name_error(pattern.resource_type, pattern.name)
        or codes_error(pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type)
        or texts_error(pattern.name, entry.principal, entry.host, metadata_version)
    )


def name_error(resource_type: ResourceType, name: str) -> ApiError | None:
    """Return why no resource of the type can have this name; the API layer's own check in Kafka."""
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
    """Return which code no stored ACL can have, None if all are fine."""
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
    """Return which text of a new ACL is not acceptable, None if all are."""
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
    """More removals than one request may ask for."""


def delete_acls(image: MetadataImage, filters: Sequence[AclBindingFilter]) -> ControlResult[AclDeleteResult]:
    """Return the records that remove what matches, each once, and one result per filter, in order.

    An ACL that two filters match shows under both. With more than 10,000 removals nothing is removed
    and every filter fails (INVALID_REQUEST).
    """
    removed: dict[UUID, None] = {}
    results = []
    try:
        for asked in filters:
            error = filter_error(asked)
            deleted = () if error is not None else _matches(image, asked, removed)
            results.append(AclDeleteResult(deleted, error))
    except _TooManyError as error:
        refused = AclDeleteResult(error=_invalid(str(error)))
        return ControlResult((), (refused,) * len(filters))
    return ControlResult(tuple(RemoveAccessControlEntryRecord(each) for each in removed), tuple(results))


def _matches(
    image: MetadataImage, asked: AclBindingFilter, removed: dict[UUID, None]
) -> tuple[AclBinding, ...]:
    deleted = []
    for acl_id, binding in image.acls.items():
        if asked.matches(binding):
            # as Kafka counts: at the cap the next match fails, even of an ACL that is counted already
            if len(removed) >= MAX_RECORDS_PER_USER_OPERATION:
                raise _TooManyError(
                    f"Cannot remove more than {MAX_RECORDS_PER_USER_OPERATION} acls in a single delete "
                    "operation."
                )
            removed[acl_id] = None
            deleted.append(binding)
    return tuple(deleted)


def filter_error(asked: AclBindingFilter) -> ApiError | None:
    """Return why nothing can be asked with this filter, None if it can."""
    if asked.pattern_filter.is_unknown:
        return _invalid("Unknown patternFilter.")
    if asked.entry_filter.is_unknown:
        return _invalid("Unknown entryFilter.")
    return None


def describe_acls(
    image: MetadataImage, asked: AclBindingFilter = EVERY_BINDING
) -> dict[ResourcePattern, list[AccessControlEntry]]:
    """Return the matching entries by pattern; no pattern is there without entries."""
    found: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for binding in image.acls.values():
        if asked.matches(binding):
            found.setdefault(binding.pattern, []).append(binding.entry)
    return found


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
