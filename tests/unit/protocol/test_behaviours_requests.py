"""The ACLs that each request needs: it passes with exactly these, and is denied without any one of them."""

from dataclasses import replace
from typing import Any

import pytest

from kustos.acl import AclBinding, AclOperation, ResourceType
from testkit.protocol.driver import HOST
from testkit.protocol.random_requests import UNKNOWN_ID, allow, batch
from tests.unit.protocol.protocol_requests import (
    ALPHA,
    GROUP_NAME,
    TRANSACTION,
    ask,
    codes,
    connection,
    may,
    needs,
    refusals,
)

BRAVO, HIDDEN = "bravo-topic", "hidden-gamma"
IDS = connection().model.topics
TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTION_DENIED, UNKNOWN_TOPIC_ID = 29, 30, 31, 53, 100


def produced(version: int = 9, name: str = ALPHA) -> dict[str, Any]:
    topic = {"name": name} if version < 13 else {"topic_id": IDS.get(name, UNKNOWN_ID)}
    partitions = [{"index": 0, "records": batch()}]
    return {"acks": -1, "transactional_id": None, "topic_data": [topic | {"partition_data": partitions}]}


def fetched(version: int = 12, replica: int = -1, **topic: Any) -> dict[str, Any]:
    named = topic or ({"topic": ALPHA} if version < 13 else {"topic_id": IDS[ALPHA]})
    return {"replica_id": replica, "topics": [named | {"partitions": [{"partition": 0}]}]}


@pytest.mark.behaviour("B112")
def test_an_unknown_id_is_reported_as_unknown_and_a_known_one_is_denied() -> None:
    for name, code in (("nobody", UNKNOWN_TOPIC_ID), (ALPHA, TOPIC_DENIED)):
        topic_id = IDS.get(name, UNKNOWN_ID)
        for api_key, fields in ((0, produced(13, name)), (1, fetched(13, topic_id=topic_id))):
            assert codes(ask(connection(), api_key, 13, **fields)[1]) == {code}


@pytest.mark.behaviour("B113")
def test_the_zero_id_is_unknown() -> None:
    zeros = {"topic_id": bytes(16), "partition_data": [{"index": 0, "records": batch()}]}
    for api_key, fields in (
        (0, produced(13) | {"topic_data": [zeros]}),
        (1, fetched(13, topic_id=bytes(16))),
    ):
        assert codes(ask(connection(may("READ"), may("WRITE")), api_key, 13, **fields)[1]) == {
            UNKNOWN_TOPIC_ID
        }


@pytest.mark.behaviour("B114")
def test_an_empty_topic_name_is_denied_unless_it_is_allowed() -> None:
    every = [
        allow(ResourceType.TOPIC, "*", operation) for operation in (AclOperation.READ, AclOperation.WRITE)
    ]
    for api_key, version, fields in ((0, 9, produced(name="")), (1, 12, fetched(topic=""))):
        assert refusals([may("READ"), may("WRITE")], api_key, version, fields) == {TOPIC_DENIED}
        assert TOPIC_DENIED not in codes(ask(connection(*every), api_key, version, **fields)[1])


@pytest.mark.behaviour("B115")
@pytest.mark.parametrize("version", [4, 12, 14])
def test_fetching_as_a_replica_needs_cluster_action(version: int) -> None:
    needs(
        1,
        version,
        fetched(version, 1),
        [may("CLUSTER_ACTION", "CLUSTER")],
        TOPIC_DENIED,
        may("READ"),
        may("ALL"),
    )


@pytest.mark.behaviour("B116")
@pytest.mark.parametrize("version", [4, 12, 13])
def test_fetching_as_a_consumer_needs_read(version: int) -> None:
    others = [may("DESCRIBE"), may("WRITE"), may("CLUSTER_ACTION", "CLUSTER"), may("READ", name=BRAVO)]
    needs(1, version, fetched(version), [may("READ")], TOPIC_DENIED, *others)


@pytest.mark.behaviour("B119")
@pytest.mark.parametrize("version", [3, 9, 13])
def test_producing_needs_write_and_neither_describe_nor_read_suffices(version: int) -> None:
    needs(
        0,
        version,
        produced(version),
        [may("WRITE")],
        TOPIC_DENIED,
        may("DESCRIBE"),
        may("READ"),
        may("ALTER"),
    )


@pytest.mark.behaviour("B120")
@pytest.mark.parametrize(
    "acl", [may("CREATE", "CLUSTER"), may("CREATE", name="fresh-topic"), may("CREATE", name="*")]
)
def test_creating_a_topic_needs_create_on_the_cluster_or_the_topic(acl: AclBinding) -> None:
    topic = {"name": "fresh-topic", "num_partitions": 1, "replication_factor": 1}
    describes = [may("DESCRIBE_CONFIGS", name="fresh-topic")]
    for others in ([], [may("CREATE")], [may("WRITE", name="fresh-topic")], [may("ALTER", "CLUSTER")]):
        assert refusals([*others, *describes], 19, 5, {"topics": [topic]}) == {TOPIC_DENIED}
    assert refusals([acl, *describes], 19, 5, {"topics": [topic]}) == set()


@pytest.mark.behaviour("B130")
@pytest.mark.parametrize("version", [2, 8, 9])
def test_committing_needs_read_on_the_group_and_on_the_topic(version: int) -> None:
    topics = [{"name": ALPHA, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    fields = {"group_id": GROUP_NAME, "topics": topics}
    needed = [may("READ", "GROUP"), may("READ")]
    needs(8, version, fields, needed, GROUP_DENIED, may("WRITE"), may("DESCRIBE"), may("DESCRIBE", "GROUP"))
    assert refusals(needed[:1], 8, version, fields) == {TOPIC_DENIED}


@pytest.mark.behaviour("B131")
@pytest.mark.parametrize("version", [2, 7])
def test_fetching_offsets_needs_describe_on_the_group_and_on_the_topic(version: int) -> None:
    fields = {"group_id": GROUP_NAME, "topics": [{"name": ALPHA, "partition_indexes": [0]}]}
    needed = [may("DESCRIBE", "GROUP"), may("DESCRIBE")]
    assert refusals(needed, 9, version, fields) == set()
    assert refusals(needed[1:], 9, version, fields) == {GROUP_DENIED}
    assert codes(ask(connection(needed[0]), 9, version, **fields)[1]) == {TOPIC_DENIED}


@pytest.mark.behaviour("B134")
@pytest.mark.parametrize("version", [1, 7])
def test_listing_offsets_needs_describe(version: int) -> None:
    needs(
        2,
        version,
        listed_offsets(ALPHA),
        [may("DESCRIBE")],
        TOPIC_DENIED,
        may("CREATE"),
        may("DESCRIBE_CONFIGS"),
    )


@pytest.mark.behaviour("B135")
@pytest.mark.parametrize("version", [0, 5])
def test_describing_a_group_needs_describe_on_it(version: int) -> None:
    other = allow(ResourceType.GROUP, "group-two", AclOperation.DESCRIBE)
    needs(
        15,
        version,
        {"groups": [GROUP_NAME]},
        [may("DESCRIBE", "GROUP")],
        GROUP_DENIED,
        other,
        may("DESCRIBE", "CLUSTER"),
    )


@pytest.mark.behaviour("B142")
def test_finding_the_coordinator_of_a_transaction_needs_describe() -> None:
    described = may("DESCRIBE", "TRANSACTIONAL_ID")
    elsewhere = [may("WRITE"), may("IDEMPOTENT_WRITE", "CLUSTER")]
    needs(10, 3, {"key": TRANSACTION, "key_type": 1}, [described], TRANSACTION_DENIED, *elsewhere)


@pytest.mark.behaviour("B146", "B148")
def test_idempotent_producing_needs_idempotent_write_on_the_cluster() -> None:
    fields = {"transactional_id": None}
    others = [may("ALTER", "CLUSTER"), may("READ"), may("CREATE", "CLUSTER")]
    needs(22, 4, fields, [may("IDEMPOTENT_WRITE", "CLUSTER")], CLUSTER_DENIED, *others)


@pytest.mark.behaviour("B147", "B148")
@pytest.mark.parametrize("name", [ALPHA, "prefixed", "*"])
def test_idempotent_producing_is_allowed_by_write_on_any_topic(name: str) -> None:
    fields = {"transactional_id": None}
    needs(
        22,
        4,
        fields,
        [may("WRITE", name=name)],
        CLUSTER_DENIED,
        may("READ", name=name),
        may("DESCRIBE", name=name),
    )


@pytest.mark.behaviour("B127")
def test_finding_the_offsets_of_a_group_needs_the_group() -> None:
    others = [may("READ"), may("DESCRIBE", "CLUSTER")]
    needs(10, 3, {"key": GROUP_NAME, "key_type": 0}, [may("DESCRIBE", "GROUP")], GROUP_DENIED, *others)


MEMBER = {"group_id": GROUP_NAME, "member_id": "m", "generation_id": 1}


@pytest.mark.behaviour("B172", "B125")
@pytest.mark.parametrize(
    ("api_key", "version", "fields"),
    [
        (11, 5, {"group_id": GROUP_NAME}),
        (12, 3, MEMBER),
        (13, 1, {"group_id": GROUP_NAME, "member_id": "m"}),
        (14, 3, MEMBER),
    ],
    ids=["join", "heartbeat", "leave", "sync"],
)
def test_requests_of_groups_need_read_and_are_refused_as_groups(
    api_key: int, version: int, fields: dict[str, Any]
) -> None:
    others = [may("DESCRIBE", "GROUP"), may("READ"), may("DELETE", "GROUP")]
    needs(api_key, version, fields, [may("READ", "GROUP")], GROUP_DENIED, *others)


@pytest.mark.behaviour("B156")
@pytest.mark.parametrize(
    ("acl", "passes"),
    [
        (may("DESCRIBE_CONFIGS", "GROUP"), True),
        (may("ALTER_CONFIGS", "GROUP"), True),
        (may("DESCRIBE", "GROUP"), False),
        (may("DESCRIBE_CONFIGS", "CLUSTER"), False),
    ],
)
def test_describing_configurations_of_a_group_needs_the_right_on_it(acl: AclBinding, passes: bool) -> None:
    fields = {"resources": [{"resource_type": 32, "resource_name": GROUP_NAME}]}
    assert refusals([acl], 32, 4, fields) == (set() if passes else {GROUP_DENIED})


@pytest.mark.behaviour("B157")
def test_a_heartbeat_of_the_new_groups_needs_read_on_the_group_and_describe_on_topics() -> None:
    fields = {"group_id": GROUP_NAME, "member_epoch": 0, "subscribed_topic_names": [ALPHA]}
    needed = [may("READ", "GROUP"), may("DESCRIBE")]
    needs(68, 0, fields, needed, GROUP_DENIED, may("DESCRIBE", "GROUP"), may("CREATE"))
    assert refusals(needed[:1], 68, 0, fields) == {TOPIC_DENIED}


@pytest.mark.behaviour("B109")
@pytest.mark.parametrize("version", [0, 1])
def test_describing_the_cluster_returns_nodes_cluster_and_controller(version: int) -> None:
    driver = connection()
    outcome, answer = ask(driver, 60, version)
    assert (answer["error_code"], answer["cluster_id"], answer["controller_id"]) == (
        0,
        "small-world",
        1,
    )
    assert [(broker["host"], broker["port"]) for broker in answer["brokers"]] == [("gateway", 9001)]
    assert len(outcome.forwarded) == 1


@pytest.mark.behaviour("B152")
def test_authorized_operations_of_the_cluster_are_exact_or_absent() -> None:
    fields = {"include_cluster_authorized_operations": True}
    for needed, bits in (
        ([], 0),
        ([may("ALTER", "CLUSTER")], 1 << AclOperation.ALTER | 1 << AclOperation.DESCRIBE),
        ([may("DESCRIBE", "CLUSTER")], 1 << AclOperation.DESCRIBE),
    ):
        assert ask(connection(*needed), 60, 0, **fields)[1]["cluster_authorized_operations"] == bits
    assert ask(connection(may("ALL", "CLUSTER")), 60, 0)[1]["cluster_authorized_operations"] == -(2**31)


ANY_FILTER = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
ANY_FILTER |= {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}


@pytest.mark.behaviour("B208", "B198", "B193")
@pytest.mark.parametrize(
    ("api_key", "version", "fields", "needed", "other"),
    [
        (29, 3, ANY_FILTER, "DESCRIBE", "CREATE"),
        (30, 3, {"creations": []}, "ALTER", "DESCRIBE"),
        (31, 3, {"filters": [ANY_FILTER]}, "ALTER", "DESCRIBE"),
        (50, 0, {"users": [{"name": "alice"}]}, "DESCRIBE", "CREATE"),
        (51, 0, {"deletions": [{"name": "alice", "mechanism": 1}], "upsertions": []}, "ALTER", "DESCRIBE"),
    ],
    ids=["DescribeAcls", "CreateAcls", "DeleteAcls", "DescribeScram", "AlterScram"],
)
def test_administration_needs_alter_or_describe_on_the_cluster(
    api_key: int, version: int, fields: dict[str, Any], needed: str, other: str
) -> None:
    assert ask(connection(may(needed, "CLUSTER")), api_key, version, **fields)[0].served is not None
    for acls in ([], [may(other, "CLUSTER")], [may("ALL"), may("ALL", "GROUP")]):
        outcome, answer = ask(connection(*acls), api_key, version, **fields)
        assert outcome.served is None
        assert codes(answer) == (set() if fields == {"creations": []} else {CLUSTER_DENIED})


@pytest.mark.behaviour("B153")
def test_every_operation_on_a_topic_includes_describing_it_and_its_configuration() -> None:
    driver = connection(may("ALL"))
    assert codes(ask(driver, 3, 4, topics=[{"name": ALPHA}])[1]) == set()
    resources = [{"resource_type": 2, "resource_name": name} for name in (ALPHA, BRAVO)]
    _, answer = ask(driver, 32, 4, resources=resources)
    assert {each["resource_name"]: each["error_code"] for each in answer["results"]} == {ALPHA: 0, BRAVO: 29}


@pytest.mark.behaviour("B154")
def test_an_acl_with_a_host_applies_to_requests_from_it() -> None:
    for api_key, fields, operation in ((0, produced(), "WRITE"), (1, fetched(), "READ")):
        everywhere = may(operation)
        here, elsewhere = (
            replace(everywhere, entry=replace(everywhere.entry, host=host)) for host in (HOST, "10.99.99.99")
        )
        version = 9 if api_key == 0 else 12
        assert refusals([here], api_key, version, fields) == set()
        assert refusals([elsewhere], api_key, version, fields) == {TOPIC_DENIED}


@pytest.mark.behaviour("B155")
def test_prefixed_acls_of_topics_and_groups_apply() -> None:
    prefixed = [may("READ", name="prefixed"), allow(ResourceType.GROUP, "prefixed", AclOperation.READ)]
    names: dict[str, set[int]] = {"prefixed-one": set(), "alpha-topic": {TOPIC_DENIED}}
    for name, refused in names.items():
        assert refusals(prefixed, 1, 12, fetched(topic=name)) == refused
    groups: dict[str, set[int]] = {"prefixed-group": set(), "prefix": {GROUP_DENIED}}
    for name, refused in groups.items():
        assert refusals(prefixed, 12, 3, MEMBER | {"group_id": name}) == refused


@pytest.mark.behaviour("B111")
@pytest.mark.parametrize(
    ("api_key", "version", "fields_of"),
    [
        (0, 9, lambda name: produced(name=name)),
        (1, 12, lambda name: fetched(topic=name)),
        (2, 7, lambda name: listed_offsets(name)),
        (3, 4, lambda name: {"topics": [{"name": name}], "allow_auto_topic_creation": False}),
        (20, 5, lambda name: {"topic_names": [name]}),
        (75, 0, lambda name: {"topics": [{"name": name}], "response_partition_limit": 9}),
    ],
    ids=["Produce", "Fetch", "ListOffsets", "Metadata", "DeleteTopics", "DescribeTopicPartitions"],
)
def test_a_missing_topic_is_denied_like_an_existing_one(api_key: int, version: int, fields_of: Any) -> None:
    answers = [
        ask(connection(), api_key, version, **fields_of(name))[1] for name in (HIDDEN, "hidden-nobody")
    ]
    assert [codes(answer) for answer in answers] == [{TOPIC_DENIED}] * 2
    assert str(answers[0]).replace(HIDDEN, "hidden-nobody") == str(answers[1])


def listed_offsets(name: str) -> dict[str, Any]:
    partitions = [{"partition_index": 0, "timestamp": -1}]
    return {"replica_id": -1, "topics": [{"name": name, "partitions": partitions}]}
