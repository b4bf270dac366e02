"""Reads a topic: its partitions, their first and last offsets, and their committed records.

If a leader changes, a broker restarts or a connection breaks, the reader looks up the leader again and
retries, within `default.api.timeout.ms`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Self, TypeVar

from kustos.client.errors import (
    CannotConnectError,
    ConnectionClosedError,
    KafkaError,
    ProtocolViolationError,
    RequestTimedOutError,
    UnreachableError,
)
from kustos.client.settings import ClientSettings, NodeAddress
from kustos.client.topics.cluster import TopicCluster
from kustos.client.topics.limits import FetchLimits
from kustos.client.topics.messages import (
    EARLIEST,
    FETCH_FLOOR,
    LAST_FETCH_BY_NAME,
    LATEST,
    LIST_OFFSETS_FLOOR,
    MAYBE_MOVED,
    Fetched,
    StaleError,
    TopicDescription,
    TopicLayout,
    fetch_request,
    list_offsets_request,
    read_fetched,
    read_offsets,
    throttle_ms_of,
)
from kustos.runtime import Entropy, SystemEntropy
from kustos.wire import ApiKey

THROTTLE_MAX_MS: Final = 60_000
"""The longest accepted throttle time; by default, quotas of brokers cover ten seconds
(`quota.window.num`)."""

_Found = TypeVar("_Found")


class TopicReader:
    """Reads one topic with one connection to each leader; use as an async context manager.

    Always `read_committed`. `topic_id` is the id that the topic must have, by default the id that the first
    call finds: if the topic is deleted and recreated with this name, calls raise UNKNOWN_TOPIC_ID (with
    brokers since 3.1, KIP-516).

    Every method raises `KafkaError` if the cluster refuses, `AuthenticationFailedError`,
    `UnsupportedVersionError` and `ProtocolViolationError` at once, and `UnreachableError` or
    `RequestTimedOutError` with the last reason after `default_api_timeout_ms` of retries. Many tasks of one
    event loop can share it; a broker answers the requests of one connection in order.
    """

    def __init__(
        self,
        settings: ClientSettings,
        topic: str,
        limits: FetchLimits | None = None,
        *,
        topic_id: str | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self._limits: Final = limits or FetchLimits()
        self._request_timeout_ms: Final = self._limits.request_timeout_ms(settings.limits)
        self._cluster: Final = TopicCluster(settings, topic, topic_id, self._request_timeout_ms)
        self._topic: Final = topic
        self._entropy: Final = entropy or SystemEntropy()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; fetches in flight fail with `ConnectionClosedError`."""
        await self._cluster.close()

    async def describe(self) -> TopicDescription:
        """Return the current layout of the topic; it may have more partitions than before."""

        async def described(layout: TopicLayout) -> TopicDescription:
            return layout.description

        return await self._persist(self._cluster.look, described)

    async def first_offsets(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return partition -> the first offset that was not deleted."""
        return await self._offsets(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return partition -> the last stable offset: all transactions before it have ended."""
        return await self._offsets(partitions, LATEST)

    async def fetch(self, partition: int, offset: int) -> Fetched:
        """Return committed records of a partition, beginning with the batch that contains `offset`.

        At the end of the partition it waits `max_wait_ms` for more and may return none. Raises
        OFFSET_OUT_OF_RANGE for the offset of a deleted record. The reader keeps no state between calls: the
        next call, at `kustos.wire.offset_after`, may start before the records of the last one are decoded.
        Throttled fetches are repeated after the throttle time.
        """
        fetch = partial(self._fetch, partition, offset)
        while True:
            found = await self._persist(self._cluster.layout, fetch, self._limits.max_wait_ms)
            if isinstance(found, Fetched):
                return found
            await asyncio.sleep(min(found, THROTTLE_MAX_MS) / 1000)

    async def _fetch(self, partition: int, offset: int, layout: TopicLayout) -> Fetched | int:
        """Return the fetched records, or the throttle time in milliseconds."""
        leader = layout.leader(partition)
        connection = await self._cluster.connection(leader.address)
        topic_id, limits = self._cluster.topic_id, self._limits
        answer = await connection.request(
            ApiKey.FETCH,
            lambda codec: fetch_request(codec, layout, topic_id, partition, offset, limits),
            floor=FETCH_FLOOR,
            cap=LAST_FETCH_BY_NAME if topic_id is None else None,
            timeout_ms=self._request_timeout_ms + limits.max_wait_ms,
        )
        throttle_ms = throttle_ms_of(answer)
        if throttle_ms:
            return throttle_ms
        code, fetched = read_fetched(answer, partition)
        if code:
            raise self._refusal(code, f"partition {partition}, offset {offset}", leader.address)
        return fetched

    async def _offsets(self, partitions: Iterable[int], time: int) -> dict[int, int]:
        wanted = dict.fromkeys(partitions)
        found: dict[int, int] = {}
        await self._persist(self._cluster.layout, partial(self._list_offsets, wanted, found, time))
        return {partition: found[partition] for partition in wanted}

    async def _list_offsets(
        self, wanted: Iterable[int], found: dict[int, int], time: int, layout: TopicLayout
    ) -> None:
        """Ask every leader for its partitions that are not yet in `found`, all at once."""
        by_leader: dict[NodeAddress, list[int]] = {}
        for partition in wanted:
            if partition not in found:
                by_leader.setdefault(layout.leader(partition).address, []).append(partition)
        outcomes = await asyncio.gather(
            *(self._list_at(address, asked, found, time, layout) for address, asked in by_leader.items()),
            return_exceptions=True,
        )
        failures = [outcome for outcome in outcomes if outcome is not None]
        if failures:
            # permanent errors count first
            raise min(failures, key=_may_heal)

    async def _list_at(
        self, address: NodeAddress, asked: list[int], found: dict[int, int], time: int, layout: TopicLayout
    ) -> None:
        connection = await self._cluster.connection(address)
        answer = await connection.request(
            ApiKey.LIST_OFFSETS,
            lambda codec: list_offsets_request(codec, layout, asked, time),
            floor=LIST_OFFSETS_FLOOR,
            timeout_ms=self._request_timeout_ms,
        )
        for partition, code, offset in read_offsets(answer):
            if code:
                raise self._refusal(code, f"partition {partition}", address)
            found[partition] = offset
        missing = [partition for partition in asked if partition not in found]
        if missing:
            raise ProtocolViolationError(f"`{address}` left partitions {missing} out of its offsets")

    def _refusal(self, code: int, place: str, address: NodeAddress) -> KafkaError | StaleError:
        error = KafkaError(code, f"topic `{self._topic}`, {place}, at `{address}`")
        return StaleError(error) if code in MAYBE_MOVED else error

    async def _persist(
        self,
        look: Callable[[], Awaitable[TopicLayout]],
        ask: Callable[[TopicLayout], Awaitable[_Found]],
        extra_ms: int = 0,
    ) -> _Found:
        """Return the result of a call with the topic's layout; retry with a new look-up while that may
        help."""
        limit_ms = self._limits.default_api_timeout_ms + extra_ms
        reason: Exception | None = None
        tries = 0
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while True:
                    layout = None
                    try:
                        layout = await look()
                        return await ask(layout)
                    except (StaleError, CannotConnectError, ConnectionClosedError) as error:
                        reason = error.reason if isinstance(error, StaleError) else error
                        is_final = layout is None and reason is error
                        if is_final or self._cluster.is_closed or not _may_heal(error):
                            raise reason from None
                    if layout is not None:
                        self._cluster.forget(layout)
                    await asyncio.sleep(self._limits.pause_ms(tries, self._entropy) / 1000)
                    tries += 1
        except TimeoutError:
            text = f"topic `{self._topic}` could not be read within {limit_ms} ms"
            text += f": {reason}" if reason is not None else ", no broker answered"
            kind = UnreachableError if isinstance(reason, CannotConnectError) else RequestTimedOutError
            raise kind(text) from reason


def _may_heal(error: BaseException) -> bool:
    """Return whether a new look-up of the metadata may help: not if a peer violates the protocol."""
    if isinstance(error, StaleError):
        return True
    return isinstance(error, CannotConnectError | ConnectionClosedError) and not isinstance(
        error, ProtocolViolationError
    )
