"""The settings to read a topic: Kafka's own client keys, whose values are never shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from kustos.client import SettingsError, read_properties
from kustos.pipeline.errors import KafkaInputError

TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

BOOTSTRAP: Final = "bootstrap.servers"

SPARKS_OWN: Final = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "group.id",
        "interceptor.classes",
        "key.deserializer",
        "value.deserializer",
    }
)
"""Spark sets these itself and refuses a source with them; they are dropped, so one file serves all tools."""

BOUNDED: Final = {
    "default.api.timeout.ms": "15000",
    "request.timeout.ms": "10000",
    "socket.connection.setup.timeout.ms": "5000",
}
"""Timeouts for a silent broker, unless the file sets others (Kafka: 60 s)."""

FETCHED: Final = {
    "fetch.max.wait.ms": "10",
    "max.partition.fetch.bytes": str(4 << 20),
    "max.poll.records": "4000",
    "receive.buffer.bytes": "-1",
}
"""What Spark's source gets at a time, unless the file says otherwise.

Its consumers ask for the ends of a partition after each poll, and wait for the answer behind a fetch, which
the broker holds back where there are no more records: by Kafka's default half a second, at the end of a
topic. With 500 records a poll and 1 MB a fetch, its other defaults, they ask too often. A consumer holds one
fetch, and Spark keeps 64 consumers at most. A socket has a buffer that the system lets grow to what a fetch
needs: with Kafka's 64 KB, broker and consumer call the system for each 64 records of 1 KB."""

SECRET_KEYS: Final = re.compile(r"(?i)password|jaas|secret|token|key$|keystore|truststore|credential")
"""Keys whose values are redacted wherever a text might quote them."""

SHORTEST_SECRET: Final = 3
"""Shorter ones occur in any text by chance."""

_JAAS_OPTION: Final = re.compile(r"=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;\"]+))")


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

    def client_options(self) -> dict[str, str]:
        """Return the properties for Kafka's clients, with the defaults of kustos."""
        return {
            key: value
            for key, value in {**BOUNDED, **self.client_properties}.items()
            if key not in SPARKS_OWN
        }

    def options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source that a batch and a stream have in common."""
        return {
            **{f"kafka.{key}": value for key, value in {**FETCHED, **self.client_options()}.items()},
            "kafka.isolation.level": "read_committed",  # what a transaction aborted never happened
            "subscribe": self.topic,
            "startingOffsets": self.starting,
            "failOnDataLoss": "true",  # records deleted before they were read must be an error
            "fetchOffset.numRetries": "1",
            "fetchOffset.retryIntervalMs": "500",
        }

    def blotted(self, text: str) -> str:
        """Return a text with the secrets of these settings redacted."""
        values = {value for key, value in self.client_properties.items() if SECRET_KEYS.search(key)}
        quoted = {found[1] or found[2] for value in values for found in _JAAS_OPTION.finditer(value)}
        for secret in sorted(values | quoted, key=len, reverse=True):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "[hidden]")
        return text
