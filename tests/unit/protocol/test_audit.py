"""The guard takes the decisions of Kafka's handlers: each once, with its count and flags.

Counts and flags: `AuthHelper` and the handlers of Kafka 4.3.1. An entry is (operation, resource type,
name, reference count, flags); flags: `a` logged if allowed, `d` logged if denied, `l` a listing.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from kustos.acl import CLUSTER_NAME, AclBinding, AclOperation, ResourceType
from testkit.protocol.random_requests import ALL_ALLOWED, allow, batch
from tests.unit.protocol.protocol_requests import ask, connection

ALPHA, HIDDEN = "alpha-topic", "hidden-gamma"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE, CREATE = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.CREATE,
)
DELETE, CONFIGS = AclOperation.DELETE, AclOperation.DESCRIBE_CONFIGS
IDS = connection().model.topics
Entry = tuple[AclOperation, ResourceType, str | None, int, str]


def partitions(*indexes: int, **more: Any) -> list[dict[str, Any]]:
    return [{"index": index, **more} for index in indexes]


CASES: dict[str, tuple[int, int, dict[str, Any], list[AclBinding], Sequence[Entry]]] = {
    "produce counts partitions, over all mentions of a topic": (
        0,
        9,
        {
            "acks": 1,
            "transactional_id": None,
            "topic_data": [
                {"name": ALPHA, "partition_data": partitions(0, 1, records=batch())},
                {"name": HIDDEN, "partition_data": partitions(0, records=batch())},
                {"name": ALPHA, "partition_data": partitions(2, records=batch())},
            ],
        },
        [],
        [
            (WRITE, TOPIC, ALPHA, 3, "ad"),
            (WRITE, TOPIC, HIDDEN, 1, "ad"),
        ],
    ),
    "a refused transaction asks nothing more": (
        0,
        9,
        {
            "acks": 1,
            "transactional_id": "tx-one",
            "topic_data": [
                {"name": ALPHA, "partition_data": partitions(0, records=batch(transactional=True))}
            ],
        },
        [],
        [(WRITE, TRANSACTION, "tx-one", 1, "ad")],
    ),
    "fetch counts partitions": (
        1,
        12,
        {
            "replica_id": -1,
            "topics": [
                {"topic": ALPHA, "partitions": [{"partition": 0}, {"partition": 1}]},
                {"topic": HIDDEN, "partitions": [{"partition": 0}]},
            ],
        },
        [],
        [(READ, TOPIC, ALPHA, 2, "ad"), (READ, TOPIC, HIDDEN, 1, "ad")],
    ),
    "a follower's fetch asks about the cluster once": (
        1,
        12,
        {"replica_id": 3, "topics": [{"topic": ALPHA, "partitions": [{"partition": 0}, {"partition": 1}]}]},
        [],
        [(AclOperation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME, 1, "ad")],
    ),
    "list offsets counts entries, not partitions": (
        2,
        1,
        {
            "replica_id": -1,
            "topics": [
                {"name": ALPHA, "partitions": [{"partition_index": 0}, {"partition_index": 1}]},
                {"name": ALPHA, "partitions": []},
            ],
        },
        [],
        [(DESCRIBE, TOPIC, ALPHA, 2, "ad")],
    ),
    "metadata by name logs denials": (
        3,
        4,
        {"topics": [{"name": ALPHA}, {"name": ALPHA}, {"name": HIDDEN}], "allow_auto_topic_creation": True},
        [allow(TOPIC, ALPHA, READ)],
        [(DESCRIBE, TOPIC, ALPHA, 1, "ad"), (DESCRIBE, TOPIC, HIDDEN, 1, "ad")],
    ),
    "metadata asks about creation for missing topics only": (
        3,
        4,
        {"topics": [{"name": ALPHA}, {"name": "nowhere"}], "allow_auto_topic_creation": True},
        [allow(TOPIC, "*", READ)],
        [
            (DESCRIBE, TOPIC, ALPHA, 1, "ad"),
            (DESCRIBE, TOPIC, "nowhere", 1, "ad"),
            (CREATE, CLUSTER, CLUSTER_NAME, 1, "a"),
            (CREATE, TOPIC, "nowhere", 1, "ad"),
        ],
    ),
    "offset commit asks the group, then the topics": (
        8,
        9,
        {"group_id": "group-one", "topics": [{"name": ALPHA}, {"name": HIDDEN}]},
        [allow(GROUP, "group-one", READ)],
        [(READ, GROUP, "group-one", 1, "ad"), (READ, TOPIC, ALPHA, 1, "ad"), (READ, TOPIC, HIDDEN, 1, "ad")],
    ),
    "a refused group's topics are not asked about": (
        8,
        9,
        {"group_id": "group-one", "topics": [{"name": ALPHA}]},
        [],
        [(READ, GROUP, "group-one", 1, "ad")],
    ),
    "describe groups counts mentions of a group": (
        15,
        4,
        {"groups": ["group-one", "group-one", "group-two"], "include_authorized_operations": False},
        [],
        [(DESCRIBE, GROUP, "group-one", 2, "ad"), (DESCRIBE, GROUP, "group-two", 1, "ad")],
    ),
    "list groups asks about the cluster even where there are none": (
        16,
        4,
        {},
        [allow(CLUSTER, CLUSTER_NAME, DESCRIBE)],
        [(DESCRIBE, CLUSTER, CLUSTER_NAME, 1, "a")],
    ),
    "list groups filters without logging denials": (
        16,
        4,
        {},
        [],
        [
            (DESCRIBE, CLUSTER, CLUSTER_NAME, 1, "a"),
            *[(DESCRIBE, GROUP, f"group-{name}", 1, "al") for name in ("one", "two", "three")],
        ],
    ),
    "create topics asks the cluster first": (
        19,
        5,
        {"topics": [{"name": "fresh-topic"}]},
        [],
        [
            (CREATE, CLUSTER, CLUSTER_NAME, 1, "a"),
            (CREATE, TOPIC, "fresh-topic", 1, "ad"),
            (CONFIGS, TOPIC, "fresh-topic", 1, "al"),
        ],
    ),
    "delete topics asks both questions of each name": (
        20,
        5,
        {"topic_names": [ALPHA]},
        [],
        [
            (DELETE, CLUSTER, CLUSTER_NAME, 1, "a"),
            (DESCRIBE, TOPIC, ALPHA, 1, "ad"),
            (DELETE, TOPIC, ALPHA, 1, "ad"),
        ],
    ),
    "who may delete on the cluster is asked nothing more": (
        20,
        5,
        {"topic_names": [ALPHA]},
        [allow(CLUSTER, CLUSTER_NAME, DELETE)],
        [(DELETE, CLUSTER, CLUSTER_NAME, 1, "a")],
    ),
    "describe configs counts resources that hang on the cluster": (
        32,
        4,
        {"resources": [{"resource_type": 4, "resource_name": str(n)} for n in (1, 2, 3)]},
        [],
        [(CONFIGS, CLUSTER, CLUSTER_NAME, 3, "ad")],
    ),
    "describe cluster asks only for operations": (60, 0, {}, [], []),
    "a heartbeat asks about each subscribed topic once": (
        68,
        0,
        {"group_id": "group-one", "subscribed_topic_names": [ALPHA, ALPHA, HIDDEN]},
        [allow(GROUP, "group-one", READ)],
        [
            (READ, GROUP, "group-one", 1, "ad"),
            (DESCRIBE, TOPIC, ALPHA, 1, "ad"),
            (DESCRIBE, TOPIC, HIDDEN, 1, "ad"),
        ],
    ),
    "a transaction in two phases needs both rights, before it is refused": (
        22,
        6,
        {"transactional_id": "tx-one", "enable2_pc": True},
        [allow(TRANSACTION, "tx-one", WRITE)],
        [
            (WRITE, TRANSACTION, "tx-one", 1, "ad"),
            (AclOperation.TWO_PHASE_COMMIT, TRANSACTION, "tx-one", 1, "ad"),
        ],
    ),
    "a transaction without the right to write asks nothing more": (
        22,
        6,
        {"transactional_id": "tx-one", "enable2_pc": True},
        [],
        [(WRITE, TRANSACTION, "tx-one", 1, "ad")],
    ),
    "any topic will do for a producer id": (
        22,
        0,
        {"transactional_id": None},
        [],
        [(AclOperation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME, 1, "a"), (WRITE, TOPIC, None, 0, "a")],
    ),
}


@pytest.mark.behaviour("B102", "B103", "B142", "B169", "B173")
@pytest.mark.parametrize("case", CASES)
def test_each_decision_is_requested_as_in_kafka(case: str) -> None:
    api_key, version, fields, acls, expected = CASES[case]
    outcome, _ = ask(connection(*acls), api_key, version, **fields)
    assert outcome.opened is not None
    assert [
        (
            decided.action.operation,
            decided.action.resource_type,
            decided.name,
            decided.action.reference_count,
            "a" * decided.action.log_if_allowed + "d" * decided.action.log_if_denied + "l" * decided.listing,
        )
        for decided in outcome.opened.exchange.decided
    ] == expected


PROBES: dict[str, list[tuple[AclOperation, ResourceType]]] = {
    "metadata asks about creation for missing topics only": [(CREATE, CLUSTER)],
    "list groups filters without logging denials": [(DESCRIBE, CLUSTER)],
    "create topics asks the cluster first": [(CREATE, CLUSTER)],
    "delete topics asks both questions of each name": [(DELETE, CLUSTER)],
    "any topic will do for a producer id": [(AclOperation.IDEMPOTENT_WRITE, CLUSTER)],
}
"""The cases above in which a denial rejects nothing, with their decisions."""


@pytest.mark.parametrize("case", CASES)
def test_only_a_decision_implied_by_another_is_a_probe(case: str) -> None:
    api_key, version, fields, acls, _ = CASES[case]
    outcome, _ = ask(connection(*acls), api_key, version, **fields)
    assert outcome.opened is not None
    probes = [each.action for each in outcome.opened.exchange.decided if each.is_probe]
    assert [(probe.operation, probe.resource_type) for probe in probes] == PROBES.get(case, [])


def test_all_topics_are_filtered_without_logging_denials() -> None:
    outcome, _ = ask(connection(allow(TOPIC, ALPHA, READ)), 3, 4, topics=None)
    assert outcome.opened is not None
    decided = outcome.opened.exchange.decided
    assert [each.name for each in decided] == list(IDS)
    assert all(each.listing and not each.action.log_if_denied for each in decided)


def test_authorized_operations_are_never_logged() -> None:
    outcome, _ = ask(connection(*ALL_ALLOWED), 60, 0, include_cluster_authorized_operations=True)
    assert outcome.opened is not None
    first, *rest = outcome.opened.exchange.decided
    assert first.action.log_if_denied
    assert len(rest) == 7
    assert not any(each.action.log_if_allowed or each.action.log_if_denied for each in rest)
