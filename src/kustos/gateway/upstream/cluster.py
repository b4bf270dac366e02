"""The gateway's view of the upstream cluster, and the gateway's own requests to it.

One connection to any broker serves all clients: it returns the brokers and the names of topic ids. The
gateway reopens it when it breaks. Only a broker itself knows its versions and whether it creates topics
automatically. The gateway therefore queries each broker briefly, and updates the versions from every link.
Clients are offered the versions that all brokers share, so a cluster can be upgraded one broker at a time.

Addresses of brokers change. The gateway queries them again as soon as it cannot reach a broker. It queries
the brokers that it can reach, and the bootstrap servers if it can reach none (KIP-899) or if upstream
requires it (KIP-1102).
"""

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final, Protocol, TypeAlias

import structlog

from kustos.client import (
    NONE,
    ClientError,
    ConnectionClosedError,
    KafkaConnection,
    UnreachableError,
    one_shot,
)
from kustos.gateway.upstream.all_topics import PARTITIONS_PER_PAGE, AllTopicNames, Cursor, EndlessListError
from kustos.gateway.upstream.topic_ids import TopicIds
from kustos.protocol import ClusterTopics
from kustos.wire import ZERO_UUID, ApiKey, ErrorCode, Message, request_codec

NOT_THERE: Final = frozenset({3, 17})
"""Metadata's error codes for a topic that does not exist: unknown, or an invalid name."""

LOOKS_AT_ONCE: Final = 16
"""The maximum number of brokers queried concurrently: each query costs upstream a login."""

REBOOTSTRAP_REQUIRED: Final = ErrorCode.rebootstrap_required.value

RETRY_S: Final = 1.0
"""How soon a node tries again while upstream is down: an attempt costs a refused connection."""

LEARN_EVERY_S: Final = 1.0
"""The minimum time between two queries for brokers because a client's broker cannot be reached or is unknown.
Any client can cause such a query; it costs upstream one small request."""

LEARN_WAIT_S: Final = 5.0
"""How long a client waits for that query, and how long the open connection may take to answer before another
one is opened: upstream answers in milliseconds."""

RETRIES_PER_LINE: Final = 30
"""The log reports one attempt in this number."""

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


Versions: TypeAlias = Mapping[int, tuple[int, int]]
"""API key → (lowest, highest version)."""


def common_to_all(brokers: Iterable[Versions]) -> dict[int, tuple[int, int]]:
    """Return the versions that all brokers support."""
    common: dict[int, tuple[int, int]] | None = None
    for versions in brokers:
        if common is None:
            common = dict(versions)
            continue
        both = {
            key: (max(low, versions[key][0]), min(high, versions[key][1]))
            for key, (low, high) in common.items()
            if key in versions
        }
        common = {key: (low, high) for key, (low, high) in both.items() if low <= high}
    return common or {}


def covers(offered: Versions, used: Versions) -> bool:
    """Return whether `offered` contains all versions in `used`."""
    return used is offered or all(
        key in offered and offered[key][0] <= low and high <= offered[key][1]
        for key, (low, high) in used.items()
    )


class UpstreamUnavailableError(Exception):
    """No upstream broker answers; clients are disconnected, as by a broker that is down.

    `may_come`: waiting helps, because no broker was reachable, or one closed the connection during an answer.
    """

    def __init__(self, text: str, *, may_come: bool = False) -> None:
        super().__init__(text)
        self.may_come: Final = may_come


class UpstreamCluster:
    """The upstream cluster as seen through the gateway's own connection."""

    def __init__(self, bootstrap: Iterable[tuple[str, int]], connect: Connect) -> None:
        self.bootstrap: Final = tuple(bootstrap)
        self.connect: Final = connect
        self.brokers: dict[int, Broker] = {}
        self.versions: dict[int, tuple[int, int]] = {}
        """The versions that all brokers support."""
        self.features: Message | None = None
        self.cluster_id: str | None = None
        self.auto_creates_topics = True
        self._on_brokers: Callable[[dict[int, Broker]], None] = lambda _: None
        self._versions_of: dict[int, Versions] = {}
        self._unreached: frozenset[Broker] = frozenset()
        """The brokers, with these addresses, to which the last connection failed."""
        self._learning: asyncio.Task[None] | None = None
        self._learned_s = -math.inf
        self._connection: KafkaConnection | None = None
        self._lock = asyncio.Lock()
        self.topic_ids: Final = TopicIds(self._query_names)
        self._all_topics: Final = AllTopicNames(self._query_page)

    def watch(self, on_brokers: Callable[[dict[int, Broker]], None]) -> None:
        """Call this function with the brokers whenever they change."""
        self._on_brokers = on_brokers

    async def connection(self) -> KafkaConnection:
        """Return the open connection, reopened if necessary; raise `UpstreamUnavailableError`."""
        async with self._lock:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            self._connection = None
            failures: list[ClientError] = []
            known = [(broker.host, broker.port) for broker in self.brokers.values()]
            for host, port in dict.fromkeys((*self.bootstrap, *known)):
                try:
                    self._connection = await self.connect(host, port)
                except ClientError as error:
                    failures.append(error)
                    continue
                return self._connection
            may_come = all(isinstance(error, UnreachableError) for error in failures)
            raise UpstreamUnavailableError("; ".join(map(str, failures)), may_come=may_come)

    @property
    def is_reachable(self) -> bool:
        """Whether the gateway's own connection to upstream is open."""
        return self._connection is not None and self._connection.is_open

    async def query(
        self, api_key: ApiKey, *, cap: int | None = None, floor: int = 0, **fields: object
    ) -> Message:
        """Return upstream's answer to one of the gateway's own requests; raise `UpstreamUnavailableError`."""
        connection = await self.connection()
        try:
            version = connection.choose_version(api_key, cap, floor)
            message = request_codec(api_key, version).root.fit(**fields)
            return await connection.send(api_key, version, message)
        except ClientError as error:
            may_come = isinstance(error, ConnectionClosedError)
            raise UpstreamUnavailableError(str(error), may_come=may_come) from error

    async def find(self) -> None:
        """Query the cluster; while all brokers are down, as after a power failure, wait and log it.

        Raise `UpstreamUnavailableError` if a broker that is up rejects the gateway.
        """
        for attempt in count():
            try:
                await self.refresh()
            except UpstreamUnavailableError as error:
                if not error.may_come:
                    raise
                if attempt % RETRIES_PER_LINE == 0:
                    hint = "see `kustos.upstream.bootstrap.servers`"
                    LOG.warning("upstream is not reachable, waiting for it", reason=str(error), hint=hint)
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def refresh(self) -> None:
        """Query the brokers, their versions and whether they create topics automatically."""
        answer = await self._query_brokers()
        brokers = _brokers_in(answer)
        self.cluster_id = answer.get("cluster_id")
        self.features = await self.query(
            ApiKey.API_VERSIONS, client_software_name="kustos", client_software_version="1"
        )
        gate = asyncio.Semaphore(LOOKS_AT_ONCE)
        seen = await asyncio.gather(*(self._look_at(broker, gate) for broker in brokers.values()))
        self._versions_of = {key: value for key, value in self._versions_of.items() if key in brokers}
        self._update_versions()
        # one broker that creates topics, or that does not answer the question, is enough
        self.auto_creates_topics = any(seen) or not seen
        self._take(brokers)

    async def until_lost(self, timeout_s: float) -> None:
        """Return after this time, or when the gateway's own connection to upstream is lost."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                if self._connection is not None:
                    await self._connection.wait_closed()

    def note(self, broker: Broker, *, reached: bool) -> None:
        """Record whether a connection to a broker succeeded."""
        if reached:
            self._unreached -= {broker}
        else:
            self._unreached = (self._unreached & frozenset(self.brokers.values())) | {broker}

    async def relearn(self, seen: Mapping[int, Broker]) -> bool:
        """Query the brokers again unless they differ from `seen` already; return whether they differ then.

        The query takes at most `LEARN_WAIT_S`.
        """
        if self.brokers is seen:
            learning = self.begin_learning()
            if learning is None:
                return False
            await asyncio.wait((learning,), timeout=LEARN_WAIT_S)
        return self.brokers != seen

    def begin_learning(self) -> asyncio.Task[None] | None:
        """Query the brokers again for a client; return None if the last query began too recently.

        All callers share one task, and one task at most begins in `LEARN_EVERY_S`.
        """
        loop = asyncio.get_running_loop()
        if self._learning is None and loop.time() - self._learned_s >= LEARN_EVERY_S:
            self._learning = one_shot("broker-learning", self._learn())
            self._learning.add_done_callback(self._learned)
        return self._learning

    async def _learn(self) -> None:
        if self._unreached.issuperset(self.brokers.values()):
            self._rebootstrap()
        try:
            async with asyncio.timeout(LEARN_WAIT_S):
                answer = await self._query_brokers()
        except (UpstreamUnavailableError, TimeoutError):
            # the open connection may lead to a broker that disappeared without closing it
            self._rebootstrap()
            try:
                answer = await self._query_brokers()
            except UpstreamUnavailableError:
                # the periodic refresh reports it; clients must not fill the log
                return
        # a broker that is not listed now may return, and may still work on requests: the refresh removes it
        self._take(self.brokers | _brokers_in(answer))

    def _learned(self, task: asyncio.Task[None]) -> None:
        self._learning = None
        self._learned_s = task.get_loop().time()

    def _take(self, brokers: dict[int, Broker]) -> None:
        if brokers != self.brokers:
            LOG.info("upstream brokers", brokers=[f"{b.node_id}={b.host}:{b.port}" for b in brokers.values()])
            self.brokers = brokers
            self._on_brokers(brokers)

    def _rebootstrap(self) -> None:
        """Send the next request over a new connection; requests in flight keep their time."""
        connection, self._connection = self._connection, None
        if connection is not None:
            delay_ms = connection.limits.request_timeout_ms if connection.in_flight else 0
            asyncio.get_running_loop().call_later(delay_ms / 1000, connection.close)

    async def _query_brokers(self) -> Message:
        """Return a Metadata answer that lists brokers; raise `UpstreamUnavailableError`."""
        answer = await self.query(ApiKey.METADATA, topics=[], allow_auto_topic_creation=False)
        if answer.get("error_code", NONE) == REBOOTSTRAP_REQUIRED:
            self._rebootstrap()
            raise UpstreamUnavailableError("upstream requires to bootstrap again", may_come=True)
        if not answer.brokers:
            # a broker that is starting may not know any broker yet, not even itself
            raise UpstreamUnavailableError("upstream names no broker", may_come=True)
        return answer

    def learn_versions(self, node_id: int, versions: Versions) -> None:
        """Record the versions that a broker supports, as just seen on a connection to it."""
        if self._versions_of.get(node_id) != versions:
            self._versions_of[node_id] = dict(versions)
            self._update_versions()

    def _update_versions(self) -> None:
        known = [*self._versions_of.values()]
        if not known and self.features is not None:
            known = [{item.api_key: (item.min_version, item.max_version) for item in self.features.api_keys}]
        self.versions = common_to_all(known)

    async def _look_at(self, broker: Broker, gate: asyncio.Semaphore) -> bool:
        """Query a broker's versions; return whether it may create topics automatically.

        A broker that is down keeps its last known versions: no client can use it now.
        """
        async with gate:
            try:
                connection = await self.connect(broker.host, broker.port)
            except ClientError as error:
                LOG.warning("a broker cannot be queried", broker=broker.node_id, reason=str(error))
                return True
            try:
                self.learn_versions(broker.node_id, connection.versions)
                return await _auto_creates(connection, broker.node_id)
            except ClientError:
                return True
            finally:
                connection.close()

    def known_names(self, topic_ids: Iterable[bytes]) -> dict[bytes, str] | None:
        """Return the names of these ids; None if upstream must be queried."""
        return self.topic_ids.known(topic_ids)

    async def resolve_topic_ids(self, topic_ids: frozenset[bytes]) -> dict[bytes, str]:
        """Return the names of the ids that upstream knows; raise `UpstreamUnavailableError`."""
        return await self.topic_ids.resolve(topic_ids)

    async def _query_names(self, topic_ids: Collection[bytes]) -> dict[bytes, str]:
        item = request_codec(ApiKey.METADATA, 12).struct("MetadataRequestTopic")
        topics = [item(topic_id=topic_id, name=None) for topic_id in topic_ids]
        answer = await self.query(ApiKey.METADATA, topics=topics, allow_auto_topic_creation=False)
        return _named(answer)

    async def list_topics(self, names: frozenset[str] | None) -> dict[str, int]:
        """Return the partition counts of these topics, except topics that do not exist.

        `names` None means all topics. Raise `UpstreamUnavailableError`.
        """
        topics = None
        if names is not None:
            item = request_codec(ApiKey.METADATA, 12).struct("MetadataRequestTopic")
            topics = [item(name=name) for name in sorted(names)]
        answer = await self.query(ApiKey.METADATA, topics=topics, allow_auto_topic_creation=False)
        self.topic_ids.learn(_named(answer), ())
        there = [topic for topic in answer.topics if topic.error_code not in NOT_THERE]
        return {topic.name: len(topic.partitions) for topic in there if topic.name is not None}

    def known_topics(self) -> ClusterTopics | None:
        """Return the names of all topics; None if upstream must be queried first."""
        return self._all_topics.known()

    async def all_topics(self) -> ClusterTopics:
        """Return the names of all topics; raise `UpstreamUnavailableError`."""
        try:
            return await self._all_topics.learn()
        except EndlessListError as error:
            raise UpstreamUnavailableError(str(error)) from error

    async def _query_page(self, cursor: Cursor | None) -> tuple[list[str], Cursor | None]:
        """Return the names of topics from the cursor on, and the cursor of the next page."""
        place = None
        if cursor is not None:
            codec = request_codec(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)
            place = codec.root.ELEMENTS["cursor"](topic_name=cursor[0], partition_index=cursor[1])
        answer = await self.query(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            cap=0,
            topics=[],
            response_partition_limit=PARTITIONS_PER_PAGE,
            cursor=place,
        )
        rest = answer.next_cursor
        names = [topic.name for topic in answer.topics if topic.name is not None]
        return names, None if rest is None else (rest.topic_name, rest.partition_index)

    def close(self) -> None:
        """Close the connection."""
        if self._learning is not None:
            self._learning.cancel()
        if self._connection is not None:
            self._connection.close()


def _brokers_in(answer: Message) -> dict[int, Broker]:
    """Return the brokers that Metadata lists, by their ids."""
    return {each.node_id: Broker(each.node_id, each.host, each.port) for each in answer.brokers}


def _named(answer: Message) -> dict[bytes, str]:
    """Return the names of the topics that Metadata describes, by their ids."""
    return {
        topic.topic_id: topic.name
        for topic in answer.topics
        if topic.error_code == 0 and topic.name is not None and topic.topic_id != ZERO_UUID
    }


async def _auto_creates(connection: KafkaConnection, node_id: int) -> bool:
    """Return the broker's own `auto.create.topics.enable`; True if it does not say."""
    version = connection.choose_version(ApiKey.DESCRIBE_CONFIGS, 1)
    codec = request_codec(ApiKey.DESCRIBE_CONFIGS, version)
    resource = codec.struct("DescribeConfigsResource")(
        resource_type=BROKER_CONFIG,
        resource_name=str(node_id),
        configuration_keys=["auto.create.topics.enable"],
    )
    answer = await connection.send(ApiKey.DESCRIBE_CONFIGS, version, codec.root.fit(resources=[resource]))
    values = [config.value for result in answer.results for config in result.configs]
    return values != ["false"]
