"""Answers that are the same in embedded mode and in cluster mode, and answers to failed changes.

After a failed write (a full disk) the content of the disk is unknown, so the log accepts no more records
until the node is restarted. A Kafka controller would halt, and brokers would not answer clients before their
time-outs; kustos continues to decide, and answers every change with UNKNOWN_SERVER_ERROR, as Kafka's request
handlers do for unexpected faults. It does not use KAFKA_STORAGE_ERROR, because Java's clients would retry
until their own time-out.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from kustos.authorizer import KafkaApiError
from kustos.gateway.apis.acls import AclApis
from kustos.metadata.control import ApiError, describe_scram
from kustos.metadata.image import MetadataImage
from kustos.protocol import DescribedConfig, Opened, admin, node_messages, token_messages
from kustos.wire import ApiKey, Message

Described = Callable[[Message], list[DescribedConfig] | ApiError]
"""Returns the requested settings of one resource, or the error."""


@dataclass(frozen=True, slots=True)
class SharedApis:
    """Serves ApiVersions, the ACL APIs, and the descriptions of SCRAM users and of the authorizer's settings.

    The guard has authorized them.
    """

    image: Callable[[], MetadataImage]
    api_versions: Callable[[int], bytes]
    """Version → the encoded answer to ApiVersions."""
    acls: AclApis
    described: Described
    """Describes this node's authorizer to clients that request the settings of a broker."""

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes] | None:
        """Return the answer, or a coroutine that returns it; None for any other API."""
        codec = opened.exchange.response_codec
        request = opened.exchange.request
        match opened.row.api_key:
            case ApiKey.API_VERSIONS:
                return self.api_versions(opened.exchange.version)
            case ApiKey.DESCRIBE_ACLS:
                return self.acls.describe(codec, request)
            case ApiKey.CREATE_ACLS | ApiKey.DELETE_ACLS:
                change = self.acls.create if opened.row.api_key == ApiKey.CREATE_ACLS else self.acls.delete
                context, written_at = opened.exchange.context, opened.exchange.written_at
                return change(codec, request, context, written_at)
            case ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
                users = [user.name for user in request.users or ()]
                return admin.described_scram(codec.root, describe_scram(self.image(), users))
            case ApiKey.DESCRIBE_CONFIGS:
                found = [self.described(resource) for resource in request.resources]
                return node_messages.described_configs(codec.root, request, found)
        return None


def refused(opened: Opened, error: KafkaApiError) -> Message:
    """Return the answer to a failed change of SCRAM users or tokens."""
    exchange = opened.exchange
    response_type, request = exchange.response_codec.root, exchange.request
    match exchange.header.api_key:
        case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            result = response_type.ELEMENTS["results"]
            users = dict.fromkeys(item.name for item in (*request.deletions, *request.upsertions))
            return response_type(results=[result(user=user, **admin.error_fields(error)) for user in users])
        case ApiKey.CREATE_DELEGATION_TOKEN:
            creation = token_messages.creation_of(request, exchange.context.principal)
            return token_messages.refused_creation(response_type, creation, error.code.value)
        case _:
            return response_type(error_code=error.code.value, expiry_timestamp=token_messages.NO_TIME)
