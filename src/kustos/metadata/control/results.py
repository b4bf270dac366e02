"""Results of a request to change the metadata, item by item."""

from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from kustos.metadata.records import MetadataRecord
from kustos.wire import ErrorCode

MAX_RECORDS_PER_USER_OPERATION: Final = 10_000
"""Kafka's limit (`QuorumController.MAX_RECORDS_PER_USER_OP`): one request must not block all others."""

EXCESSIVE_BATCH: Final = "Unable to perform excessively large batch operation."


@dataclass(frozen=True, slots=True)
class ApiError:
    """A Kafka error code and its text; the text is None if Kafka sends none."""

    code: ErrorCode
    message: str | None = None


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ControlResult(Generic[Result]):
    """The records that a request appends (one atomic batch), and one result per item.

    The results are valid only once the records are durable.
    """

    records: tuple[MetadataRecord, ...] = field(repr=False)
    results: tuple[Result, ...]
