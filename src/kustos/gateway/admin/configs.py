"""The settings of this node as DescribeConfigs shows them (`ConfigHelper` of Kafka 4.3.1).

A setting takes its value from the first source that has one: the log for this node, the log for all nodes,
the file, the default. Values that may be secrets are never shown, only their names: passwords, values of
references in the file, and settings of an unknown kind.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final

from kustos.gateway.admin.loggers import Loggers
from kustos.metadata.control import ApiError, ConfigResourceType, java_int
from kustos.metadata.image import MetadataImage
from kustos.protocol import DescribedConfig, Synonym
from kustos.wire import ErrorCode, Message


@unique
class ConfigSource(IntEnum):
    """The source of a value (`DescribeConfigsResponse.ConfigSource`)."""

    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


@unique
class ConfigType(IntEnum):
    """The type of a value (`DescribeConfigsResponse.ConfigType`)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    LIST = 7
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting: its default and its value in the file, each None if unset."""

    name: str
    config_type: ConfigType = ConfigType.UNKNOWN
    default: str | None = None
    value: str | None = field(default=None, repr=False)
    documentation: str | None = None
    is_sensitive: bool = True


class ConfigBook:
    """All settings; values in the log override the others. `dynamic`: the keys that can be changed."""

    def __init__(
        self,
        node_id: int,
        entries: Iterable[ConfigEntry],
        dynamic: frozenset[str],
        image: Callable[[], MetadataImage],
        loggers: Loggers,
    ) -> None:
        self._node_id: Final = node_id
        self._entries: Final = {entry.name: entry for entry in entries}
        self._dynamic: Final = dynamic
        self._image: Final = image
        self._loggers: Final = loggers

    def restate(self, entries: Iterable[ConfigEntry], gone: Iterable[str] = ()) -> None:
        """Replace the file's values of these settings; the keys in `gone` are no longer in the file."""
        self._entries.update((entry.name, entry) for entry in entries)
        for name in gone:
            self._entries.pop(name, None)

    def describe(self, resource: Message) -> list[DescribedConfig] | ApiError:
        """Return the requested settings of a resource, or the error."""
        kind, name = ConfigResourceType.from_code(resource.resource_type), resource.resource_name
        match kind:
            case ConfigResourceType.BROKER:
                found = self._of_broker(name)
            case ConfigResourceType.BROKER_LOGGER:
                found = self._of_loggers(name)
            case ConfigResourceType.TOPIC:
                # this node has no topics, even if upstream has some
                found = ApiError(ErrorCode.unknown_topic_or_partition)
            case _:
                found = _invalid(f"Unsupported resource type: {kind.name}")
        if isinstance(found, ApiError) or not resource.configuration_keys:
            return found
        keys = frozenset(resource.configuration_keys)
        return [config for config in found if config.name in keys]

    def describe_authorizer(self, resource: Message) -> list[DescribedConfig] | ApiError:
        """Return the requested settings of this node, regardless of the broker in the request.

        The empty name requests the log's settings for all nodes, as usual.
        """
        name = resource.resource_name and str(self._node_id)
        return self.describe(resource.replace(resource_name=name))

    def _of_broker(self, name: str) -> list[DescribedConfig] | ApiError:
        image = self._image()
        everywhere = image.configs_of(ConfigResourceType.BROKER, "")
        if name == "":
            return [self._described(each, {}, everywhere, of_node=False) for each in sorted(everywhere)]
        error = self._name_error(name, " or empty string,")
        if error is not None:
            return error
        own = image.configs_of(ConfigResourceType.BROKER, str(self._node_id))
        names = sorted({*self._entries, *everywhere, *own})
        return [self._described(each, own, everywhere, of_node=True) for each in names]

    def _of_loggers(self, name: str) -> list[DescribedConfig] | ApiError:
        error = _invalid("Broker id must not be empty") if name == "" else self._name_error(name, "")
        if error is not None:
            return error
        source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
        return [
            DescribedConfig(logger, level, source, ConfigType.UNKNOWN)
            for logger, level in sorted(self._loggers.levels().items())
        ]

    def _name_error(self, name: str, also: str) -> ApiError | None:
        number = java_int(name)
        if number is None:
            return _invalid(f"Broker id must be an integer, but it is: {name}")
        if number != self._node_id:
            return _invalid(f"Unexpected broker id, expected {self._node_id}{also} but received {name}")
        return None

    def _described(
        self, name: str, own: Mapping[str, str], everywhere: Mapping[str, str], *, of_node: bool
    ) -> DescribedConfig:
        entry = self._entries.get(name, ConfigEntry(name))
        ranks = [
            (own.get(name), ConfigSource.DYNAMIC_BROKER_CONFIG),
            (everywhere.get(name), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ]
        if of_node:
            ranks += [
                (entry.value, ConfigSource.STATIC_BROKER_CONFIG),
                (entry.default, ConfigSource.DEFAULT_CONFIG),
            ]
        synonyms = tuple(
            Synonym(name, None if entry.is_sensitive else value, source)
            for value, source in ranks
            if value is not None
        )
        return DescribedConfig(
            name=name,
            value=synonyms[0].value if synonyms else None,
            source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
            config_type=entry.config_type,
            is_sensitive=entry.is_sensitive,
            read_only=name not in self._dynamic,
            synonyms=synonyms,
            documentation=entry.documentation,
        )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
