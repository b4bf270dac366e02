"""Pipelined Produce requests: some are sent complete, others except for their last byte."""

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.gateway.session.client_session import PIPELINED_MAX
from kustos.gateway.upstream.link import NO_LONGER_ALLOWED, REPLICATED_SOON_S, SESSION_EXPIRED
from testkit.gateway.sessions import World, heartbeat, produce
from testkit.protocol.random_requests import ALL_ALLOWED, allow

WAITS = -1
"""`acks` of a Produce that waits for replicas."""


async def test_produce_is_sent_complete_after_requests_that_the_leader_answers_alone() -> None:
    world = World(ALL_ALLOWED, sees_all_changes=False)
    frames = [
        *(produce(number) for number in range(6)),
        produce(6, WAITS),
        produce(7),
        heartbeat(8),
        produce(9),
    ]
    world.session.take(frames)
    assert list(world.forwarded) == frames[:PIPELINED_MAX]
    world.answer_one()
    world.answer_one()
    assert (list(world.forwarded), world.part) == (frames[2:7], b"")
    world.answer_one()
    assert (list(world.forwarded), world.part[4:]) == (frames[3:7], frames[7][:-1])
    await world.finish()
    assert world.correlation_ids() == list(range(10))


async def test_a_burst_takes_one_system_call_each_way() -> None:
    world = World(ALL_ALLOWED, sees_all_changes=False)
    frames = [produce(number) for number in range(PIPELINED_MAX)]
    world.session.take(frames)
    assert (list(world.forwarded), world.pipe.writes) == (frames, 1)
    world.answer_all()
    assert (world.correlation_ids(), world.writes) == (list(range(PIPELINED_MAX)), [PIPELINED_MAX])


async def test_answers_before_an_upstream_disconnect_reach_the_client() -> None:
    world = World(ALL_ALLOWED, sees_all_changes=False)
    world.session.take([produce(1), produce(2)])
    answers = [world.world.answer(produce(number)) or b"" for number in (1, 7)]
    world.link.data_received(b"".join(len(each).to_bytes(4, "big") + each for each in answers))
    assert (world.correlation_ids(), len(world.closed)) == ([1], 1)


async def test_produce_does_not_wait_for_replicas_in_sync() -> None:
    world = World(ALL_ALLOWED)
    frames = [produce(number, WAITS) for number in range(5)]
    world.session.take(frames)
    assert (list(world.forwarded), world.part[4:]) == (frames[:1], frames[1][:-1])
    world.answer_one()
    assert list(world.forwarded) == frames[1:], "they are known to keep up"
    world.link._awaited[0].sent_s -= REPLICATED_SOON_S
    world.answer_one()
    world.session.take([produce(5, WAITS)])
    assert (list(world.forwarded), world.part[4:]) == (frames[2:], produce(5, WAITS)[:-1]), "they fell behind"


@pytest.mark.parametrize("why", ["throttled", "the session ends soon", "changes are made elsewhere"])
async def test_no_request_is_sent_complete_after_one_that_may_take_long(why: str) -> None:
    world = World(ALL_ALLOWED, sees_all_changes=why != "changes are made elsewhere")
    acks = WAITS if why == "changes are made elsewhere" else 1
    world.session.take([produce(1, acks)])
    world.answer_one()
    if why == "throttled":
        # an answer without a throttle time
        world.link.throttle(None)
    elif why == "the session ends soon":
        world.has_expired = lambda in_ms=0: in_ms > 0  # type: ignore[method-assign]
    world.session.take([produce(2, acks), produce(3, acks)])
    assert (list(world.forwarded), world.part[4:]) == ([produce(2, acks)], produce(3, acks)[:-1])


async def test_a_produce_after_another_is_sent_except_for_its_last_byte() -> None:
    world = World(ALL_ALLOWED, sees_all_changes=False)
    frames = [*(produce(i, WAITS) for i in range(4)), heartbeat(4), produce(5)]
    world.session.take(frames)
    for number in range(4):
        assert len(world.forwarded) == 1
        following = frames[number + 1] if number < 3 else b""
        assert world.part[4:] == following[:-1]
        world.answer_one()
    assert [frame[:2] for frame in world.forwarded] == [b"\0\x0c"], "no other frame precedes or follows it"
    assert world.part == b""
    await world.finish()
    assert world.correlation_ids() == list(range(6))


@pytest.mark.parametrize("why", ["a right is gone", "the session has ended"])
async def test_a_pipelined_request_is_decided_again_before_its_last_byte_is_sent(why: str) -> None:
    world = World(ALL_ALLOWED)
    world.session.take([produce(1, WAITS), produce(2)])
    if why == "a right is gone":
        world.replace_acls([])
    else:
        world.has_expired = lambda in_ms=0: True  # type: ignore[method-assign]
    world.answer_one()
    assert world.correlation_ids() == [1] or world.answers == []
    reason = NO_LONGER_ALLOWED if why == "a right is gone" else SESSION_EXPIRED
    assert world.closed == [reason]
    assert world.pipe.aborted
    assert len(world.all_forwarded) == 1
    await world.in_flight.drain()


async def test_a_denied_produce_waits_for_earlier_answers_and_does_not_block_later_requests() -> None:
    world = World([allow(ResourceType.TOPIC, "alpha-topic", AclOperation.WRITE)])
    world.session.take([produce(1), produce(2, 1, "bravo-topic"), produce(3)])
    assert list(world.forwarded) == [produce(1), produce(3)]
    assert world.answers == []
    await world.finish()
    assert world.correlation_ids() == [1, 2, 3]
