"""Converts admin requests that kustos answers itself between messages and metadata values.

The guard closes the connection for codes that Kafka's parser refuses. Other codes that no stored entry can
have fail item by item, with Kafka's texts.
"""

from collections.abc import Sequence

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import AclCreateResult, AclDeleteResult, KafkaApiError
from kustos.metadata.control import (
    ApiError,
    ScramAlterResult,
    ScramDeletion,
    ScramDescribeResult,
    ScramUpsertion,
    codes_error,
    name_error,
)
from kustos.protocol.shapes import shortened
from kustos.wire import Message


def error_fields(error: ApiError | KafkaApiError | None) -> dict[str, object]:
    """Return the error fields of a result."""
    if error is None:
        return {"error_code": 0, "error_message": None}
    text = None if error.message is None else shortened(error.message)
    return {"error_code": error.code.value, "error_message": text}


def error_fields_with_text(error: ApiError | KafkaApiError | None) -> dict[str, object]:
    """Return the error fields of a result; on success the text is empty instead of null, as in Kafka."""
    return error_fields(error) | ({"error_message": ""} if error is None else {})


def filter_of(item: Message) -> AclBindingFilter:
    """Return the filter of DescribeAcls, or of one item of DeleteAcls."""
    return AclBindingFilter(
        ResourcePatternFilter(
            ResourceType.from_code(item.resource_type_filter),
            item.resource_name_filter,
            PatternType.from_code(item.pattern_type_filter),
        ),
        AccessControlEntryFilter(
            item.principal_filter,
            item.host_filter,
            AclOperation.from_code(item.operation),
            AclPermissionType.from_code(item.permission_type),
        ),
    )


def creations_of(request: Message) -> list[AclBinding | ApiError] | None:
    """Return `creation_of` for each item of CreateAcls; None if the whole request fails."""
    return None if _has_filter_codes(request) else [creation_of(item) for item in request.creations]


def creation_of(item: Message) -> AclBinding | ApiError:
    """Return the ACL of an item of CreateAcls, or why it is invalid."""
    resource_type = ResourceType.from_code(item.resource_type)
    pattern_type = PatternType.from_code(item.resource_pattern_type)
    operation = AclOperation.from_code(item.operation)
    permission_type = AclPermissionType.from_code(item.permission_type)
    error = name_error(resource_type, item.resource_name) or codes_error(
        resource_type, pattern_type, operation, permission_type
    )
    if error is not None:
        return error
    return AclBinding(
        ResourcePattern(resource_type, item.resource_name, pattern_type),
        AccessControlEntry(item.principal, item.host, operation, permission_type),
    )


def _has_filter_codes(request: Message) -> bool:
    """Return whether a creation has ANY or MATCH, which no ACL can have.

    Kafka's parser accepts these but its value classes refuse them, so the whole request fails.
    """
    return any(
        item.resource_type == ResourceType.ANY
        or item.resource_pattern_type in {PatternType.ANY, PatternType.MATCH}
        or item.operation == AclOperation.ANY
        or item.permission_type == AclPermissionType.ANY
        for item in request.creations
    )


def failed_creations(message_type: type[Message], request: Message, error: KafkaApiError) -> Message:
    """Return the answer to a CreateAcls that created nothing."""
    failed = message_type.ELEMENTS["results"](**error_fields(error))
    return message_type(results=[failed for _ in request.creations])


def undescribed_acls(message_type: type[Message], error: KafkaApiError) -> Message:
    """Return the answer to a failed DescribeAcls."""
    return message_type(**error_fields(error))


def _entry_fields(entry: AccessControlEntry) -> dict[str, object]:
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": int(entry.operation),
        "permission_type": int(entry.permission_type),
    }


def created_acls(
    message_type: type[Message], items: Sequence[AclBinding | ApiError], results: Sequence[AclCreateResult]
) -> Message:
    """Return the answer to CreateAcls; `results` has one result for each valid item."""
    result = message_type.ELEMENTS["results"]
    waiting = iter(results)
    errors = [item if isinstance(item, ApiError) else next(waiting).exception for item in items]
    return message_type(results=[result(**error_fields_with_text(error)) for error in errors])


def deleted_acls(message_type: type[Message], results: Sequence[AclDeleteResult]) -> Message:
    """Return the answer to DeleteAcls."""
    result = message_type.ELEMENTS["filter_results"]
    matching = result.ELEMENTS["matching_acls"]
    return message_type(
        filter_results=[
            result(
                **error_fields(each.exception),
                matching_acls=[
                    matching(
                        **error_fields(deleted.exception),
                        resource_type=int(deleted.acl_binding.pattern.resource_type),
                        resource_name=deleted.acl_binding.pattern.name,
                        pattern_type=int(deleted.acl_binding.pattern.pattern_type),
                        **_entry_fields(deleted.acl_binding.entry),
                    )
                    for deleted in each.acl_binding_delete_results
                ],
            )
            for each in results
        ]
    )


def alterations_of(request: Message) -> tuple[tuple[ScramDeletion, ...], tuple[ScramUpsertion, ...]]:
    """Return the deletions and upsertions of AlterUserScramCredentials."""
    deletions = tuple(ScramDeletion(item.name, item.mechanism) for item in request.deletions)
    upsertions = tuple(
        ScramUpsertion(item.name, item.mechanism, item.iterations, item.salt, item.salted_password)
        for item in request.upsertions
    )
    return deletions, upsertions


def altered_scram(message_type: type[Message], results: Sequence[ScramAlterResult]) -> Message:
    """Return the answer to AlterUserScramCredentials."""
    result = message_type.ELEMENTS["results"]
    return message_type(results=[result(user=each.user, **error_fields(each.error)) for each in results])


def described_scram(message_type: type[Message], results: Sequence[ScramDescribeResult]) -> Message:
    """Return the answer to DescribeUserScramCredentials."""
    result = message_type.ELEMENTS["results"]
    info = result.ELEMENTS["credential_infos"]
    return message_type(
        results=[
            result(
                user=each.user,
                **error_fields_with_text(each.error),
                credential_infos=[
                    info(mechanism=credential.mechanism, iterations=credential.iterations)
                    for credential in each.credentials
                ],
            )
            for each in results
        ]
    )
