"""Every API in every version: denied with its own error without ACLs, forwarded with exactly the needed ones.

Applies the checks of Kafka's `AuthorizerIntegrationTest` to the whole table of requests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kustos.acl import AclBinding, ResourceType
from kustos.acl import AclOperation as Op
from kustos.protocol import TABLE
from kustos.wire import api_name, request_codec
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import message_of
from testkit.protocol.driver import EVERY_VERSION, Outcome
from testkit.protocol.random_requests import ALL_ALLOWED, allow, batch, frame_of
from tests.unit.protocol.protocol_requests import (
    ALPHA,
    GROUP_NAME,
    TRANSACTION,
    answer_of,
    codes,
    connection,
    may,
)

BRAVO, FRESH = "bravo-topic", "fresh-topic"
TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTION_DENIED, TOKEN_DENIED = DENIED = (29, 30, 31, 53, 65)
ALPHA_ID = connection().model.topics[ALPHA]
GROUP, CLUSTER, TRANSACTIONAL = "GROUP", "CLUSTER", "TRANSACTIONAL_ID"
EVERY_VERSION_OF_IT = (0, 99)


@dataclass(frozen=True)
class Case:
    """A request: its fields in all versions, the ACLs that it needs, and the error without any of them."""

    fields: Mapping[str, Any]
    needs: Sequence[AclBinding]
    code: int
    versions: tuple[int, int] = EVERY_VERSION_OF_IT
    after: ApiKey | None = None
    """The API whose case comes before it on the connection, in the same version."""


ONE_TOPIC = {"name": ALPHA, "topic": ALPHA, "topic_id": ALPHA_ID, "topic_name": ALPHA}
MEMBER = {"group_id": GROUP_NAME, "member_id": "m", "generation_id": 1, "generation_id_or_member_epoch": 1}
SHARE_MEMBER = {"group_id": GROUP_NAME, "member_id": "m" * 36}
SEEN_IN_GROUP = [may("DESCRIBE"), may("DESCRIBE", name=BRAVO)]
"""What the members of the group have."""


def topics(**partition: Any) -> list[dict[str, Any]]:
    """Return one topic, and one partition of it, by their names in all requests."""
    numbered = {"partition_index": 0, "partition": 0} | partition
    return [ONE_TOPIC | {"partitions": [numbered], "partition_indexes": [0]}]


def of_cluster(operation: str, /, **fields: Any) -> Case:
    """Return a request that the cluster's own ACL lets pass."""
    return Case(fields, [may(operation, CLUSTER)], CLUSTER_DENIED)


def of_group(operation: str, /, **fields: Any) -> Case:
    """Return a request that the group's ACL lets pass."""
    return Case(fields, [may(operation, GROUP)], GROUP_DENIED)


def of_topic(operation: str, /, **fields: Any) -> Case:
    """Return a request that the topic's ACL lets pass."""
    return Case(fields, [may(operation)], TOPIC_DENIED)


COMMITTED = topics(committed_offset=1)
NUMBERS = [ONE_TOPIC | {"partitions": [0]}]
FILTER = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
FILTER |= {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
CREATED = {"resource_type": 2, "resource_name": ALPHA, "resource_pattern_type": 3, "principal": "User:bob"}
CREATED |= {"host": "*", "operation": 3, "permission_type": 3}
SETTING = {"name": "retention.ms", "value": "1", "config_operation": 0}
RESOURCE = {"resource_type": 2, "resource_name": ALPHA, "configs": [SETTING], "configuration_keys": None}
TAKEN = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
OFFSETS = {"group_id": GROUP_NAME, "topics": topics()}
MARKER = {"producer_id": 1, "topics": [ONE_TOPIC | {"partition_indexes": [0]}]}
STREAMS = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [ALPHA]}]}

CASES: dict[ApiKey, tuple[Case, ...]] = {
    ApiKey.PRODUCE: (
        of_topic(
            "WRITE",
            acks=-1,
            transactional_id=None,
            topic_data=[ONE_TOPIC | {"partition_data": [{"index": 0, "records": batch()}]}],
        ),
    ),
    ApiKey.FETCH: (of_topic("READ", topics=topics(), session_epoch=-1),),
    ApiKey.LIST_OFFSETS: (of_topic("DESCRIBE", topics=topics(timestamp=-1)),),
    ApiKey.METADATA: (of_topic("DESCRIBE", topics=[{"name": ALPHA}]),),
    ApiKey.OFFSET_COMMIT: (
        Case(MEMBER | {"topics": COMMITTED}, [may("READ", GROUP), may("READ")], GROUP_DENIED),
    ),
    ApiKey.OFFSET_FETCH: (
        Case(OFFSETS | {"groups": [OFFSETS]}, [may("DESCRIBE", GROUP), may("DESCRIBE")], GROUP_DENIED),
    ),
    ApiKey.FIND_COORDINATOR: (
        of_group("DESCRIBE", key=GROUP_NAME, key_type=0, coordinator_keys=[GROUP_NAME]),
        Case(
            {"key": TRANSACTION, "key_type": 1, "coordinator_keys": [TRANSACTION]},
            [may("DESCRIBE", TRANSACTIONAL)],
            TRANSACTION_DENIED,
            (1, 99),
        ),
    ),
    ApiKey.JOIN_GROUP: (of_group("READ", **MEMBER),),
    ApiKey.HEARTBEAT: (of_group("READ", **MEMBER),),
    ApiKey.LEAVE_GROUP: (of_group("READ", **MEMBER, members=[{"member_id": "m"}]),),
    ApiKey.SYNC_GROUP: (of_group("READ", **MEMBER),),
    ApiKey.DESCRIBE_GROUPS: (Case({"groups": [GROUP_NAME]}, [may("DESCRIBE", GROUP)], GROUP_DENIED),),
    ApiKey.CREATE_TOPICS: (
        Case(
            {"topics": [{"name": FRESH, "num_partitions": 1, "replication_factor": 1}]},
            [may("CREATE", name=FRESH)],
            TOPIC_DENIED,
        ),
    ),
    ApiKey.DELETE_TOPICS: (of_topic("DELETE", topic_names=[ALPHA], topics=[{"name": ALPHA}]),),
    ApiKey.DELETE_RECORDS: (of_topic("DELETE", topics=topics(offset=1)),),
    ApiKey.INIT_PRODUCER_ID: (
        Case({"transactional_id": TRANSACTION}, [may("WRITE", TRANSACTIONAL)], TRANSACTION_DENIED),
        Case({"transactional_id": None}, [may("IDEMPOTENT_WRITE", CLUSTER)], CLUSTER_DENIED),
        Case({"transactional_id": None}, [may("WRITE")], CLUSTER_DENIED),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (of_topic("DESCRIBE", topics=topics()),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Case(
            {"v3_and_below_transactional_id": TRANSACTION, "v3_and_below_topics": NUMBERS},
            [may("WRITE", TRANSACTIONAL), may("WRITE")],
            TRANSACTION_DENIED,
            (0, 3),
        ),
        Case(
            {"transactions": [{"transactional_id": TRANSACTION, "topics": NUMBERS}]},
            [may("CLUSTER_ACTION", CLUSTER)],
            CLUSTER_DENIED,
            (4, 99),
        ),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (
        Case(
            {"transactional_id": TRANSACTION, "group_id": GROUP_NAME},
            [may("WRITE", TRANSACTIONAL), may("READ", GROUP)],
            TRANSACTION_DENIED,
        ),
    ),
    ApiKey.END_TXN: (
        Case({"transactional_id": TRANSACTION}, [may("WRITE", TRANSACTIONAL)], TRANSACTION_DENIED),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        of_cluster("ALTER", markers=[MARKER]),
        of_cluster("CLUSTER_ACTION", markers=[MARKER]),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        Case(
            MEMBER | {"transactional_id": TRANSACTION, "topics": COMMITTED},
            [may("WRITE", TRANSACTIONAL), may("READ", GROUP), may("READ")],
            TRANSACTION_DENIED,
        ),
    ),
    ApiKey.DESCRIBE_ACLS: (of_cluster("DESCRIBE", **FILTER),),
    ApiKey.CREATE_ACLS: (of_cluster("ALTER", creations=[CREATED]),),
    ApiKey.DELETE_ACLS: (of_cluster("ALTER", filters=[FILTER]),),
    ApiKey.DESCRIBE_CONFIGS: (of_topic("DESCRIBE_CONFIGS", resources=[RESOURCE]),),
    ApiKey.ALTER_CONFIGS: (of_topic("ALTER_CONFIGS", resources=[RESOURCE]),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (of_cluster("ALTER", dirs=[{"path": "/", "topics": NUMBERS}]),),
    ApiKey.DESCRIBE_LOG_DIRS: (Case({"topics": None}, [may("DESCRIBE", CLUSTER)], CLUSTER_DENIED, (3, 99)),),
    ApiKey.CREATE_PARTITIONS: (of_topic("ALTER", topics=[{"name": ALPHA, "count": 9}]),),
    ApiKey.CREATE_DELEGATION_TOKEN: (
        Case(
            {"owner_principal_type": "User", "owner_principal_name": "bob", "renewers": []},
            [allow(ResourceType.USER, "User:bob", Op.CREATE_TOKENS)],
            TOKEN_DENIED,
            (3, 99),
        ),
    ),
    ApiKey.DELETE_GROUPS: (of_group("DELETE", groups_names=[GROUP_NAME]),),
    ApiKey.ELECT_LEADERS: (of_cluster("ALTER", topic_partitions=NUMBERS),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (of_topic("ALTER_CONFIGS", resources=[RESOURCE]),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (of_cluster("ALTER", topics=topics()),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (of_cluster("DESCRIBE", topics=None),),
    ApiKey.OFFSET_DELETE: (
        Case({"group_id": GROUP_NAME, "topics": topics()}, [may("DELETE", GROUP), may("READ")], GROUP_DENIED),
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (of_cluster("DESCRIBE_CONFIGS", components=[]),),
    ApiKey.ALTER_CLIENT_QUOTAS: (of_cluster("ALTER_CONFIGS", entries=[{"entity": [], "ops": []}]),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (of_cluster("DESCRIBE", users=[{"name": "alice"}]),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        of_cluster("ALTER", deletions=[{"name": "alice", "mechanism": 1}], upsertions=[]),
    ),
    ApiKey.DESCRIBE_QUORUM: (of_cluster("DESCRIBE", topics=[]),),
    ApiKey.UPDATE_FEATURES: (of_cluster("ALTER", feature_updates=[{"feature": "share.version"}]),),
    ApiKey.DESCRIBE_PRODUCERS: (of_topic("READ", topics=topics()),),
    ApiKey.UNREGISTER_BROKER: (of_cluster("ALTER", broker_id=5),),
    ApiKey.UNREGISTER_CONTROLLER: (of_cluster("ALTER", controller_id=5),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Case({"transactional_ids": [TRANSACTION]}, [may("DESCRIBE", TRANSACTIONAL)], TRANSACTION_DENIED),
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (
        Case(
            {"group_id": GROUP_NAME, "member_id": "m" * 22, "member_epoch": 0}
            | {"subscribed_topic_names": [ALPHA]},
            [may("READ", GROUP), may("DESCRIBE")],
            GROUP_DENIED,
        ),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (
        Case({"group_ids": [GROUP_NAME]}, [may("DESCRIBE", GROUP), *SEEN_IN_GROUP], GROUP_DENIED),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: (of_cluster("DESCRIBE_CONFIGS", resource_types=[]),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        of_topic("DESCRIBE", topics=[{"name": ALPHA}], response_partition_limit=9),
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: (
        Case(
            SHARE_MEMBER | {"member_epoch": 0, "subscribed_topic_names": [ALPHA]},
            [may("READ", GROUP), may("DESCRIBE")],
            GROUP_DENIED,
        ),
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: (
        Case({"group_ids": [GROUP_NAME]}, [may("DESCRIBE", GROUP), *SEEN_IN_GROUP], GROUP_DENIED),
    ),
    ApiKey.SHARE_FETCH: (
        Case(
            SHARE_MEMBER | {"share_session_epoch": 0, "topics": topics()},
            [may("READ", GROUP), may("READ")],
            GROUP_DENIED,
        ),
    ),
    ApiKey.SHARE_ACKNOWLEDGE: (
        Case(
            SHARE_MEMBER | {"share_session_epoch": 1, "topics": topics(acknowledgement_batches=[TAKEN])},
            [may("READ", GROUP), may("READ")],
            GROUP_DENIED,
            after=ApiKey.SHARE_FETCH,
        ),
    ),
    ApiKey.ADD_RAFT_VOTER: (of_cluster("ALTER", cluster_id=None, listeners=[]),),
    ApiKey.REMOVE_RAFT_VOTER: (of_cluster("ALTER", cluster_id=None),),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (
        Case(
            {"group_id": GROUP_NAME, "member_id": "m", "member_epoch": 0, "topology": STREAMS},
            [may("READ", GROUP), may("DESCRIBE")],
            GROUP_DENIED,
        ),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: (
        Case({"group_ids": [GROUP_NAME]}, [may("DESCRIBE", GROUP), *SEEN_IN_GROUP], GROUP_DENIED),
    ),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: (
        Case(
            {"group_id": GROUP_NAME, "member_id": "m", "topology_description": {"subtopologies": []}},
            [may("READ", GROUP)],
            GROUP_DENIED,
        ),
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        Case(
            {"groups": [{"group_id": GROUP_NAME, "topics": NUMBERS}]},
            [may("DESCRIBE", GROUP), may("DESCRIBE")],
            GROUP_DENIED,
        ),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (
        Case(
            {"group_id": GROUP_NAME, "topics": topics(start_offset=5)},
            [may("READ", GROUP), may("READ")],
            GROUP_DENIED,
        ),
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (
        Case(
            {"group_id": GROUP_NAME, "topics": [ONE_TOPIC]}, [may("DELETE", GROUP), may("READ")], GROUP_DENIED
        ),
    ),
}

WITHOUT_ERROR: dict[ApiKey, str] = {
    ApiKey.LIST_GROUPS: "lists what may be described",
    ApiKey.LIST_TRANSACTIONS: "lists what may be described",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "lists one's own tokens and those that may be described",
    ApiKey.RENEW_DELEGATION_TOKEN: "for owners and renewers, whatever the ACLs say",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "for owners and renewers, whatever the ACLs say",
    ApiKey.DESCRIBE_CLUSTER: "answered to every client",
    ApiKey.API_VERSIONS: "answered to every client",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "answered to every client",
    ApiKey.PUSH_TELEMETRY: "answered to every client",
    ApiKey.SASL_HANDSHAKE: "refused to every client after a login",
    ApiKey.SASL_AUTHENTICATE: "refused to every client after a login",
}
"""The APIs whose answer has no error for a lack of ACLs, or that no ACL lets pass."""

OTHERS = frozenset({(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2)}) | {
    (ApiKey.CREATE_DELEGATION_TOKEN, version) for version in (1, 2)
}
"""Versions of the other APIs that have no field for it: log directories without an error of the whole answer,
tokens for oneself alone."""

EVERY_CASE = [
    pytest.param(api_key, version, case, id=f"{api_name(api_key)}-v{version}-{number}")
    for api_key, version in EVERY_VERSION
    for number, case in enumerate(CASES.get(ApiKey(api_key), ()))
    if case.versions[0] <= version <= case.versions[1]
]


def frame_in(api_key: int, version: int, case: Case) -> bytes:
    """Return the frame of a case in a version: with the fields that the version has."""
    root = request_codec(api_key, version).root
    return frame_of(api_key, version, message_of(root, case.fields, lambda value: value))


def refusals(acls: Sequence[AclBinding], api_key: int, version: int, case: Case) -> set[int]:
    """Return the errors of authorization in the answer."""
    driver = connection(*acls)
    if case.after is not None:
        driver.run(frame_in(case.after, version, CASES[case.after][0]))
    outcome: Outcome = driver.run(frame_in(api_key, version, case))
    assert outcome.closed is None, outcome.closed
    assert outcome.response is not None
    return codes(answer_of(outcome, api_key, version)) & set(DENIED)


@pytest.mark.behaviour("B110")
@pytest.mark.parametrize(("api_key", "version", "case"), EVERY_CASE)
def test_a_request_fails_with_its_own_error_and_passes_with_exactly_the_needed_acls(
    api_key: int, version: int, case: Case
) -> None:
    assert refusals([], api_key, version, case) == {case.code}
    assert refusals(case.needs, api_key, version, case) == set()
    assert refusals(ALL_ALLOWED, api_key, version, case) == set()
    for missing in case.needs:
        others = [acl for acl in case.needs if acl != missing]
        assert refusals(others, api_key, version, case), missing
        if missing.entry.operation is not Op.DESCRIBE:
            seen = replace(missing, entry=replace(missing.entry, operation=Op.DESCRIBE))
            assert refusals([*others, seen], api_key, version, case), f"DESCRIBE stands in for {missing}"


@pytest.mark.behaviour("B110")
def test_every_api_and_version_is_covered() -> None:
    covered = {(api_key, version) for api_key, version, _ in (case.values for case in EVERY_CASE)}
    assert CASES.keys() | WITHOUT_ERROR.keys() == TABLE.keys()
    assert not CASES.keys() & WITHOUT_ERROR.keys()
    left_out = {(key, version) for key, version in EVERY_VERSION if (key, version) not in covered}
    assert {pair for pair in left_out if pair[0] not in WITHOUT_ERROR} == OTHERS
