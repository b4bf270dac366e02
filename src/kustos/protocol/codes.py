"""Kafka's error codes and the texts that its brokers send with them.

Source: `org.apache.kafka.common.protocol.Errors`, 4.4.0.
"""

from typing import Final

from kustos.acl import ResourceType
from kustos.wire import ErrorCode

NONE: Final = 0

DENIED_CODE: Final[dict[ResourceType, int]] = {
    ResourceType.TOPIC: ErrorCode.topic_authorization_failed.value,
    ResourceType.GROUP: ErrorCode.group_authorization_failed.value,
    ResourceType.CLUSTER: ErrorCode.cluster_authorization_failed.value,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed.value,
}
"""The code sent to a client when an operation on this type is denied."""

MESSAGES: Final[dict[int, str]] = {
    ErrorCode.unknown_server_error.value: (
        "The server experienced an unexpected error when processing the request."
    ),
    ErrorCode.topic_authorization_failed.value: "Topic authorization failed.",
    ErrorCode.group_authorization_failed.value: "Group authorization failed.",
    ErrorCode.cluster_authorization_failed.value: "Cluster authorization failed.",
    ErrorCode.transactional_id_authorization_failed.value: "Transactional Id authorization failed.",
    ErrorCode.invalid_request.value: (
        "This most likely occurs because of a request being malformed by the client library or the "
        "message was sent to an incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.illegal_sasl_state.value: ("SaslAuthenticate request received after successful authentication"),
    ErrorCode.unknown_topic_id.value: "This server does not host this topic ID.",
    ErrorCode.unknown_topic_or_partition.value: "This server does not host this topic-partition.",
}
"""The texts that Kafka sends to clients; they are protocol constants, like the codes."""

UNKNOWN_SERVER_ERROR: Final = ErrorCode.unknown_server_error.value
UNKNOWN_TOPIC_OR_PARTITION: Final = ErrorCode.unknown_topic_or_partition.value
TOPIC_AUTHORIZATION_FAILED: Final = ErrorCode.topic_authorization_failed.value
GROUP_AUTHORIZATION_FAILED: Final = ErrorCode.group_authorization_failed.value
CLUSTER_AUTHORIZATION_FAILED: Final = ErrorCode.cluster_authorization_failed.value
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = ErrorCode.transactional_id_authorization_failed.value
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Final = ErrorCode.delegation_token_request_not_allowed.value
DELEGATION_TOKEN_AUTHORIZATION_FAILED: Final = ErrorCode.delegation_token_authorization_failed.value
INVALID_PRINCIPAL_TYPE: Final = ErrorCode.invalid_principal_type.value
ILLEGAL_SASL_STATE: Final = ErrorCode.illegal_sasl_state.value
UNSUPPORTED_VERSION: Final = ErrorCode.unsupported_version.value
INVALID_REQUEST: Final = ErrorCode.invalid_request.value
REBOOTSTRAP_REQUIRED: Final = ErrorCode.rebootstrap_required.value
INVALID_REGULAR_EXPRESSION: Final = ErrorCode.invalid_regular_expression.value
FETCH_SESSION_ID_NOT_FOUND: Final = ErrorCode.fetch_session_id_not_found.value
INVALID_FETCH_SESSION_EPOCH: Final = ErrorCode.invalid_fetch_session_epoch.value
FETCH_SESSION_TOPIC_ID_ERROR: Final = ErrorCode.fetch_session_topic_id_error.value
UNKNOWN_TOPIC_ID: Final = ErrorCode.unknown_topic_id.value
INVALID_TOPIC_EXCEPTION: Final = ErrorCode.invalid_topic_exception.value
