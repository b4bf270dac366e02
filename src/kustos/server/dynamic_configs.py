"""Settings in the metadata log: they override the file's settings, and every change takes effect at once."""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from kustos.authorizer import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Authorizer, parse_super_users
from kustos.metadata.control import ConfigResourceType, dynamic_values
from kustos.metadata.image import ConfigRemoved, ConfigSet, MetadataDelta, MetadataImage
from kustos.server.authorization.life import ReconfigurationError, reconfigure

LOG: Final = structlog.get_logger("kustos.server")


def check_boolean(text: str) -> None:
    """Raise ValueError if Kafka does not parse the text as a boolean."""
    if text.strip().lower() not in {"true", "false"}:
        raise ValueError("Expected value to be either true or false")


CHECKS: Final = {SUPER_USERS_CONFIG: parse_super_users, ALLOW_EVERYONE_CONFIG: check_boolean}
"""The check that a value must pass to be written to the log."""

AUTHORIZER_CONFIGS: Final = tuple(CHECKS)


class DynamicConfigs:
    """A `MetadataPublisher` that applies the settings in the log to the authorizer.

    It is called on the writer's thread and passes each change to the event loop, where the authorizer runs.
    The answer to the request reaches the loop after the change, so an acknowledged change is in force. If the
    authorizer refuses a value, the old settings stay in force and the error is logged.
    """

    def __init__(
        self,
        authorizer: Authorizer,
        file_values: Mapping[str, str],
        node_id: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._authorizer: Final = authorizer
        self._node_id: Final = node_id
        self._loop: Final = loop
        self._layers: dict[str, dict[str, str]] = {"": {}, str(node_id): {}}
        self._file_values = file_values
        self._in_force = file_values
        self.values: Mapping[str, str] = {}
        """The log's settings that are in force; for the event loop only."""

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Put the settings of an image in force."""
        self._layers = {
            name: {
                key: value
                for key, value in image.configs_of(ConfigResourceType.BROKER, name).items()
                if key in AUTHORIZER_CONFIGS
            }
            for name in self._layers
        }
        values = dynamic_values(image, self._node_id, AUTHORIZER_CONFIGS)
        if self._on_loop():
            self._apply(values)
        else:
            self._loop.call_soon_threadsafe(self._apply, values)

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Put changed settings in force."""
        concerned = False
        for change in delta.changes:
            if not isinstance(change, ConfigSet | ConfigRemoved) or not self._concerns(change):
                continue
            layer = self._layers[change.resource_name]
            if isinstance(change, ConfigSet):
                layer[change.name] = change.value
            else:
                layer.pop(change.name, None)
            concerned = True
        if concerned:
            values = self._layers[""] | self._layers[str(self._node_id)]
            self._loop.call_soon_threadsafe(self._apply, values)

    def restate(self, file_values: Mapping[str, str]) -> None:
        """Replace the file's settings, which are already in force unless the log overrides them."""
        self._file_values = file_values
        self._in_force = {**file_values, **self.values}

    def _concerns(self, change: ConfigSet | ConfigRemoved) -> bool:
        return (
            change.resource_type == ConfigResourceType.BROKER
            and change.resource_name in self._layers
            and change.name in AUTHORIZER_CONFIGS
        )

    def _on_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _apply(self, values: Mapping[str, str]) -> None:
        wanted = {**self._file_values, **values}
        try:
            self._in_force, _ = reconfigure(self._authorizer, self._in_force, wanted)
        except ReconfigurationError as error:
            LOG.error("settings of the log are not in force, the old ones stay", reason=str(error))
            return
        if self.values != values:
            self.values = values
            LOG.info("settings of the log are in force", keys=sorted(values))
