"""What administrators ask for from day to day: records, groups, partitions, settings, quotas, places."""

from dataclasses import replace
from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Step, Story, one, step
from tests.conformance.equality.cases_admin import (
    A_BROKER,
    A_GROUP,
    A_LOGGER,
    A_TOPIC,
    ADMINS,
    SOME_METRICS,
    look,
    new,
)
from tests.conformance.equality.world import ALL, CLUSTER, EVERYBODY, FEW, MIXED, NOBODY, SOME, SUPER, records

DELETE_RECORDS, EPOCHS = ApiKey.DELETE_RECORDS, ApiKey.OFFSET_FOR_LEADER_EPOCH
DELETE_GROUPS, DELETE_OFFSETS = ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE
PARTITIONS, QUOTAS = ApiKey.CREATE_PARTITIONS, ApiKey.ALTER_CLIENT_QUOTAS
ALTER, ALTER_ALL = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS
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

SET, UNSET, APPENDED = 0, 1, 2


def setting(name: str, value: str | None, operation: int = SET) -> dict[str, Any]:
    """Return a change of a setting."""
    return {"name": name, "value": value, "config_operation": operation}


RETENTION = setting("retention.ms", "3600000")
Resource = tuple[int, str, list[dict[str, Any]]]


def changes_of(api: ApiKey, resources: tuple[Resource, ...]) -> list[dict[str, Any]]:
    """Return the changes as an API takes them: the older one replaces all settings of a resource."""
    known = ("name", "value") if api == ALTER_ALL else ("name", "value", "config_operation")
    return [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{field: each[field] for field in known} for each in configs],
        }
        for kind, name, configs in resources
    ]


def altered(
    title: str,
    users: tuple[str, ...],
    *resources: Resource,
    apis: tuple[ApiKey, ...] = (ALTER, ALTER_ALL),
    **fields: Any,
) -> tuple[Story, ...]:
    """Return a story of settings that are altered by each of the two APIs, and of how they are then."""
    seen = {(kind, name) for kind, name, _ in resources if kind in {A_TOPIC, A_GROUP, SOME_METRICS}}
    keys = ["retention.ms", "cleanup.policy", "consumer.session.timeout.ms", "interval.ms"]
    shown = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        for kind, name in sorted(seen)
    ]
    topics = tuple(name for name in (PAY, STRANGE) if (A_TOPIC, name) in seen)
    there = Step(
        api=ApiKey.DESCRIBE_CONFIGS, fields={"resources": shown}, user=SUPER, version=4, settles=True
    )
    return tuple(
        Story(
            title=title,
            steps=(
                Step(api=api, fields={"resources": []}),
                *(made(*topics) if topics else ()),
                step(api, resources=changes_of(api, resources), **fields),
                *([there] if shown else ()),
            ),
            users=users,
        )
        for api in apis
    )


THREADS = [setting("background.threads", "11")]
ALTERATIONS = (
    *altered("of topics", USERS, (A_TOPIC, PAY, [RETENTION]), (A_TOPIC, STRANGE, [RETENTION])),
    *altered("of missing topics", FEW, (A_TOPIC, "pay-missing", [RETENTION]), (A_TOPIC, "gone", [RETENTION])),
    *altered("of a nameless topic", FEW, (A_TOPIC, "", [RETENTION])),
    *altered(
        "that are wrong", FEW, (A_TOPIC, PAY, [setting("retention.ms", "long")]), (A_TOPIC, STRANGE, [])
    ),
    *altered("only to see", FEW, (A_TOPIC, PAY, [RETENTION]), validate_only=True),
    *altered(
        "more and less",
        (SUPER, SOME),
        (
            A_TOPIC,
            PAY,
            [setting("cleanup.policy", "compact", APPENDED), setting("retention.ms", None, UNSET)],
        ),
    ),
    *altered(
        "of groups and metrics",
        (*USERS, CLUSTER),
        (A_GROUP, OPEN, [setting("consumer.session.timeout.ms", "46000")]),
        (A_GROUP, SHUT, [setting("consumer.session.timeout.ms", "46000")]),
        (SOME_METRICS, "m-{run}", [setting("interval.ms", "100000")]),
    ),
    *altered(
        "of resources twice",
        FEW,
        (A_TOPIC, "orders", [RETENTION]),
        (A_TOPIC, "hidden", [RETENTION]),
        (A_TOPIC, "orders", []),
        apis=(ALTER,),
    ),
    *altered("of a setting twice", FEW, (A_TOPIC, "hidden", [RETENTION, RETENTION])),
    *altered("to nothing", FEW, (A_TOPIC, "hidden", [setting("retention.ms", None), setting("a", None)])),
    *altered(
        "of unknown types",
        FEW,
        (77, "x", []),
        (0, "x", []),
        (1, "x", []),
        (A_TOPIC, "hidden", []),
        apis=(ALTER,),
    ),
    *altered("of a broker", ADMINS, (A_BROKER, "1", THREADS), (A_BROKER, "", THREADS)),
    *altered("of a broker only to see", ADMINS, (A_BROKER, "1", THREADS), validate_only=True),
    *altered("of a broker without a number", ADMINS, (A_BROKER, "one", THREADS)),
    *altered("of another broker", ADMINS, (A_BROKER, "17", THREADS)),
    *altered(
        "of a broker that are wrong",
        ADMINS,
        (A_BROKER, "1", [setting("background.threads", "many")]),
        (A_BROKER, "", [setting("broker.id", "5")]),
    ),
    *altered(
        "of a broker for all of its clients",
        ADMINS,
        (A_BROKER, "1", [setting("super.users", "User:nobody")]),
        (A_BROKER, "", [setting("listener.security.protocol.map", "X:PLAINTEXT")]),
        validate_only=True,
    ),
    *altered("of a logger", ADMINS, (A_LOGGER, "1", [setting("kafka.server.KafkaConfig", "WARN")])),
    *altered(
        "of loggers that are wrong",
        ADMINS,
        (A_LOGGER, "17", [setting("kafka.server.KafkaConfig", "WARN")]),
        (A_LOGGER, "1", [setting("kafka.server.KafkaConfig", "LOUD")]),
    ),
)


def quota(title: str, users: tuple[str, ...], *entries: tuple[str, str, str], **fields: Any) -> Story:
    """Return a story of one AlterClientQuotas, and of what there is afterwards."""
    asked = [
        {
            "entity": [{"entity_type": kind, "entity_name": name}],
            "ops": [{"key": key, "value": 1e9, "remove": False}],
        }
        for kind, name, key in entries
    ]
    mine = [{"entity_type": "user", "match_type": 0, "match": "u-{run}"}]
    there = step(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=mine, user=SUPER, settles=True)
    return Story(title=title, steps=(step(QUOTAS, entries=asked, **fields), there), users=users)


QUOTA_STORIES = (
    quota("of a user", ADMINS, ("user", "u-{run}", "consumer_byte_rate")),
    quota("only to see", ADMINS, ("user", "u-{run}", "consumer_byte_rate"), validate_only=True),
    quota("that are wrong", ADMINS, ("planet", "mars", "consumer_byte_rate"), ("user", "u-{run}", "speed")),
    quota("of nobody", ADMINS),
)


def resources_listed(title: str, users: tuple[str, ...], *kinds: int) -> Story:
    """Return a story of one ListConfigResources; version 0 asks for metrics only."""
    asked = Step(api=ApiKey.LIST_CONFIG_RESOURCES, fields={"resource_types": list(kinds)}, settles=True)
    return Story(title=title, steps=(asked,), users=users)


LISTED = (
    resources_listed("of all types", EVERYBODY),
    resources_listed("of one type", (SUPER, CLUSTER), A_TOPIC),
    resources_listed("of an unknown type", (SUPER, CLUSTER, NOBODY), 77),
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
    quorum("of the metadata", "__cluster_metadata", 0),
    quorum("of something else", "orders", 0),
)

ADDRESSES = [
    "listeners",
    "advertised.listeners",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "num.partitions",
]
SHOWN = (
    one(
        "of a broker's addresses",
        ApiKey.DESCRIBE_CONFIGS,
        ADMINS,
        resources=[{"resource_type": A_BROKER, "resource_name": "1", "configuration_keys": ADDRESSES}],
        include_synonyms=True,
    ),
)

LOOKING = RECORDS[:2] + PLACES + SHOWN
CHANGING = RECORDS[2:] + GROUPS + ENLARGEMENTS + ALTERATIONS + QUOTA_STORIES + LISTED
