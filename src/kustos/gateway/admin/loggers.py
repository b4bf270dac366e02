"""Log levels of a running node, as in Kafka's `RuntimeLoggerManager` (KIP-412).

Levels belong to this process and are never persisted: a restart resets them.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from kustos.metadata.control import ApiError, java_int
from kustos.wire import ErrorCode, Message

ROOT_LOGGER: Final = "root"
LOG_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
"""Kafka's names, in alphabetical order."""

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
_OF_LISTS: Final = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


class Loggers(Protocol):
    """The loggers of this process."""

    def levels(self) -> Mapping[str, str]:
        """Return every logger, `root` included, with its own or inherited level."""

    def set_level(self, name: str, level: str) -> None:
        """Set the level of a logger, one of `LOG_LEVELS`."""

    def unset_level(self, name: str) -> None:
        """Let a logger inherit its ancestor's level."""


def alter_levels(
    loggers: Loggers, node_id: int, resource: Message, *, validate_only: bool
) -> ApiError | None:
    """Set the levels that an IncrementalAlterConfigs resource requests, all or none; return the error."""
    error = name_error(resource.resource_name, node_id)
    known = loggers.levels()
    for change in resource.configs:
        error = error or _change_error(change, known)
    if error is None and not validate_only:
        for change in resource.configs:
            if change.config_operation == SET:
                loggers.set_level(change.name, change.value)
            else:
                loggers.unset_level(change.name)
    return error


def name_error(name: str, node_id: int) -> ApiError | None:
    """Return the error if the loggers of this resource cannot be changed here, else None."""
    number = java_int(name)
    if number is None:
        return _invalid_request(f"Node id must be an integer, but it is: {name}")
    if number != node_id:
        return _invalid_request(f"Unexpected node id. Expected {node_id}, but received {number}")
    return None


def _change_error(change: Message, known: Mapping[str, str]) -> ApiError | None:
    operation, name = change.config_operation, change.name
    if operation in _OF_LISTS:
        return _invalid_request(
            f"{_OF_LISTS[operation]} operation is not allowed for the BROKER_LOGGER resource"
        )
    if operation not in {SET, DELETE}:
        return _invalid_request(
            f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
        )
    if name not in known:
        return ApiError(ErrorCode.invalid_config, f"Logger {name} does not exist!")
    if operation == SET and change.value not in LOG_LEVELS:
        return ApiError(
            ErrorCode.invalid_config,
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log level. Valid "
            f"log levels are {', '.join(LOG_LEVELS)}",
        )
    if operation == DELETE and name == ROOT_LOGGER:
        return _invalid_request(f"Removing the log level of the {ROOT_LOGGER} logger is not allowed")
    return None


def _invalid_request(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
