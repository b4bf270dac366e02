"""Failed metadata changes: one error for every kind of change.

After a failed write (a full disk) the content of the disk is unknown, so the log takes nothing more until the
node is restarted. A Kafka controller would halt, and brokers would not answer clients before their time-outs;
here decisions go on, and every change is answered with UNKNOWN_SERVER_ERROR, as Kafka's request handlers
answer unforeseen faults. Not KAFKA_STORAGE_ERROR: Java's clients consider that retriable, and retry until
their own time-out.
"""

from typing import Any, Final

import structlog
from kio.schema.errors import ErrorCode

from kustos.authorizer import KafkaApiError
from kustos.gateway.store.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata import MetadataError
from kustos.metadata.store import StoreRequest
from kustos.protocol import Opened, admin, token_messages
from kustos.wire import ApiKey, Message

LOG: Final = structlog.get_logger("kustos.gateway")


async def changed(writer: MetadataWriter, request: StoreRequest) -> tuple[Any, ...]:
    """Return the results of a change when it is durable and in force; raise `KafkaApiError`.

    The log says why; clients get only the code.
    """
    try:
        return await writer.submit(request)
    except (MetadataError, WriterBusyError, WriterClosedError) as error:
        LOG.error("the metadata was not changed", reason=str(error))
        raise KafkaApiError(ErrorCode.unknown_server_error) from error


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
