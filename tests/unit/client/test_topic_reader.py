"""The topic reader with brokers of all releases that change leaders, disconnect and answer invalid data."""

import asyncio

import pytest

from kustos.client import (
    CannotConnectError,
    ClientError,
    ClientSettings,
    ConnectionClosedError,
    KafkaError,
    ProtocolViolationError,
    RequestTimedOutError,
    SettingsError,
    UnreachableError,
    UnsupportedVersionError,
)
from kustos.client.topics import AbortedTransaction, FetchLimits, TopicReader
from kustos.client.topics.messages import EARLIEST, LATEST, MAYBE_MOVED, MOVED
from kustos.wire import Message, MessageCodec, uuid_of_text
from kustos.wire.api_keys import ApiKey
from testkit.ports import free_port
from tests.unit.client.topic_peers import (
    TOPIC,
    TOPIC_ID,
    Answer,
    Peer,
    SilentPeer,
    fetched,
    in_turn,
    listening,
    metadata,
    offsets,
)

ANOTHER_ID = bytes(range(1, 17))
QUICK = FetchLimits(retry_backoff_ms=1, retry_backoff_max_ms=2)
NEVER = 600_000
"""Longer than a test may take, in ms."""


def reader_at(bootstrap: str, limits: FetchLimits = QUICK, **properties: str) -> TopicReader:
    keys = {key.replace("_", "."): value for key, value in properties.items()}
    return TopicReader(ClientSettings.from_properties(bootstrap, keys), TOPIC, limits)


def broker(**answers: Answer) -> Peer:
    peer = Peer()
    peer.answers = {ApiKey.METADATA: metadata(peer), ApiKey.FETCH: fetched(), ApiKey.LIST_OFFSETS: offsets()}
    peer.answers |= {ApiKey[name.upper()]: answer for name, answer in answers.items()}
    return peer


async def test_a_fetch_asks_for_committed_records_of_the_topic_by_its_id_in_no_session() -> None:
    peer = broker()
    limits = FetchLimits(max_wait_ms=7, partition_max_bytes=8, max_bytes=9)
    async with listening(peer) as bootstrap, reader_at(bootstrap, limits) as reader:
        await reader.fetch(0, 5)
    ((_, asked),) = peer.requests(ApiKey.METADATA)
    assert not asked.allow_auto_topic_creation
    assert [topic.name for topic in asked.topics] == [TOPIC]
    ((version, request),) = peer.requests(ApiKey.FETCH)
    assert version == 17
    assert (request.isolation_level, request.session_id, request.session_epoch) == (1, 0, -1)
    assert (request.max_wait, request.min_bytes, request.max_bytes, request.rack_id) == (7, 1, 9, "")
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert topic.topic_id == TOPIC_ID
    assert (partition.partition, partition.fetch_offset) == (0, 5)
    assert (partition.current_leader_epoch, partition.partition_max_bytes) == (4, 8)


async def test_brokers_before_topic_ids_are_asked_by_name() -> None:
    for fetch, metadata_versions in (
        ((4, 4), (0, 4)),
        ((4, 11), (0, 8)),
        ((4, 17), (0, 9)),
        ((4, 12), (0, 12)),
    ):
        peer = broker()
        peer.fetch, peer.metadata, peer.list_offsets = fetch, metadata_versions, (1, 2)
        async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
            described = await reader.describe()
            assert (described.topic_id is None) == (metadata_versions[1] < 10)
            assert (await reader.fetch(0, 0)).log_start_offset == (-1 if fetch == (4, 4) else 2)
            assert await reader.end_offsets([0]) == {0: 9}
        ((version, request),) = peer.requests(ApiKey.FETCH)
        assert version == min(12, fetch[1])
        assert (request.replica_id, request.topics[0].topic) == (-1, TOPIC)


async def test_a_broker_that_knows_no_transactions_is_refused() -> None:
    peer = broker()
    peer.list_offsets, peer.fetch = (0, 1), (0, 3)
    async with listening(peer) as bootstrap, reader_at(bootstrap, FetchLimits()) as reader:
        for ask in (reader.fetch(0, 0), reader.end_offsets([0])):
            with pytest.raises(UnsupportedVersionError):
                await ask


async def test_what_a_fetch_brings_is_handed_over() -> None:
    def aborted(codec: MessageCodec, request: Message) -> Message:
        each = codec.struct("AbortedTransaction")
        transactions = [each(producer_id=7, first_offset=3), each(producer_id=8, first_offset=4)]
        return fetched(records=b"bytes", aborted_transactions=transactions)(codec, request) or codec.new()

    peer = broker(fetch=in_turn(aborted, fetched(records=None, aborted_transactions=None)))
    async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
        found = await reader.fetch(0, 0)
        assert found.aborted == (AbortedTransaction(7, 3), AbortedTransaction(8, 4))
        assert (found.records, found.log_start_offset, found.last_stable_offset) == (b"bytes", 2, 9)
        assert "bytes" not in repr(found)
        empty = await reader.fetch(0, 0)
        assert (empty.records, empty.aborted) == (b"", ())


async def test_offsets_are_asked_as_a_consumer_of_committed_records_does() -> None:
    peer = broker()
    peer.answers[ApiKey.METADATA] = metadata(peer, partitions=3)
    async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
        assert await reader.first_offsets([2, 0]) == {2: 9, 0: 9}
        assert await reader.end_offsets(iter([1])) == {1: 9}
    first, end = [request for _, request in peer.requests(ApiKey.LIST_OFFSETS)]
    assert {each.timestamp for each in first.topics[0].partitions} == {EARLIEST}
    assert {each.timestamp for each in end.topics[0].partitions} == {LATEST}
    assert (end.replica_id, end.isolation_level) == (-1, 1)


@pytest.mark.parametrize("code", sorted(MAYBE_MOVED))
async def test_a_partition_that_moved_is_asked_for_at_its_new_leader(code: int) -> None:
    old, new = broker(fetch=fetched(code), list_offsets=offsets(code)), broker()
    async with listening(old, new) as bootstrap:
        for ask in ("fetch", "offsets"):
            moved = in_turn(metadata(old, new), metadata(old, new, leader=1))
            old.answers[ApiKey.METADATA] = new.answers[ApiKey.METADATA] = moved
            async with reader_at(bootstrap) as reader:
                if ask == "fetch":
                    assert (await reader.fetch(0, 0)).last_stable_offset == 9
                else:
                    assert await reader.end_offsets([0]) == {0: 9}
    assert len(new.requests(ApiKey.FETCH)) == len(new.requests(ApiKey.LIST_OFFSETS)) == 1


@pytest.mark.parametrize("code", sorted(MOVED))
async def test_a_topic_that_has_no_leader_yet_is_asked_for_again(code: int) -> None:
    peer = broker()
    peer.answers[ApiKey.METADATA] = in_turn(
        metadata(peer, error=code), metadata(peer, leader=-1), metadata(peer)
    )
    async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
        assert (await reader.fetch(0, 0)).last_stable_offset == 9
    assert len(peer.requests(ApiKey.METADATA)) == 3


@pytest.mark.parametrize("code", [1, 29, 17, 35])
async def test_what_no_retry_can_heal_is_raised_at_once_and_says_where(code: int) -> None:
    peer = broker(fetch=fetched(code), list_offsets=offsets(code))
    async with listening(peer) as bootstrap:
        async with reader_at(bootstrap, FetchLimits(retry_backoff_ms=NEVER)) as reader:
            place = f"topic `{TOPIC}`, partition 0, offset 5, at `127.0.0.1:{peer.port}`"
            with pytest.raises(KafkaError, match=place) as raised:
                await reader.fetch(0, 5)
            assert raised.value.code == code
            with pytest.raises(KafkaError, match=f"topic `{TOPIC}`, partition 0, at"):
                await reader.end_offsets([0])
        peer.answers[ApiKey.METADATA] = metadata(peer, error=code)
        async with reader_at(bootstrap, FetchLimits(retry_backoff_ms=NEVER)) as reader:
            with pytest.raises(KafkaError, match=f"topic `{TOPIC}`"):
                await reader.describe()


async def test_a_topic_with_another_id_is_another_topic_whoever_learnt_the_first() -> None:
    peer = broker()
    peer.answers[ApiKey.METADATA] = in_turn(metadata(peer), metadata(peer, topic_id=ANOTHER_ID))
    async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
        described = await reader.describe()
        assert described.topic_id is not None
        assert uuid_of_text(described.topic_id).bytes == TOPIC_ID
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
            await reader.describe()
        settings = ClientSettings.from_properties(bootstrap, {})
        async with TopicReader(settings, TOPIC, QUICK, topic_id=described.topic_id) as given:
            for ask in (given.describe(), given.fetch(0, 0), given.first_offsets([0])):
                with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
                    await ask
    assert not peer.requests(ApiKey.FETCH)


async def test_a_connection_that_breaks_is_opened_again() -> None:
    peer = broker()
    peer.answers[ApiKey.FETCH] = in_turn(None, None, fetched())
    peer.answers[ApiKey.LIST_OFFSETS] = in_turn(None, offsets())
    peer.answers[ApiKey.METADATA] = in_turn(metadata(peer), None, metadata(peer))
    async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
        assert (await reader.fetch(0, 0)).last_stable_offset == 9
        assert await reader.end_offsets([0]) == {0: 9}


async def test_bootstrap_addresses_are_tried_in_turn() -> None:
    peer = broker()
    async with listening(peer) as bootstrap, reader_at(f"127.0.0.1:{free_port()},{bootstrap}") as reader:
        assert (await reader.describe()).partitions == (0,)


async def test_nobody_there_is_told_with_the_reason_after_the_time_limit() -> None:
    port = free_port()
    limits = FetchLimits(default_api_timeout_ms=500, retry_backoff_ms=1)
    async with reader_at(f"127.0.0.1:{port}", limits) as reader:
        with pytest.raises(UnreachableError, match=rf"within 500 ms: cannot connect to `127.0.0.1:{port}`"):
            await reader.describe()


async def test_a_leader_that_accepts_no_connection_is_given_up_and_the_new_one_asked() -> None:
    silent, other = SilentPeer(), broker()
    async with listening(other, silent) as bootstrap:
        other.answers[ApiKey.METADATA] = in_turn(metadata(other, silent, leader=1), metadata(other, silent))
        properties = {"socket_connection_setup_timeout_ms": "50"}
        async with reader_at(bootstrap.split(",")[0], QUICK, **properties) as reader:
            assert (await reader.fetch(0, 0)).last_stable_offset == 9
        silent.over.set()


def test_one_request_leaves_time_for_another() -> None:
    limits = FetchLimits(default_api_timeout_ms=90)
    settings = ClientSettings.from_properties("127.0.0.1:1", {})
    assert limits.request_timeout_ms(settings.limits) == 60
    patient = FetchLimits(default_api_timeout_ms=NEVER)
    assert patient.request_timeout_ms(settings.limits) == settings.limits.request_timeout_ms


async def test_what_a_quota_puts_off_is_awaited_however_often() -> None:
    def throttled(codec: MessageCodec, _: Message) -> Message:
        return codec.root.fit(throttle_time=40, responses=[])

    peer = broker(fetch=in_turn(*[throttled] * 5, fetched()))
    limits = FetchLimits(default_api_timeout_ms=150, max_wait_ms=1)
    async with listening(peer) as bootstrap, reader_at(bootstrap, limits) as reader:
        assert (await reader.fetch(0, 0)).last_stable_offset == 9
    assert len(peer.requests(ApiKey.FETCH)) == 6


async def test_silent_brokers_do_not_hide_one_that_answers() -> None:
    silent, living = [SilentPeer() for _ in range(3)], broker()
    limits = FetchLimits(default_api_timeout_ms=250)
    properties = {"socket_connection_setup_timeout_ms": "100"}
    async with listening(*silent, living) as bootstrap, reader_at(bootstrap, limits, **properties) as reader:
        with pytest.raises(ClientError):
            await reader.describe()
        assert (await reader.describe()).partitions == (0,)
        for peer in silent:
            peer.over.set()


async def test_what_keeps_moving_is_given_up_with_the_last_reason() -> None:
    peer = broker(fetch=fetched(6))
    limits = FetchLimits(default_api_timeout_ms=500, max_wait_ms=1, retry_backoff_ms=1)
    async with listening(peer) as bootstrap, reader_at(bootstrap, limits) as reader:
        with pytest.raises(RequestTimedOutError, match="within 501 ms: NOT_LEADER_OR_FOLLOWER: topic `news`"):
            await reader.fetch(0, 0)


async def test_nonsense_is_not_asked_for_again() -> None:
    def other_partition(codec: MessageCodec, request: Message) -> Message | None:
        request.topics[0].partitions[0].partition = 5
        return fetched()(codec, request)

    def nothing(codec: MessageCodec, _: Message) -> Message:
        return codec.new()

    for answer in (other_partition, nothing):
        peer = broker(fetch=answer, list_offsets=nothing)
        limits = FetchLimits(retry_backoff_ms=NEVER)
        async with listening(peer) as bootstrap, reader_at(bootstrap, limits) as reader:
            for ask in (reader.fetch(0, 0), reader.end_offsets([0])):
                with pytest.raises(ProtocolViolationError):
                    await ask
    peer = broker(metadata=nothing)
    async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
        with pytest.raises(CannotConnectError, match="left topic `news` out"):
            await reader.describe()


async def test_two_tasks_share_one_connection_to_a_leader() -> None:
    peer = broker()
    connections = 0
    serve = peer.serve

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await serve(reader, writer)

    peer.serve = counted  # type: ignore[method-assign]
    async with listening(peer) as bootstrap, reader_at(bootstrap) as reader:
        await asyncio.gather(*(reader.fetch(0, offset) for offset in range(20)))
    assert connections == 1


async def test_a_closed_reader_fails_what_is_in_flight_and_opens_nothing_anew() -> None:
    arrived, over = asyncio.Event(), asyncio.Event()

    class Waiting(Peer):
        async def before(self, api_key: int) -> None:
            if api_key == ApiKey.FETCH:
                arrived.set()
                await over.wait()

    peer = Waiting(answers=broker().answers)
    peer.answers[ApiKey.METADATA] = metadata(peer)
    async with listening(peer) as bootstrap:
        reader = reader_at(bootstrap, FetchLimits(retry_backoff_ms=NEVER, retry_backoff_max_ms=NEVER))
        in_flight = asyncio.ensure_future(reader.fetch(0, 0))
        await arrived.wait()
        await reader.close()
        await reader.close()
        with pytest.raises(ConnectionClosedError, match="was closed by this client"):
            await in_flight
        for ask in (reader.fetch(0, 0), reader.describe(), reader.end_offsets([0])):
            with pytest.raises(
                ConnectionClosedError, match="the reader of topic `news` was closed by this client"
            ):
                await ask
        over.set()
    assert len(peer.requests(ApiKey.METADATA)) == 1


async def test_a_leader_that_does_not_answer_is_given_up_and_another_asked() -> None:
    over = asyncio.Event()

    class Silent(Peer):
        async def before(self, api_key: int) -> None:
            if api_key == ApiKey.FETCH:
                await over.wait()

    silent, other = Silent(answers=broker().answers), broker()
    answer = in_turn(metadata(silent, other), metadata(silent, other, leader=1))
    silent.answers[ApiKey.METADATA] = other.answers[ApiKey.METADATA] = answer
    properties = {"request_timeout_ms": "50"}
    limits = FetchLimits(max_wait_ms=1, retry_backoff_ms=1)
    async with listening(silent, other) as bootstrap, reader_at(bootstrap, limits, **properties) as reader:
        assert (await reader.fetch(0, 0)).last_stable_offset == 9
        over.set()


def test_limits_are_read_of_kafkas_keys() -> None:
    assert FetchLimits.from_properties({"bootstrap.servers": "x", "fetch.max.bytes": " "}) == FetchLimits()
    limits = FetchLimits.from_properties(
        {
            "fetch.max.wait.ms": "1",
            "max.partition.fetch.bytes": "2",
            "fetch.max.bytes": "3",
            "default.api.timeout.ms": "4",
            "retry.backoff.ms": "5",
            "retry.backoff.max.ms": "6",
        }
    )
    assert limits == FetchLimits(
        max_wait_ms=1, partition_max_bytes=2, max_bytes=3, default_api_timeout_ms=4, retry_backoff_ms=5,
        retry_backoff_max_ms=6,
    )  # fmt: skip
    for text in ("0", "-1", "x", "1.5", str(2**31)):
        with pytest.raises(SettingsError, match=rf"`fetch\.max\.bytes` is `{text}`, use a whole number of b"):
            FetchLimits.from_properties({"fetch.max.bytes": text})
    assert FetchLimits.from_properties({"retry.backoff.ms": "0"}).retry_backoff_ms == 0  # as in Kafka
    with pytest.raises(SettingsError, match="of milliseconds from 0 up"):
        FetchLimits.from_properties({"retry.backoff.ms": "soon"})
