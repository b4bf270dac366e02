"""What administrators ask for from day to day: records, groups, partitions, places."""

from dataclasses import replace
from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Step, Story, one, step
from tests.conformance.equality.cases_admin import (
    ADMINS,
    look,
    new,
)
from tests.conformance.equality.world import ALL, EVERYBODY, FEW, MIXED, NOBODY, SOME, SUPER, records

DELETE_RECORDS, EPOCHS = ApiKey.DELETE_RECORDS, ApiKey.OFFSET_FOR_LEADER_EPOCH
DELETE_GROUPS, DELETE_OFFSETS = ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE
PARTITIONS = ApiKey.CREATE_PARTITIONS
USERS = (SUPER, ALL, SOME, MIXED, NOBODY)
PAY, STRANGE = "pay-{run}", "x-{run}"


def made(*names: str) -> tuple[Step, ...]:
    """Return the steps that make topics of one partition for a story."""
    created = step(ApiKey.CREATE_TOPICS, topics=new(*names), timeout=10_000, user=SUPER)
    return replace(created, version=5), replace(look(*names), good=True)


def partitions_of(names: tuple[str, ...], *indexes: int, **fields: Any) -> list[dict[str, Any]]:
    """Return partitions of topics with more fields."""
    return [
        {"name": name, "partitions": [{"partition_index": index} | fields for index in indexes]}
        for name in names
    ]


THERE_AND_NOT = ("orders", "pay-secret", "hidden", "pay-missing", "gone")
ENDS = Step(
    api=ApiKey.LIST_OFFSETS,
    fields={
        "replica_id": -1,
        "topics": [
            {"name": name, "partitions": [{"partition_index": 0, "timestamp": -2}]} for name in (PAY, STRANGE)
        ],
    },
    user=SUPER,
    version=7,
    settles=True,
    good=True,
)
RECORDS = (
    one(
        "of some topics",
        DELETE_RECORDS,
        EVERYBODY,
        topics=partitions_of(THERE_AND_NOT, 0, 17, offset=0),
        timeout=5000,
    ),
    one("to a topic twice", DELETE_RECORDS, FEW, topics=partitions_of(("orders", "hidden") * 2, 0, offset=0)),
    Story(
        title="some that are there",
        steps=(
            Step(api=DELETE_RECORDS, fields={"topics": [], "timeout": 1000}, user=SUPER),
            *made(PAY, STRANGE),
            ENDS,
            Step(
                api=ApiKey.PRODUCE,
                fields={
                    "acks": -1,
                    "timeout": 5000,
                    "topic_data": [
                        {"name": name, "partition_data": [{"index": 0, "records": records(b"a", b"b", b"c")}]}
                        for name in (PAY, STRANGE)
                    ],
                },
                user=SUPER,
                version=9,
            ),
            step(DELETE_RECORDS, topics=partitions_of((PAY, STRANGE), 0, offset=1), timeout=5000),
            ENDS,
        ),
        users=USERS,
    ),
)


def epochs(title: str, users: tuple[str, ...], *names: str, replica_id: int = -1) -> Story:
    """Return a story of one OffsetForLeaderEpoch."""
    wanted = [{"partition": index, "current_leader_epoch": -1, "leader_epoch": 0} for index in (0, 17)]
    topics = [{"topic": name, "partitions": wanted} for name in names]
    return one(title, EPOCHS, users, replica_id=replica_id, topics=topics)


LEADER_EPOCHS = (
    epochs("of some topics", EVERYBODY, *THERE_AND_NOT),
    epochs("of a topic twice", FEW, "orders", "hidden", "orders"),
    epochs("as a replica", (NOBODY, SOME, ALL), "orders", "hidden", replica_id=7),
)


def committed(*groups: str) -> tuple[Step, ...]:
    """Return the steps that make groups with offsets for a story."""
    wanted = [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}]
    topics = [{"name": name, "partitions": wanted} for name in ("orders", "hidden")]
    member = {"generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    return tuple(
        Step(api=ApiKey.OFFSET_COMMIT, fields={"group_id": group} | member, user=SUPER, version=8)
        for group in groups
    )


def offsets_of(*groups: str) -> Step:
    """Return the super user's look at the offsets of groups."""
    asked = [{"group_id": group, "topics": None} for group in groups]
    return Step(api=ApiKey.OFFSET_FETCH, fields={"groups": asked}, user=SUPER, version=8, settles=True)


OPEN, SHUT = "g-{run}", "x-{run}"
UNUSED = [{"name": name, "partitions": [{"partition_index": 0}]} for name in THERE_AND_NOT]
GROUPS = (
    one("that are not there", DELETE_GROUPS, EVERYBODY, groups_names=["g-none", "x-none", "g-closed-none"]),
    one("one twice", DELETE_GROUPS, FEW, groups_names=["g-none", "x-none", "g-none", "x-none"]),
    one("a nameless one", DELETE_GROUPS, FEW, groups_names=[""]),
    Story(
        title="some that are there",
        steps=(
            Step(api=DELETE_GROUPS, fields={"groups_names": []}),
            *committed(OPEN, SHUT),
            step(DELETE_GROUPS, groups_names=[OPEN, SHUT]),
            offsets_of(OPEN, SHUT),
        ),
        users=USERS,
    ),
    one("of a group that is not there", DELETE_OFFSETS, EVERYBODY, group_id="g-none", topics=UNUSED),
    one("of a strange group", DELETE_OFFSETS, FEW, group_id="x-none", topics=UNUSED),
    one("to a topic twice", DELETE_OFFSETS, FEW, group_id="g-none", topics=UNUSED[:3] * 2),
    one("of topics that are denied", DELETE_OFFSETS, (SOME,), group_id="g-none", topics=UNUSED[1:3]),
    one("of nothing", DELETE_OFFSETS, FEW, group_id="g-none", topics=[]),
    Story(
        title="some that are there",
        steps=(
            Step(api=DELETE_OFFSETS, fields={"group_id": OPEN, "topics": []}),
            *committed(OPEN),
            step(DELETE_OFFSETS, group_id=OPEN, topics=UNUSED[1:3]),
            step(DELETE_OFFSETS, group_id=OPEN, topics=UNUSED),
            offsets_of(OPEN),
        ),
        users=USERS,
    ),
)


def enlarged(title: str, users: tuple[str, ...], *names: str, count: int = 2, **fields: Any) -> Story:
    """Return a story of one CreatePartitions, and of what there is afterwards."""
    topics = [{"name": name, "count": count, "assignments": None} for name in names]
    return Story(
        title=title,
        steps=(
            Step(api=PARTITIONS, fields={"topics": [], "timeout": 5000}, user=SUPER),
            *made(PAY, STRANGE),
            step(PARTITIONS, topics=topics, timeout=5000, **fields),
            look(PAY, STRANGE),
        ),
        users=users,
    )


ENLARGEMENTS = (
    enlarged("some topics", USERS, PAY, STRANGE, "pay-missing", "gone"),
    enlarged("topics twice", USERS, PAY, STRANGE, PAY, "gone", "gone"),
    enlarged("only to see", (SUPER, SOME), PAY, STRANGE, validate_only=True),
    enlarged("to fewer", (SUPER, SOME), PAY, STRANGE, count=0),
)


def elected(title: str, *topics: tuple[str, list[int]], election: int = 0) -> Story:
    """Return a story of one ElectLeaders."""
    asked = [{"topic": name, "partitions": indexes} for name, indexes in topics]
    given = asked if topics else None
    fields = {"election_type": election, "topic_partitions": given, "timeout": 5000}
    return one(title, ApiKey.ELECT_LEADERS, ADMINS, **fields)


def reassigned(title: str, *topics: tuple[str, int, list[int] | None]) -> Story:
    """Return a story of one AlterPartitionReassignments."""
    asked = [
        {"name": name, "partitions": [{"partition_index": index, "replicas": replicas}]}
        for name, index, replicas in topics
    ]
    return one(title, ApiKey.ALTER_PARTITION_REASSIGNMENTS, ADMINS, topics=asked, timeout=5000)


def listing(title: str, *topics: str) -> Story:
    """Return a story of one ListPartitionReassignments."""
    asked = [{"name": name, "partition_indexes": [0, 17]} for name in topics] if topics else None
    return one(title, ApiKey.LIST_PARTITION_REASSIGNMENTS, ADMINS, topics=asked, timeout=5000)


def logs(title: str, *topics: str) -> Story:
    """Return a story of one DescribeLogDirs."""
    asked = [{"topic": name, "partitions": [0, 17]} for name in topics]
    return one(title, ApiKey.DESCRIBE_LOG_DIRS, ADMINS, topics=asked)


def quorum(title: str, topic: str, index: int) -> Story:
    """Return a story of one DescribeQuorum."""
    asked = [{"topic_name": topic, "partitions": [{"partition_index": index}]}]
    return one(title, ApiKey.DESCRIBE_QUORUM, ADMINS, topics=asked)


PLACES = (
    elected("of some partitions", ("orders", [0, 17]), ("gone", [0])),
    elected("of an unclean kind", ("orders", [1]), election=1),
    elected("of all partitions"),
    reassigned("to the same broker", ("orders", 0, [1])),
    reassigned("to brokers that are not there", ("orders", 0, [1, 99]), ("gone", 3, [1])),
    reassigned("cancelled", ("orders", 0, None), ("hidden", 17, None)),
    reassigned("of nothing"),
    listing("of all"),
    listing("of some", "orders", "gone"),
    logs("of some topics", "orders", "hidden", "gone"),
    logs("of none"),
    one(
        "to a place that is not there",
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ADMINS,
        dirs=[
            {"path": "/nowhere", "topics": [{"name": "orders", "partitions": [0, 1]}]},
            {"path": "/elsewhere", "topics": [{"name": "hidden", "partitions": [0]}]},
        ],
    ),
    one("that is not there", ApiKey.UNREGISTER_BROKER, ADMINS, broker_id=99),
    one("that is not there", ApiKey.UNREGISTER_CONTROLLER, ADMINS, controller_id=99),
    quorum("of the metadata", "__cluster_metadata", 0),
    quorum("of something else", "orders", 0),
)

LOOKING = RECORDS[:2] + PLACES
CHANGING = RECORDS[2:] + GROUPS + ENLARGEMENTS
