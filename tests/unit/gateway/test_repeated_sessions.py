"""A session whose client sends the same small request again."""

from typing import Any

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.gateway.session.client_session import INTERNAL_ERROR
from kustos.protocol import Guard
from kustos.wire import ApiKey
from testkit.gateway.gateways import Caller, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker, cluster_of
from testkit.gateway.sessions import World, heartbeat, metadata, request
from testkit.protocol.driver import GatewayAddresses
from testkit.protocol.random_requests import ALL_ALLOWED, allow, numbered

TOPIC = "alpha-topic"


def answer_to(world: World, frame: bytes) -> bytes:
    """Send a request, and return the client's answer after the correlation id."""
    world.session.take([frame])
    assert world.answer_one()
    return world.answers[-1][4:]


async def test_each_repetition_is_recorded_before_it_is_sent() -> None:
    world = World(ALL_ALLOWED)
    sent: list[tuple[int, int]] = []
    take = world.take_request

    def take_request(frame: bytes) -> None:
        sent.append((int.from_bytes(frame[4:8]), world.decided_by[-1]))
        take(frame)

    world.take_request = take_request  # type: ignore[method-assign]
    for number in range(3):
        answer_to(world, metadata(number, TOPIC))
    assert sent == [(0, 0), (1, 1), (2, 2)]
    assert world.decided_by == [0, 1, 2]
    assert world.repeated == 2


async def test_a_changed_answer_is_parsed_and_its_decisions_are_recorded_once() -> None:
    world = World(ALL_ALLOWED)
    before = answer_to(world, metadata(1, TOPIC))
    assert answer_to(world, metadata(2, TOPIC)) == before
    del world.world.topics[TOPIC]
    assert answer_to(world, metadata(3, TOPIC)) != before
    world.world.create(TOPIC)
    assert answer_to(world, metadata(4, TOPIC)) == before
    assert world.decided_by == [1, 2, 3, 4]


async def test_a_revocation_disconnects_the_client_of_a_pending_repetition() -> None:
    world = World(ALL_ALLOWED)
    answer_to(world, heartbeat(1))
    world.session.take([heartbeat(2)])
    assert world.repeated == 1
    world.replace_acls([allow(ResourceType.TOPIC, "*", AclOperation.ALL)])
    await world.in_flight.drain()
    assert world.closed == ["a request in flight is no longer allowed"]


async def test_a_repetition_is_decided_again_after_a_change() -> None:
    world = World(ALL_ALLOWED)
    answer_to(world, heartbeat(1))
    world.replace_acls([])
    world.session.take([heartbeat(2)])
    assert (len(world.forwarded), world.repeated) == (0, 0)
    assert world.answers[-1][-2:] == (30).to_bytes(2, "big"), "GROUP_AUTHORIZATION_FAILED"


async def test_an_unrecorded_repetition_is_parsed_like_a_new_request() -> None:
    world = World(ALL_ALLOWED)
    answer_to(world, metadata(1, TOPIC))
    world.refuses = True
    answer_to(world, metadata(2, TOPIC))
    assert (world.decided_by, world.repeated) == ([1, 2], 0)
    world.refuses = False
    answer_to(world, metadata(3, TOPIC))
    assert (world.decided_by, world.repeated) == ([1, 2, 3], 1)


async def test_an_exception_while_parsing_an_answer_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_guard: Guard, _repetition: Any) -> Any:
        raise ZeroDivisionError

    world = World(ALL_ALLOWED)
    answer_to(world, metadata(1, TOPIC))
    del world.world.topics[TOPIC]
    monkeypatch.setattr(Guard, "reopen", broken)
    world.session.take([numbered(metadata(1, TOPIC), 2)])
    world.answer_one()
    assert world.closed == [INTERNAL_ERROR]
    assert world.correlation_ids() == [1]


async def test_a_broker_in_a_repeated_answer_is_reachable_again() -> None:
    first, second = ScriptedBroker(1), ScriptedBroker(2)
    await cluster_of(first, second)
    async with running_gateway([first, second]) as running:
        client = await Caller.at(running.port)
        for number in range(3):
            client.send(metadata(number, TOPIC))
        assert await client.correlation_ids(3) == [0, 1, 2]
        # a refresh during a restart of the second broker
        first.peers, second.peers = [first], [first]
        await running.cluster.refresh()
        assert running.cluster.brokers.keys() == {1}
        first.peers = second.peers = [first, second]
        client.send(metadata(3, TOPIC))
        assert await client.correlation_ids(1) == [3]
        assert first.asked.count(ApiKey.METADATA) + second.asked.count(ApiKey.METADATA) >= 4
        of_second = await Caller.at(running.first_port + 2)
        of_second.send(metadata(4, TOPIC))
        assert await of_second.correlation_ids(1) == [4]


@pytest.mark.parametrize(
    "asked",
    [
        metadata(1, TOPIC),
        request(ApiKey.FIND_COORDINATOR, 2, 1, key="group-one", key_type=0),
        request(ApiKey.FIND_COORDINATOR, 4, 1, key_type=0, coordinator_keys=["group-one"]),
    ],
    ids=["Metadata", "FindCoordinator v2", "FindCoordinator v4"],
)
async def test_brokers_are_learned_from_every_repeated_answer(asked: bytes) -> None:
    world = World(ALL_ALLOWED)
    addresses = world.guard.addresses
    assert isinstance(addresses, GatewayAddresses)
    answer_to(world, asked)
    learned = addresses.known
    assert learned
    answer_to(world, numbered(asked, 2))
    assert addresses.known is learned
    addresses.known = {}
    answer_to(world, numbered(asked, 3))
    assert addresses.known == learned
    assert world.repeated == 2
