"""One client's session: order, held requests, and the end."""

import asyncio
import gc
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.acl import AclOperation, ResourceType
from kustos.gateway.session.large_turns import REQUESTS_PER_TURN
from kustos.gateway.upstream.addresses import NoPortForBrokerError
from kustos.gateway.upstream.cluster import UpstreamUnavailableError
from kustos.protocol.exchange import ITEMS_PER_TURN
from kustos.wire import response_codec, response_frame
from kustos.wire.api_keys import ApiKey
from testkit.gateway.sessions import (
    World,
    create_acls,
    delete_topic,
    heartbeat,
    produce,
    request,
    request_struct,
    versions,
)
from testkit.protocol.random_requests import ALL_ALLOWED, allow, batch
from testkit.tap.frames import read_request
from testkit.waiting import wait_until


async def test_the_next_request_starts_after_the_previous_answer() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([heartbeat(1), versions(2), heartbeat(3), versions(4)])
    assert (len(world.forwarded), world.decided_by, world.answers) == (1, [1], [])
    assert not world.reads
    world.answer_one()
    assert world.correlation_ids() == [1, 2]
    assert len(world.forwarded) == 1
    world.answer_one()
    assert world.correlation_ids() == [1, 2, 3, 4]
    assert world.reads


async def test_thousands_of_small_requests_give_way_to_others() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([versions(i) for i in range(1000)])
    assert len(world.answers) == REQUESTS_PER_TURN
    await world.settle()
    assert world.correlation_ids() == list(range(1000))


async def test_a_small_request_with_a_large_answer_gives_way_to_others() -> None:
    """A listing of all topics has nine bytes; each turn of the loop decides a thousand topics at most."""
    world = World(ALL_ALLOWED)
    for number in range(10 * ITEMS_PER_TURN):
        world.world.create(f"topic-{number}")
    world.session.take([request(ApiKey.METADATA, 1, 9, topics=None)])
    assert world.answer_one()
    decided = [len(world.decided_by)]
    while not world.answers:
        await asyncio.sleep(0)
        decided.append(len(world.decided_by))
    steps = {later - earlier for earlier, later in pairwise([0, *decided])}
    assert steps == {0, 1}
    assert decided[-1] >= 10


async def test_nothing_is_sent_while_the_broker_throttles() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([heartbeat(1), heartbeat(2)])
    throttled = (1).to_bytes(4, "big") + (20).to_bytes(4, "big") + bytes(2)
    world.forwarded.clear()
    world.link.data_received(len(throttled).to_bytes(4, "big") + throttled)
    assert world.correlation_ids() == [1]
    assert (list(world.forwarded), world.decided_by) == ([], [1])
    world.replace_acls([])
    await asyncio.to_thread(wait_until, lambda: len(world.answers) == 2, what="answered")
    assert len(world.all_forwarded) == 1, "it was denied when the broker would have read it"


@pytest.mark.parametrize("block", ["upstream", "client", "audit", "no link"])
async def test_no_request_is_decided_while_it_cannot_be_sent(block: str) -> None:
    world = World(ALL_ALLOWED, linked=block != "no link")
    if block == "upstream":
        world.link.pause_writing()
    if block == "client":
        world.session.pause_writing()
    world.is_full = block == "audit"
    world.session.take([heartbeat(1), versions(2), delete_topic(3)])
    await world.settle()
    assert (world.decided_by, world.all_forwarded, world.answers) == ([], [], [])
    assert not world.reads
    # intermediate changes apply: the request is decided when it can be sent
    world.replace_acls([allow(ResourceType.TOPIC, "alpha-topic", AclOperation.ALL)])
    if block == "no link":
        world.connect()
    elif block == "upstream":
        world.link.resume_writing()
    elif block == "client":
        world.session.resume_writing()
    else:
        world.is_full = False
        await asyncio.to_thread(wait_until, lambda: len(world.answers) >= 2, what="answered")
    await world.finish()
    assert world.correlation_ids() == [1, 2, 3]
    assert [frame[:2] for frame in world.all_forwarded] == [b"\0\x14"], "the heartbeat was denied"


async def test_each_session_retries_a_full_audit_log_with_one_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(ALL_ALLOWED)
    timers: list[asyncio.TimerHandle] = []
    loop = asyncio.get_running_loop()
    original = loop.call_later

    def counted(delay: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        timer = original(delay, *args, **kwargs)
        timers.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", counted)
    world.is_full = True
    for correlation_id in range(100):
        world.session.take([heartbeat(correlation_id)])
    assert len(timers) == 1
    world.session.close()
    assert timers[0].cancelled()


@pytest.mark.parametrize("holding", [delete_topic, create_acls])
async def test_a_held_request_delays_later_requests(holding: Any) -> None:
    world = World(ALL_ALLOWED)
    world.session.take([heartbeat(1), holding(2), heartbeat(3), versions(4)])
    await world.settle()
    assert len(world.forwarded) == 1
    world.answer_one()
    await world.settle()
    assert world.correlation_ids() == [1]
    assert await world.learn()
    await world.finish()
    assert world.correlation_ids() == [1, 2, 3, 4]


async def test_a_held_request_is_decided_after_its_query_is_answered() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([delete_topic(1)])
    await world.settle()
    world.replace_acls([])
    await world.learn()
    assert world.all_forwarded == []
    assert world.correlation_ids() == [1]


async def test_a_resolved_request_waits_for_upstream_to_read() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([delete_topic(1), heartbeat(2)])
    await world.settle()
    world.link.pause_writing()
    await world.learn()
    assert world.decided_by == []
    world.link.resume_writing()
    assert len(world.all_forwarded) == 1
    await world.finish()
    assert world.correlation_ids() == [1, 2]


async def test_produce_without_acks_is_forwarded_with_acks_and_not_answered() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([produce(1, acks=0), produce(2, acks=1), produce(3, acks=0), heartbeat(4)])
    await world.finish()
    assert [read_request(frame).body.acks for frame in world.all_forwarded[:3]] == [1, 1, 1]
    assert world.correlation_ids() == [2, 4]
    assert not world.closed


async def test_a_request_without_answer_that_fails_upstream_ends_the_connection() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([produce(1, acks=0)])
    refused = world.world.answer(world.forwarded.popleft())
    codec = response_codec(ApiKey.PRODUCE, 9)
    message = codec.decode(refused or b"", 5).message
    message.responses[0].partition_responses[0].error_code = 6
    frame = response_frame(ApiKey.PRODUCE, codec, 1, codec.encode(message))
    world.link.data_received(frame)
    assert world.closed == ["a Produce with acks=0: 0 topics were refused, 1 partitions failed"]
    assert world.answers == []


async def test_a_refused_request_without_answer_ends_the_connection() -> None:
    world = World([])
    world.session.take([produce(1, acks=0), heartbeat(2)])
    assert len(world.closed) == 1
    assert world.all_forwarded == []
    assert world.pipe.closing


async def test_a_refused_partition_without_answer_ends_it_after_the_allowed_are_sent() -> None:
    allowed = [allow(ResourceType.TOPIC, "alpha-topic", AclOperation.WRITE)]
    world = World(allowed)
    partition = request_struct(ApiKey.PRODUCE, 9, "PartitionProduceData", index=0, records=batch())
    items = [
        request_struct(ApiKey.PRODUCE, 9, "TopicProduceData", name=name, partition_data=[partition])
        for name in ("alpha-topic", "bravo-topic")
    ]
    world.session.take([request(ApiKey.PRODUCE, 9, 1, acks=0, timeout=1, topic_data=items)])
    assert not world.closed
    await world.finish()
    assert len(world.closed) == 1
    (frame,) = world.all_forwarded
    assert b"alpha-topic" in frame
    assert b"bravo-topic" not in frame


@pytest.mark.parametrize(
    "frame", [b"", b"\0", b"\0\x03\0\x7f\0\0\0\1\xff\xff", b"\x7f\0\0\0\0\0\0\1\xff\xff"]
)
async def test_an_unknown_request_closes_the_connection(frame: bytes) -> None:
    world = World(ALL_ALLOWED)
    world.session.take([heartbeat(1), frame, heartbeat(2)])
    assert not world.closed
    world.answer_one()
    assert len(world.closed) == 1
    assert len(world.all_forwarded) == 1
    world.session.take([heartbeat(3)])
    assert len(world.all_forwarded) == 1


@pytest.mark.parametrize("client_id", [b"\xff\xff", b"\x7f\xff" + b"x" * 32767, b"\0\1\xff", b"\x80\0"])
async def test_a_client_id_is_utf8_or_null(client_id: bytes) -> None:
    world = World(ALL_ALLOWED)
    world.session.take([b"\0\x0c\0\0" + (7).to_bytes(4, "big") + client_id + b"\0\1g\0\0\0\0\0\1m"])
    assert bool(world.closed) == (client_id[-1:] != b"x" and client_id != b"\xff\xff")
    assert len(world.all_forwarded) == (not world.closed)


@pytest.mark.parametrize(
    "failure", [RuntimeError("a bug"), UpstreamUnavailableError("gone"), NoPortForBrokerError("9")]
)
async def test_a_failure_while_serving_ends_the_connection(failure: Exception) -> None:
    world = World(ALL_ALLOWED)
    world.serving_fails = failure
    with capture_logs() as logs:
        world.session.take([heartbeat(1), create_acls(2), heartbeat(3)])
        world.answer_one()
        await world.settle()
    assert len(world.closed) == 1
    assert len(world.all_forwarded) == 1
    assert bool(logs) == isinstance(failure, RuntimeError)


@pytest.mark.parametrize("failure", [RuntimeError("a bug"), UpstreamUnavailableError("gone")])
async def test_a_failed_query_closes_the_connection(failure: Exception) -> None:
    world = World(ALL_ALLOWED)
    world.session.take([delete_topic(1), heartbeat(2)])
    await world.settle()
    with capture_logs() as logs:
        world.cluster.questions[0].set_exception(failure)
        await world.settle()
    assert len(world.closed) == 1
    assert world.all_forwarded == []
    assert bool(logs) == isinstance(failure, RuntimeError)


async def test_a_canceled_query_closes_the_connection() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([delete_topic(1), heartbeat(2)])
    await world.settle()
    world.cluster.questions[0].cancel()
    await world.settle()
    assert len(world.closed) == 1


async def test_a_failure_outside_any_request_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(ALL_ALLOWED)

    def broken(frame: bytes) -> bool:
        raise RuntimeError("a bug")

    world.session.take([heartbeat(1), heartbeat(2)])
    world.wanted = broken
    with capture_logs() as logs:
        world.answer_one()
        await world.settle()
    assert len(world.closed) == 1
    assert len(logs) == 1


async def test_an_unknown_broker_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(ALL_ALLOWED)

    def nowhere(node_id: int, host: str, port: int) -> tuple[str, int]:
        raise NoPortForBrokerError(f"broker `{node_id}` has no port")

    monkeypatch.setattr(world.guard, "addresses", type("A", (), {"advertised": staticmethod(nowhere)})())
    world.session.take([request(ApiKey.METADATA, 9, 1, topics=None)])
    world.answer_one()
    assert world.closed == ["broker `1` has no port"]
    assert world.answers == []


async def test_an_answer_that_cannot_be_read_ends_the_connection() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([request(ApiKey.METADATA, 9, 1, topics=None), heartbeat(2)])
    junk = (1).to_bytes(4, "big") + b"\0junk"
    follows = (2).to_bytes(4, "big") + bytes(6)
    world.link.data_received(b"".join(len(f).to_bytes(4, "big") + f for f in (junk, follows)))
    assert len(world.closed) == 1
    assert world.answers == []


@pytest.mark.parametrize("moment", ["before the task began", "while it waits"])
async def test_the_end_of_a_session_drops_held_requests(
    moment: str, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(ALL_ALLOWED)
    before = asyncio.all_tasks()
    world.session.take([heartbeat(1), delete_topic(2), heartbeat(3)])
    if moment == "while it waits":
        await world.settle()
    world.link.connection_lost(None)
    await world.settle()
    assert world.closed == ["upstream closed the connection"]
    assert asyncio.all_tasks() == before
    assert await world.learn() is False
    assert world.answers == []
    del world
    gc.collect()
    assert [str(w.message) for w in recwarn] == []
    assert [r.message for r in caplog.records if "never" in r.message] == []


async def test_a_second_close_has_no_effect() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([heartbeat(1)])
    world.close("the client is gone")
    world.session.close()
    world.link.connection_lost(None)
    world.session.go_on()
    assert world.closed == ["the client is gone"]


async def test_login_frames_wait_for_requests_in_flight() -> None:
    world = World(ALL_ALLOWED)
    world.wanted = lambda frame: frame[:2] == b"\0\x11"
    world.session.take([heartbeat(1), delete_topic(2), b"\0\x11 login", heartbeat(3)])
    world.answer_one()
    await world.settle()
    assert world.swallowed == []
    await world.learn()
    assert world.swallowed == []
    world.answer_one()
    await world.settle()
    assert world.swallowed == [b"\0\x11 login"]
    await world.finish()
    assert world.correlation_ids() == [1, 2, 3]
