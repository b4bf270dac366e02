"""Requests with thousands of items are decided in parts, and others have their turn in between."""

import asyncio
from collections.abc import Callable

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
