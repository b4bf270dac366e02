"""Requests that mix what is allowed with what is not, as no client library would send them.

There is nothing to assert here but that the judges find nothing: they know what each must come to.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kio.schema.list_offsets.v6.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.offset_commit.v8.request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kio.schema.offset_fetch.v7.request import OffsetFetchRequestTopic
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i64

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import TOPICS
from testkit.guarded.raw_client import RawClient
from testkit.waiting import wait_until

WAIT_S = 60.0
USERS = ("alice", "bob", "carol", "dave")
GROUPS = ("alice-group", "carol-group", "nobodys-group")


def list_offsets(_group: str) -> dict[str, Any]:
    partition = ListOffsetsPartition(partition_index=i32(0), current_leader_epoch=i32(-1), timestamp=i64(-1))
    topics = tuple(ListOffsetsTopic(name=TopicName(name), partitions=(partition,)) for name in TOPICS)
    return {"replica_id": i32(-1), "isolation_level": i8(0), "topics": topics}


def commit(group: str) -> dict[str, Any]:
    partition = OffsetCommitRequestPartition(
        partition_index=i32(0),
        committed_offset=i64(0),
        committed_leader_epoch=i32(-1),
        committed_metadata="",
    )
    topics = tuple(OffsetCommitRequestTopic(name=TopicName(name), partitions=(partition,)) for name in TOPICS)
    return {
        "group_id": GroupId(group),
        "generation_id_or_member_epoch": i32(-1),
        "member_id": "",
        "group_instance_id": None,
        "topics": topics,
    }


def offsets(group: str) -> dict[str, Any]:
    topics = tuple(
        OffsetFetchRequestTopic(name=TopicName(name), partition_indexes=(i32(0),)) for name in TOPICS
    )
    return {"group_id": GroupId(group), "topics": topics, "require_stable": False}


def coordinators(group: str) -> dict[str, Any]:
    return {"key_type": i8(0), "coordinator_keys": (group, *GROUPS)}


REQUESTS: dict[str, tuple[int, int, Callable[[str], dict[str, Any]]]] = {
    "ListOffsets": (2, 6, list_offsets),
    "OffsetCommit": (8, 8, commit),
    "OffsetFetch": (9, 7, offsets),
    "FindCoordinator": (10, 4, coordinators),
}


@pytest.fixture(scope="module", autouse=True)
def coordinated(world: GuardedCluster) -> None:
    """Let upstream make its offsets topic, so that groups have a coordinator."""
    consumer = Consumer({"bootstrap.servers": world.direct, "group.id": "first"})

    def answers() -> bool:
        try:
            consumer.committed([TopicPartition(TOPICS[0], 0)], WAIT_S)
        except KafkaException:
            return False
        return True

    wait_until(answers, what="the group has a coordinator")
    consumer.close()


@pytest.fixture
def clients(scene: GuardedCluster) -> Iterator[list[RawClient]]:
    with ExitStack() as stack:
        connected = [stack.enter_context(RawClient(scene.bootstrap, user)) for user in USERS]
        yield [each.log_in(each.client_id, scene.settings.users[each.client_id]) for each in connected]


@pytest.mark.parametrize("name", REQUESTS)
def test_of_a_mixed_request_only_what_is_allowed_goes_upstream(
    scene: GuardedCluster, clients: list[RawClient], name: str
) -> None:
    api_key, version, fields = REQUESTS[name]
    for client in clients:
        for group in GROUPS:
            client.ask(api_key, version, **fields(group))
    verdict = scene.assert_proper()
    assert verdict.answered == len(USERS) * len(GROUPS)
    assert {each.client_id for each in scene.upstream.exchanges if each.api_key == api_key} >= {"alice"}
