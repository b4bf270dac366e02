"""The settings to read a topic: Kafka's own client keys, whose values are never shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from kustos.client import ClientSettings, SettingsError, read_properties
from kustos.client.topics import FetchLimits
from kustos.pipeline.errors import KafkaInputError

TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

BOOTSTRAP: Final = "bootstrap.servers"

BOUNDED: Final = {
    "default.api.timeout.ms": "15000",
    "request.timeout.ms": "10000",
    "socket.connection.setup.timeout.ms": "5000",
}
"""Timeouts for a silent broker, unless the file sets others (Kafka: 60 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """A topic and how to reach it.

    `client_properties` are Kafka's client keys, `bootstrap.servers` among them. `starting` is where a stream
    begins: `earliest` or `latest`. `maximum_records` is the limit of a stream's micro-batch. `layout` is
    log4j's pattern of lines that a log shipper wrote, None for Kafka's own.
    """

    topic: str
    client_properties: Mapping[str, str] = field(repr=False)
    starting: str = "earliest"
    maximum_records: int = 500_000
    layout: str | None = None

    def __post_init__(self) -> None:
        if TOPIC_NAME.fullmatch(self.topic) is None or self.topic in {".", ".."}:
            raise KafkaInputError(
                f"`{self.topic}` is not a name of a topic, use letters, digits, `.`, `_` and `-`"
            )
        if not self.client_properties.get(BOOTSTRAP, "").strip():
            raise KafkaInputError(f"the client properties lack `{BOOTSTRAP}`, name the brokers there")
        if self.starting not in {"earliest", "latest"}:
            raise KafkaInputError(f"a topic is read from `earliest` or `latest`, not from `{self.starting}`")
        if self.maximum_records < 1:
            raise KafkaInputError(f"a micro-batch takes at least one record, not `{self.maximum_records}`")

    @classmethod
    def from_file(cls, topic: str, command_config: Path, layout: str | None = None) -> Self:
        """Return the settings of a properties file as Kafka's tools read it; raise `KafkaInputError`."""
        try:
            return cls(topic=topic, client_properties=read_properties(command_config), layout=layout)
        except SettingsError as error:
            raise KafkaInputError(str(error)) from error

    @property
    def bootstrap_servers(self) -> str:
        """The brokers to contact first: no secret."""
        return self.client_properties[BOOTSTRAP]

    def client_settings(self) -> ClientSettings:
        """Return the settings of our connections; raise `SettingsError` naming the wrong key."""
        return ClientSettings.from_properties(self.bootstrap_servers, self._properties)

    def fetch_limits(self) -> FetchLimits:
        """Return how much is fetched at a time; raise `SettingsError` naming the wrong key."""
        return FetchLimits.from_properties(self._properties)

    @property
    def _properties(self) -> Mapping[str, str]:
        return {**BOUNDED, **self.client_properties}
