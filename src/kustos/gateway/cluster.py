"""What the gateway knows of the upstream cluster, and asks of it for itself.

One connection to any of its brokers, made anew when it breaks, answers for all clients: which brokers
there are, which versions they speak, what a topic id is called, whether topics are auto-created.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from kustos.client.connection import KafkaConnection
from kustos.client.errors import ClientError
from kustos.wire import ZERO_UUID, Message, request_codec
from kustos.wire.api_keys import ApiKey

TOPIC_IDS_MAX: Final = 500_000
"""Names kept for topic ids; an id means the same for ever, so only memory limits them."""

UNKNOWN_TOPIC_ID_TTL_S: Final = 0.1
"""How long an id may stay unknown without asking again: a new topic must not wait long to be seen."""

UNKNOWN_TOPIC_IDS_MAX: Final = 10_000
"""Ids remembered as unknown; a client can invent them, so there are few."""

BROKER_CONFIG: Final = 4
LOG: Final = structlog.get_logger("kustos.gateway")


class Connect(Protocol):
    """Opens an authenticated connection to an upstream address."""

    async def __call__(self, host: str, port: int) -> KafkaConnection:
        """Return the connection; raise `ClientError`."""


@dataclass(frozen=True, slots=True)
class Broker:
    """An upstream broker."""

    node_id: int
    host: str
    port: int


class UpstreamUnavailableError(Exception):
    """No upstream broker answers; clients are disconnected, as by a broker that is down."""


class UpstreamCluster:
    """The upstream cluster as seen through one connection of the gateway's own."""

    def __init__(self, bootstrap: Iterable[tuple[str, int]], connect: Connect) -> None:
        self.bootstrap: Final = tuple(bootstrap)
        self.connect: Final = connect
        self.brokers: dict[int, Broker] = {}
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: Message | None = None
        self.cluster_id: str | None = None
        self.auto_creates_topics = True
        self.on_brokers: Callable[[dict[int, Broker]], None] = lambda _: None
        self._connection: KafkaConnection | None = None
        self._lock = asyncio.Lock()
        self._names: dict[bytes, str] = {}
        self._unknown: dict[bytes, float] = {}

    async def connection(self) -> KafkaConnection:
        """Return the open connection, made anew if need be; raise `UpstreamUnavailableError`."""
        async with self._lock:
            if self._connection is not None and self._connection.is_usable:
                return self._connection
            failures: list[str] = []
            known = [(broker.host, broker.port) for broker in self.brokers.values()]
            for host, port in dict.fromkeys((*self.bootstrap, *known)):
                try:
                    self._connection = await self.connect(host, port)
                except ClientError as error:
                    failures.append(str(error))
                    continue
                return self._connection
            raise UpstreamUnavailableError("; ".join(failures))

    @property
    def is_reachable(self) -> bool:
        """Whether upstream answered when it was last asked."""
        return self._connection is not None and self._connection.is_open

    async def ask(self, api_key: ApiKey, *, cap: int | None = None, **fields: object) -> Message:
        """Return upstream's answer to a request of the gateway's own; raise `UpstreamUnavailableError`."""
        connection = await self.connection()
        try:
            version = connection.choose_version(api_key, cap)
            message = request_codec(api_key, version).root.fit(**fields)
            return await connection.send(api_key, version, message)
        except ClientError as error:
            raise UpstreamUnavailableError(str(error)) from error

    async def refresh(self) -> None:
        """Learn the brokers, their versions and what matters of their configuration."""
        answer = await self.ask(ApiKey.METADATA, topics=[], allow_auto_topic_creation=False)
        brokers = {b.node_id: Broker(b.node_id, b.host, b.port) for b in answer.brokers}
        self.cluster_id = answer.get("cluster_id")
        versions = await self.ask(
            ApiKey.API_VERSIONS, client_software_name="kustos", client_software_version="1"
        )
        self.versions = {item.api_key: (item.min_version, item.max_version) for item in versions.api_keys}
        self.features = versions
        self.auto_creates_topics = await self._learn_auto_create(next(iter(brokers), 0))
        if brokers != self.brokers:
            LOG.info("upstream brokers", brokers=[f"{b.node_id}={b.host}:{b.port}" for b in brokers.values()])
            self.brokers = brokers
            self.on_brokers(brokers)

    async def _learn_auto_create(self, node_id: int) -> bool:
        """Return `auto.create.topics.enable` of a broker, True where we are not allowed to know."""
        codec = request_codec(ApiKey.DESCRIBE_CONFIGS, 1)
        resource = codec.struct("DescribeConfigsResource")(
            resource_type=BROKER_CONFIG,
            resource_name=str(node_id),
            configuration_keys=["auto.create.topics.enable"],
        )
        answer = await self.ask(ApiKey.DESCRIBE_CONFIGS, cap=1, resources=[resource])
        values = [config.value for result in answer.results for config in result.configs]
        return values != ["false"]

    def known_names(self, topic_ids: frozenset[bytes]) -> dict[bytes, str] | None:
        """Return the names of these ids if no question to upstream is needed, else None."""
        now = asyncio.get_running_loop().time()
        found: dict[bytes, str] = {}
        for topic_id in topic_ids:
            name = self._names.get(topic_id)
            if name is not None:
                found[topic_id] = name
            elif now >= self._unknown.get(topic_id, 0.0):
                return None
        return found

    async def resolve_topic_ids(self, topic_ids: frozenset[bytes]) -> dict[bytes, str]:
        """Return the names of those of these ids that upstream knows; raise `UpstreamUnavailableError`."""
        codec = request_codec(ApiKey.METADATA, 12)
        item = codec.struct("MetadataRequestTopic")
        missing = [topic_id for topic_id in topic_ids if topic_id not in self._names]
        if missing:
            topics = [item(topic_id=topic_id, name=None) for topic_id in missing]
            answer = await self.ask(ApiKey.METADATA, topics=topics, allow_auto_topic_creation=False)
            self._learn(answer, missing)
        return {topic_id: self._names[topic_id] for topic_id in topic_ids if topic_id in self._names}

    def _learn(self, answer: Message, asked: Iterable[bytes]) -> None:
        for topic in answer.topics:
            if topic.error_code == 0 and topic.name is not None and topic.topic_id != ZERO_UUID:
                self._names[topic.topic_id] = topic.name
        until = asyncio.get_running_loop().time() + UNKNOWN_TOPIC_ID_TTL_S
        for topic_id in asked:
            if topic_id in self._names:
                self._unknown.pop(topic_id, None)
            else:
                self._unknown[topic_id] = until
        _keep_newest(self._names, TOPIC_IDS_MAX)
        _keep_newest(self._unknown, UNKNOWN_TOPIC_IDS_MAX)

    async def list_topics(self, names: frozenset[str] | None) -> set[str]:
        """Return those of these topics that exist, or all; raise `UpstreamUnavailableError`."""
        topics = None
        if names is not None:
            item = request_codec(ApiKey.METADATA, 12).struct("MetadataRequestTopic")
            topics = [item(name=name) for name in sorted(names)]
        answer = await self.ask(ApiKey.METADATA, topics=topics, allow_auto_topic_creation=False)
        self._learn(answer, ())
        return {topic.name for topic in answer.topics if topic.error_code != 3 and topic.name is not None}

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()


def _keep_newest(kept: dict[bytes, Any], limit: int) -> None:
    while len(kept) > limit:
        del kept[next(iter(kept))]
