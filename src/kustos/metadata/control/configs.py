"""Dynamic settings altered: pure functions, after `ConfigurationControlManager`.

Texts, codes and the order of the checks are Kafka's. This module also makes the checks that Kafka leaves to
the forwarding broker, because this node is broker and controller at once: it refuses settings that are only
read at startup, unknown settings, and invalid values before they are written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final

from kustos.metadata.control.results import (
    EXCESSIVE_BATCH,
    MAX_RECORDS_PER_USER_OPERATION,
    ApiError,
    ControlResult,
)
from kustos.metadata.errors import RecordError
from kustos.metadata.image import MetadataImage
from kustos.metadata.records import ConfigRecord, MetadataRecord
from kustos.metadata.records.fields import MAX_STRING_SIZE_BYTES, string_field
from kustos.wire import ErrorCode

CLUSTER_WIDE: Final = ""
"""The name of the broker resource for all nodes."""

JAVA_INT: Final = re.compile(r"[+-]?[0-9]+")


@unique
class ConfigResourceType(IntEnum):
    """Types of resources with settings (`ConfigResource.Type`)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def from_code(cls, code: int) -> "ConfigResourceType":
        """Return the type of a code, UNKNOWN for an unassigned code."""
        return cls(code) if code in cls._value2member_map_ else cls.UNKNOWN


@unique
class ConfigOperation(IntEnum):
    """Operations on a setting (`AlterConfigOp.OpType`)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One setting to change; the operation is one of `ConfigOperation`."""

    name: str
    operation: ConfigOperation
    value: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class ResourceChanges:
    """One resource and its changes; the last change of a setting counts."""

    resource_type: int
    resource_name: str
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """The settings of this node that can change at run time.

    `dynamic`: validators by the name of the setting; they raise ValueError with a text that may be shown.
    `fixed`: the settings that only the file can change. `together`: checks all changes of a resource (None:
    the setting is removed) with each other, as settings may depend on each other; it raises ValueError, too.
    """

    node_id: int
    dynamic: Mapping[str, Callable[[str], object]]
    fixed: frozenset[str]
    together: Callable[[str, Mapping[str, str | None]], object] = lambda _name, _changes: None


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """Change settings of these resources, each named once."""

    resources: tuple[ResourceChanges, ...]
    rules: ConfigRules = field(repr=False)
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigAlterResult:
    """The result for one resource: changed as a whole, or the error."""

    resource_type: int
    resource_name: str
    error: ApiError | None = None


def alter_configs(alteration: ConfigAlteration) -> ControlResult[ConfigAlterResult]:
    """Return the records of the valid changes and one result per resource, in order.

    A resource changes as a whole or not at all; the others proceed. The image is not needed: as in Kafka, a
    record is written even if the value stays the same, so that nodes reload it (KAFKA-14136). More than
    10,000 records fail together.
    """
    records: list[MetadataRecord] = []
    results = []
    for resource in alteration.resources:
        resource_records: list[ConfigRecord] = []
        error = _resource_error(resource, alteration.rules, resource_records)
        if error is None:
            records += resource_records
        results.append(ConfigAlterResult(resource.resource_type, resource.resource_name, error))
    if len(records) > MAX_RECORDS_PER_USER_OPERATION:
        refused = ApiError(ErrorCode.policy_violation, EXCESSIVE_BATCH)
        return ControlResult(
            (), tuple(ConfigAlterResult(each.resource_type, each.resource_name, refused) for each in results)
        )
    return ControlResult(() if alteration.validate_only else tuple(records), tuple(results))


def _resource_error(
    resource: ResourceChanges, rules: ConfigRules, records: list[ConfigRecord]
) -> ApiError | None:
    last = {change.name: change for change in resource.changes}
    for change in last.values():
        if change.operation in {ConfigOperation.APPEND, ConfigOperation.SUBTRACT}:
            # no setting here is a list
            return ApiError(
                ErrorCode.invalid_config,
                f"Can't {change.operation.name} to key {change.name} because its type is not LIST.",
            )
    values = {
        name: None if change.operation is ConfigOperation.DELETE else change.value
        for name, change in last.items()
    }
    error = _size_error(values) or resource_error(resource.resource_type, resource.resource_name, rules)
    error = error or _values_error(values, rules)
    name = resource.resource_name
    if error is None:
        name = CLUSTER_WIDE if name == CLUSTER_WIDE else str(int(name))
        error = _together_error(name, values, rules)
    if error is None:
        records += (
            ConfigRecord(ConfigResourceType.BROKER, name, key, value) for key, value in values.items()
        )
    return error


def _size_error(values: Mapping[str, str | None]) -> ApiError | None:
    try:
        for name, value in values.items():
            string_field(name)
            string_field(value or "")
    except RecordError:
        return ApiError(
            ErrorCode.invalid_config,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_STRING_SIZE_BYTES} bytes.",
        )
    return None


def resource_error(resource_type: int, name: str, rules: ConfigRules) -> ApiError | None:
    """Return the error if this resource cannot be changed here, else None."""
    kind = ConfigResourceType.from_code(resource_type)
    if kind is ConfigResourceType.TOPIC:
        if not name:
            return _invalid("Default topic resources are not allowed.")
        # this node has no topics, even if upstream has some
        return ApiError(ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist.")
    if kind is not ConfigResourceType.BROKER:
        return _invalid(f"Unknown resource type {kind.name}")
    return None if name == CLUSTER_WIDE else _node_error(name, rules.node_id)


def _node_error(name: str, own_id: int) -> ApiError | None:
    node_id = java_int(name)
    if node_id is None:
        return _invalid("Unable to parse broker name as a base 10 number.")
    if node_id < 0:
        return _invalid("Invalid negative broker ID.")
    if node_id != own_id:
        return ApiError(ErrorCode.broker_id_not_registered, f"No node with id {node_id} found.")
    return None


def java_int(text: str) -> int | None:
    """Return the number that `Integer.parseInt` reads, None if it throws."""
    if not JAVA_INT.fullmatch(text) or len(text) > MAX_INT_CHARACTERS:
        return None
    number = int(text)
    return number if -(2**31) <= number < 2**31 else None


MAX_INT_CHARACTERS: Final = 64
"""Longer texts can only be numbers with leading zeros; Python refuses to read thousands of digits."""


def _values_error(values: Mapping[str, str | None], rules: ConfigRules) -> ApiError | None:
    new_values = {name: value for name, value in values.items() if value is not None}
    fixed = sorted(name for name in new_values if name in rules.fixed)
    if fixed:
        return _invalid(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for name, value in new_values.items():
        check = rules.dynamic.get(name)
        if check is None:
            return ApiError(ErrorCode.invalid_config, f"Unknown config name: {name}")
        try:
            check(value)
        except ValueError as error:
            return _invalid(f"Invalid value for configuration {name}: {error}")
    return None


def _together_error(name: str, values: Mapping[str, str | None], rules: ConfigRules) -> ApiError | None:
    try:
        rules.together(name, values)
    except ValueError as error:
        return _invalid(f"Invalid value for configuration: {error}")
    return None


def dynamic_values(image: MetadataImage, node_id: int, names: Sequence[str]) -> dict[str, str]:
    """Return these settings as the log has them: the node's own value overrides the value for all nodes."""
    everywhere = image.configs_of(ConfigResourceType.BROKER, CLUSTER_WIDE)
    own = image.configs_of(ConfigResourceType.BROKER, str(node_id))
    return {name: value for name, value in (everywhere | own).items() if name in names}


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
