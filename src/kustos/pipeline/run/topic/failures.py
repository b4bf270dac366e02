"""Errors of reading a topic as messages that name the cause and the fix, in the driver and from workers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kustos.client import (
    AuthenticationFailedError,
    CannotConnectError,
    ClientError,
    ConnectionClosedError,
    KafkaError,
    ProtocolViolationError,
    SettingsError,
)
from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.run.topic.settings import TopicSettings
from kustos.pipeline.task_errors import task_errors

_MISSING: Final = "topic `{topic}` does not exist at `{brokers}`, or was deleted while it was read"
_REFUSED: Final = "cannot read topic `{topic}`: {error}"
_RECREATED: Final = (
    "topic `{topic}` was deleted, or recreated, while it was read; read the new one into a new checkpoint, "
    "from its beginning: the tables keep all they have"
)
_DELETED: Final = (
    "records of topic `{topic}` were deleted before they were read (retention, or the topic was deleted "
    "or recreated); read it into a new checkpoint to continue with the remaining records"
)

BY_CODE: Final = {
    "TOPIC_AUTHORIZATION_FAILED": (
        "no permission to read topic `{topic}`: it needs READ and DESCRIBE on the topic"
    ),
    "UNKNOWN_TOPIC_OR_PARTITION": _MISSING,
    "UNKNOWN_TOPIC_ID": _RECREATED,
    "INCONSISTENT_TOPIC_ID": _RECREATED,
    "OFFSET_OUT_OF_RANGE": _DELETED,
}
"""What a broker's error means for who reads a topic."""


def kafka_failure(error: ClientError, settings: TopicSettings) -> KafkaInputError:
    """Return the error that says what to do about one of our client."""
    return KafkaInputError(
        _sentence(error).format(topic=settings.topic, brokers=settings.bootstrap_servers, error=error)
    )


def _sentence(error: ClientError) -> str:
    last = error if isinstance(error, KafkaError) else error.__cause__
    if isinstance(last, KafkaError):  # also one that was met again and again until the time was over
        return BY_CODE.get(last.name, _REFUSED)
    match error:
        case SettingsError():
            return "the client properties cannot be used: {error}"
        case AuthenticationFailedError():
            return "the brokers at `{brokers}` refused the login: {error}"
        case CannotConnectError() | ConnectionClosedError() if not isinstance(error, ProtocolViolationError):
            return (
                "the brokers at `{brokers}` do not answer, check the address, the listener and "
                "`security.protocol`: {error}"
            )
        case _:
            return _REFUSED


def records_deleted(settings: TopicSettings) -> KafkaInputError:
    """Return the error for records that were deleted before they were read."""
    return KafkaInputError(_DELETED.format(topic=settings.topic))


def no_progress(settings: TopicSettings, partition: int, offset: int, end: int) -> KafkaInputError:
    """Return the error for a partition that brings nothing more before its end."""
    return KafkaInputError(
        f"the brokers bring no record of topic `{settings.topic}`, partition {partition}, from offset "
        f"{offset} on, though its end is {end}; look at its leader, and run again"
    )


@contextmanager
def kafka_errors(settings: TopicSettings) -> Iterator[None]:
    """Turn errors of reading the topic within the block, or in workers for it, into `KafkaInputError`."""
    try:
        with task_errors():
            yield
    except ClientError as error:
        raise kafka_failure(error, settings) from None
