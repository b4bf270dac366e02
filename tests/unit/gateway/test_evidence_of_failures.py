"""Decisions are in the audit log even if the request fails afterwards."""

from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.acl import AclOperation, ResourceType
from kustos.authorizer import Decision
from kustos.protocol import shapes
from kustos.protocol.exchange import ITEMS_PER_TURN
from kustos.wire import response_codec
from kustos.wire.api_keys import ApiKey
from testkit.gateway.sessions import World, heartbeat, request, request_struct
from testkit.protocol.random_requests import ALL_ALLOWED, allow

PRODUCERS, STREAMS = ApiKey.DESCRIBE_PRODUCERS, ApiKey.STREAMS_GROUP_HEARTBEAT
DENIED = [f"denied-{number}" for number in range(10)]
LONG = "x" * 32_760
"""A name that a request has room for, and a text that quotes it has not."""
TOPIC_DENIED, INVALID_TOPIC, INVALID_TOPOLOGY = 29, 17, 130


def producers_of(names: Sequence[str]) -> bytes:
    topics = [
        request_struct(PRODUCERS, 0, "TopicRequest", name=name, partition_indexes=[0]) for name in names
    ]
    return request(PRODUCERS, 0, 1, topics=topics)


def streams_of(group: str, *names: str) -> bytes:
    part = request_struct(STREAMS, 0, "Subtopology", subtopology_id="0", source_topics=list(names))
    topology = request_struct(STREAMS, 0, "Topology", epoch=0, subtopologies=[part])
    return request(STREAMS, 0, 1, group_id=group, member_id="m", topology=topology)


def answer_of(world: World, api_key: int) -> dict[str, Any]:
    """Return the one answer."""
    [answer] = world.answers
    return response_codec(api_key, 0).decode(answer, 5).message.to_dict()


async def test_an_unquotable_name_is_rejected_and_other_decisions_are_audited() -> None:
    world = World([])
    world.session.take([producers_of([*DENIED, LONG])])
    await world.finish()
    assert world.closed == []
    answered = [topic["partitions"][0] for topic in answer_of(world, PRODUCERS)["topics"]]
    assert [each["error_code"] for each in answered] == [TOPIC_DENIED] * 10 + [INVALID_TOPIC]
    assert len(answered[-1]["error_message"]) < shapes.TEXT_CHARACTERS_MAX + 10
    assert answered[-1]["error_message"].endswith("is longer than the max allowed length 249")
    assert world.decided_names == DENIED


async def test_unquotable_names_of_a_topology_are_rejected() -> None:
    world = World([allow(ResourceType.GROUP, "group-one", AclOperation.READ)])
    world.session.take([streams_of("group-one", *[f"{number}{LONG}" for number in range(3)])])
    await world.finish()
    assert world.closed == []
    answered = answer_of(world, STREAMS)
    assert answered["error_code"] == INVALID_TOPOLOGY
    assert answered["error_message"].startswith("Topic names 0xx")
    assert answered["error_message"].endswith("are not valid topic names.")
    assert world.decided_names == ["group-one"]


@pytest.mark.parametrize("frame", [producers_of([*DENIED, LONG]), streams_of("group-one", LONG)])
async def test_decisions_are_audited_if_the_answer_cannot_be_encoded(
    frame: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "TEXT_CHARACTERS_MAX", 10**6)
    world = World([allow(ResourceType.GROUP, "group-one", AclOperation.READ)])
    world.session.take([frame, heartbeat(2)])
    await world.finish()
    assert len(world.closed) == 1
    assert (world.answers, world.all_forwarded) == ([], [])
    assert world.decided_by == [1]
    assert world.decided_names in (DENIED, ["group-one"])


async def test_decisions_before_a_failure_of_the_authorizer_are_audited() -> None:
    world = World(ALL_ALLOWED)
    original = world.guard.decider

    class Breaking:
        """Decides on nine names of ten."""

        version = None

        def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
            if name == DENIED[-1]:
                raise RuntimeError("a bug")
            return original.decide(operation, resource_type, name)

        def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
            return original.decide_by_resource_type(operation, resource_type)

    world.guard.decider = Breaking()
    with capture_logs() as logs:
        world.session.take([producers_of(DENIED)])
        await world.finish()
    assert (len(world.closed), len(logs)) == (1, 1)
    assert (world.answers, world.all_forwarded) == ([], [])
    assert world.decided_names == DENIED[:-1]


async def test_decisions_of_a_large_request_that_fails_are_audited_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shapes, "TEXT_CHARACTERS_MAX", 10**6)
    world = World([])
    names = [f"denied-{number}" for number in range(2 * ITEMS_PER_TURN)]
    world.session.take([producers_of([*names, LONG])])
    while not world.closed:
        await world.settle()
    assert world.answers == []
    assert len(world.decided_by) > 1, "it was decided in one turn"
    assert world.decided_names == names
