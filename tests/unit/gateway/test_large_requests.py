"""Requests with thousands of items are decided in parts, and others have their turn in between."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from kustos.acl import KafkaPrincipal
from kustos.gateway.session.large_turns import LargeTurns, QueuePlace
from kustos.protocol.exchange import ITEMS_PER_TURN
from kustos.wire.api_keys import ApiKey
from testkit.gateway.sessions import World, heartbeat, request
from testkit.protocol.random_requests import ALL_ALLOWED

MANY = [f"group-{number}" for number in range(2 * ITEMS_PER_TURN)]


def describe_groups(correlation_id: int) -> bytes:
    """A request that is decided in parts."""
    return request(ApiKey.DESCRIBE_GROUPS, 5, correlation_id, groups=MANY)


async def test_small_requests_of_others_are_answered_amid_a_large_one() -> None:
    world = World([])
    other = World(ALL_ALLOWED)
    world.session.take([describe_groups(1)])
    other.session.take([heartbeat(2)])
    assert other.answer_one()
    assert (other.correlation_ids(), world.answers) == ([2], [])
    await wait_async(lambda: world.answers)
    assert world.correlation_ids() == [1]
    assert not world.forwarded


async def test_a_large_request_that_is_allowed_goes_upstream_whole() -> None:
    world = World(ALL_ALLOWED)
    frame = describe_groups(1)
    world.session.take([frame])
    await wait_async(lambda: world.forwarded)
    assert list(world.forwarded) == [frame]


async def test_what_is_forbidden_while_a_large_request_gives_way_does_not_go_upstream() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([describe_groups(1)])
    await wait_async(lambda: world.decided_by)
    world.replace_acls([])
    await wait_async(lambda: world.closed)
    assert world.closed == ["the ACLs changed while a large request was decided"]
    assert not world.forwarded


async def test_small_requests_with_large_answers_take_turns() -> None:
    """One turn of the loop works on a part of one of them, on however many connections they came."""
    first = listing_all(World(ALL_ALLOWED))
    worlds = [first, *(listing_all(World(ALL_ALLOWED, large_turns=first.large_turns)) for _ in range(4))]
    decided = [sum(len(world.decided_by) for world in worlds)]
    while not all(world.answers for world in worlds):
        await asyncio.sleep(0)
        decided.append(sum(len(world.decided_by) for world in worlds))
    assert {later - earlier for earlier, later in pairwise(decided)} == {0, 1}


async def test_small_requests_with_large_answers_do_not_keep_large_ones_out() -> None:
    """A principal's own ones, on any number of connections, are one of those that take turns."""
    turns: list[str] = []
    queue = LargeTurns(call_later=lambda _, callback: asyncio.get_running_loop().call_soon(callback))
    small = [queue.place(KafkaPrincipal("User", "small")) for _ in range(20)]
    large = queue.place(KafkaPrincipal("User", "large"))

    def take(place: QueuePlace) -> None:
        if place.may_go_on(False, True, partial(take, place)):
            turns.append("small")
            take(place)

    def begin() -> None:
        if large.may_begin(True, begin):
            turns.append("large")

    for place in small:
        take(place)
    begin()
    await wait_async(lambda: "large" in turns)
    assert turns == ["small", "large"]
    for place in small:
        place.leave()


def listing_all(world: World) -> World:
    """Let a session have the answer to a request for all topics: few bytes, and many topics."""
    for number in range(3 * ITEMS_PER_TURN):
        world.world.create(f"topic-{number}")
    world.session.take([request(ApiKey.METADATA, 1, 9, topics=None)])
    assert world.answer_one()
    return world


async def test_a_connection_that_ends_amid_a_large_request_leaves_the_queue() -> None:
    world = World([])
    world.session.take([describe_groups(1)])
    world.session.close()
    await world.settle()
    assert not [*world.answers, *world.forwarded]
    other = World([], large_turns=world.large_turns)
    other.session.take([describe_groups(2)])
    await wait_async(lambda: other.answers)


async def wait_async(condition: Callable[[], object]) -> None:
    """Return once the loop has come to it; the test's own time limit holds."""
    while not condition():  # noqa: ASYNC110 (nothing else tells)
        await asyncio.sleep(0)
