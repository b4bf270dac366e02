"""In front of a real Kafka: an authorizer that does not answer as it must lets nothing through."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.create_topics.v5.request import CreatableTopic
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.produce.v8.request import PartitionProduceData, TopicProduceData
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import TOPICS
from testkit.guarded.raw_client import RawClient
from testkit.kustos import KustosSettings
from testkit.protocol.random_requests import batch
from testkit.waiting import whole_lines
from tests.e2e.authorizers import FAULTS
from tests.e2e.test_raw_requests import commit, coordinators, list_offsets, offsets

UNKNOWN_SERVER_ERROR = -1
METADATA = 3
SOON = i32Timedelta.parse(timedelta(seconds=1))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    settings = KustosSettings(
        protocol="PLAINTEXT", properties={"authorizer.class.name": "tests.e2e.authorizers.Faulty"}
    )
    with GuardedCluster(
        tmp_path_factory.mktemp("scene"), settings, topics=TOPICS, taps_clients=False
    ) as made:
        yield made


def metadata(_: str) -> dict[str, Any]:
    topics = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in TOPICS)
    return {
        "topics": topics,
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
    }


def produce(_: str) -> dict[str, Any]:
    records: Any = batch()
    partition = PartitionProduceData(index=i32(0), records=records)
    topics = tuple(TopicProduceData(name=TopicName(name), partition_data=(partition,)) for name in TOPICS)
    return {
        "transactional_id": None,
        "acks": i16(-1),
        "timeout": SOON,
        "topic_data": topics,
    }


def fetch(_: str) -> dict[str, Any]:
    partition = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1))
    topics = tuple(FetchTopic(topic=TopicName(name), partitions=(partition,)) for name in TOPICS)
    return {
        "max_wait": SOON,
        "min_bytes": i32(0),
        "topics": topics,
        "forgotten_topics_data": (),
        "session_epoch": i32(-1),
    }


def create_topics(group: str) -> dict[str, Any]:
    topic = CreatableTopic(
        name=TopicName(f"of-{group}"),
        num_partitions=i32(1),
        replication_factor=i16(1),
        assignments=(),
        configs=(),
    )
    return {"topics": (topic,), "timeout": SOON}


def producer_id(_: str) -> dict[str, Any]:
    return {"transactional_id": None, "transaction_timeout": SOON}


def create_acls(name: str) -> dict[str, Any]:
    codes = {"resource_type": i8(2), "operation": i8(3), "permission_type": i8(3)}
    return {"creations": (AclCreation(resource_name=name, principal="User:a", host="*", **codes),)}


def describe_acls(_: str) -> dict[str, Any]:
    anything = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    codes = dict.fromkeys(("resource_type_filter", "operation", "permission_type"), i8(1))
    return {**anything, **codes, "pattern_type_filter": i8(1)}


REQUESTS: dict[str, tuple[int, int, Callable[[str], dict[str, Any]]]] = {
    "Metadata": (METADATA, 12, metadata),
    "Produce": (0, 8, produce),
    "Fetch": (1, 12, fetch),
    "CreateTopics": (19, 5, create_topics),
    "InitProducerId": (22, 4, producer_id),
    "ListOffsets": (2, 6, list_offsets),
    "OffsetCommit": (8, 8, commit),
    "OffsetFetch": (9, 7, offsets),
    "FindCoordinator": (10, 4, coordinators),
}


ANSWERED_HERE: dict[str, tuple[int, int, Callable[[str], dict[str, Any]]]] = {
    "CreateAcls": (30, 3, create_acls),
    "DescribeAcls": (29, 3, describe_acls),
}


def error_codes(value: Any) -> set[int]:
    """Return every error code in an answer, however deep."""
    found: set[int] = set()
    if is_dataclass(value):
        for field in fields(value):
            inner = getattr(value, field.name)
            found |= {int(inner)} if field.name == "error_code" else error_codes(inner)
    elif isinstance(value, tuple):
        found = found.union(*(error_codes(each) for each in value))
    return found


def forwarded(scene: GuardedCluster, client_id: str) -> list[int]:
    return [each.api_key for each in scene.upstream.exchanges if each.client_id == client_id]


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_forwarded_and_every_item_is_an_error(scene: GuardedCluster, fault: str) -> None:
    client_id = f"at-once:{fault}"
    with RawClient(scene.bootstrap, client_id) as client:
        for name, (api_key, version, made) in (REQUESTS | ANSWERED_HERE).items():
            answer = client.ask(api_key, version, **made("a-group"))
            assert error_codes(answer) - {0} == {UNKNOWN_SERVER_ERROR}, name
    assert forwarded(scene, client_id) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_shows_when_upstream_has_answered_gives_nothing_away(
    scene: GuardedCluster, fault: str
) -> None:
    client_id = f"later:{fault}"
    with RawClient(scene.bootstrap, client_id) as client:
        answer = client.ask(METADATA, 12, **metadata(""))
    assert forwarded(scene, client_id) == [METADATA]
    assert {int(topic.error_code) for topic in answer.topics} == {UNKNOWN_SERVER_ERROR}
    assert all(topic.partitions == () for topic in answer.topics)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_change_of_acls_is_an_error_for_each(scene: GuardedCluster, fault: str) -> None:
    two = create_acls(fault)["creations"] * 2
    with RawClient(scene.bootstrap, "sound") as client:
        answer = client.ask(30, 3, creations=two)
    assert [int(result.error_code) for result in answer.results] == [UNKNOWN_SERVER_ERROR] * 2
    assert {result.error_message for result in answer.results} == {None}


@pytest.mark.parametrize("fault", ["exception", "none", "booleans", "texts", "coroutine", "coroutines"])
def test_a_faulty_list_of_acls_is_an_error(scene: GuardedCluster, fault: str) -> None:
    with RawClient(scene.bootstrap, "sound") as client:
        [made] = client.ask(30, 3, **create_acls("orders")).results
        answer = client.ask(29, 3, **describe_acls(fault) | {"resource_name_filter": fault})
        sound = client.ask(29, 3, **describe_acls("orders"))
    assert (int(made.error_code), int(sound.error_code)) == (0, 0)
    assert sound.resources
    assert (int(answer.error_code), answer.error_message) == (UNKNOWN_SERVER_ERROR, None)
    assert answer.resources == ()


def test_without_a_fault_the_same_requests_pass(scene: GuardedCluster) -> None:
    with RawClient(scene.bootstrap, "sound") as client:
        for api_key, version, made in REQUESTS.values():
            answer = client.ask(api_key, version, **made("a-group"))
            assert UNKNOWN_SERVER_ERROR not in error_codes(answer)
    assert len(forwarded(scene, "sound")) == len(REQUESTS)


def test_the_log_says_what_was_wrong_and_clients_are_not_told(scene: GuardedCluster) -> None:
    lines = [json.loads(line) for line in whole_lines(scene.kustos.directory / "kustos.log")]
    reasons = {line.get("reason") for line in lines if line["event"].startswith("the authorizer failed")}
    assert "RuntimeError: a secret of the store" in reasons
    assert any("not an AuthorizationResult" in str(reason) for reason in reasons)
