"""Topics made and removed, configurations, the cluster, ACLs, SCRAM users, and what is offered."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Step, Story, TopicId, one, step
from tests.conformance.equality.world import (
    ALL,
    CLUSTER,
    CREATOR,
    ELSEWHERE,
    EVERY_ACL,
    EVERYBODY,
    FEW,
    MIXED,
    NOBODY,
    SOME,
    SUPER,
    THREE,
)

CREATE, DELETE, METADATA = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.METADATA
CONFIGS, THE_CLUSTER = ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_CLUSTER


def new(*names: str, **fields: Any) -> list[dict[str, Any]]:
    """Return the topics to make."""
    given = {"num_partitions": 1, "replication_factor": 1} | fields
    return [{"name": name} | given for name in names]


def look(*names: str) -> Step:
    """Return the super user's look at what there is now."""
    topics = [{"name": name} for name in names]
    fields = {"topics": topics, "allow_auto_topic_creation": False}
    return Step(api=METADATA, fields=fields, user=SUPER, settles=True, version=10)


def create(
    title: str, users: tuple[str, ...], topics: list[dict[str, Any]], *names: str, **fields: Any
) -> Story:
    """Return a story of one CreateTopics, and of what there is afterwards."""
    asked = step(CREATE, topics=topics, timeout=10_000, **fields)
    return Story(title=title, steps=(asked, look(*names)), users=users)


MAKERS = (SUPER, NOBODY, SOME, CREATOR, CLUSTER, MIXED)
CREATIONS = (
    create("one", MAKERS, new("made-{run}"), "made-{run}"),
    create(
        "shown, hidden and denied ones",
        MAKERS,
        new("made-{run}", "made-shown-{run}", "pay-{run}", "x-{run}"),
        "made-{run}",
        "made-shown-{run}",
        "pay-{run}",
        "x-{run}",
    ),
    create("only to see", MAKERS, new("made-shown-{run}", "x-{run}"), "made-shown-{run}", validate_only=True),
    create("one twice", FEW, new("pay-{run}", "pay-{run}", "x-{run}"), "pay-{run}", "x-{run}"),
    create("one that is there", (SUPER, SOME, NOBODY, CLUSTER), new("orders", "hidden"), "orders"),
    create("an impossible name", (SUPER, SOME, NOBODY), new("pay-/{run}", ""), "orders"),
    create(
        "with impossible partitions", (SUPER, SOME, NOBODY), new("pay-{run}", num_partitions=-3), "pay-{run}"
    ),
    create(
        "with a configuration",
        (SUPER, SOME, NOBODY, CREATOR),
        new("made-shown-{run}", "pay-{run}", configs=[{"name": "retention.ms", "value": "1000"}]),
        "pay-{run}",
    ),
    create(
        "with a wrong configuration",
        (SUPER, SOME, NOBODY),
        new("pay-{run}", configs=[{"name": "retention.ms", "value": "long"}]),
        "pay-{run}",
    ),
    create("the metadata topic", FEW, new("__cluster_metadata", "pay-{run}"), "pay-{run}"),
    create("none", FEW, [], "orders"),
)


def delete(
    title: str, users: tuple[str, ...], *asked: dict[str, Any], versions: tuple[int, int] = (1, 6)
) -> Story:
    """Return a story of topics made for it, asked to be deleted, and of what is left.

    Before version 6 the names alone are asked for.
    """
    names = [item["name"] for item in asked if item.get("name") is not None]
    made = ("pay-{run}", "x-{run}")
    fields = {"topics": list(asked), "topic_names": names, "timeout": 10_000}
    steps = (
        Step(api=DELETE, fields={"topics": [], "topic_names": [], "timeout": 1000}, user=SUPER),
        step(CREATE, topics=new(*made), timeout=10_000, user=SUPER),
        replace(look(*made), good=True),
        Step(api=DELETE, fields=fields),
        look(*made),
    )
    return Story(title=title, steps=steps, users=users, versions=versions)


PAY, STRANGE = {"name": "pay-{run}"}, {"name": "x-{run}"}
PAY_ID = {"name": None, "topic_id": TopicId("pay-{run}")}
STRANGE_ID = {"name": None, "topic_id": TopicId("x-{run}")}
DELETERS = (SUPER, NOBODY, SOME, MIXED)
DELETIONS = (
    delete("by name", DELETERS, PAY, STRANGE),
    delete("missing ones", DELETERS, PAY, {"name": "pay-missing"}, {"name": "gone"}),
    delete("one twice", FEW, PAY, STRANGE, PAY),
    delete("by id", DELETERS, PAY_ID, STRANGE_ID, versions=(6, 6)),
    delete("by id and name", FEW, PAY_ID, STRANGE, versions=(6, 6)),
    delete("unknown ids", FEW, PAY_ID, {"name": None, "topic_id": TopicId("gone")}, versions=(6, 6)),
    delete("an id twice", FEW, PAY_ID, STRANGE_ID, PAY_ID, versions=(6, 6)),
    delete("neither name nor id", FEW, {"name": None}, PAY, versions=(6, 6)),
    delete(
        "both name and id", FEW, {"name": "x-{run}", "topic_id": TopicId("x-{run}")}, PAY, versions=(6, 6)
    ),
)


def configs(title: str, users: tuple[str, ...], *resources: tuple[int, str], **fields: Any) -> Story:
    """Return a story of one DescribeConfigs of (type, name)."""
    keys = [
        "retention.ms",
        "num.partitions",
        "kafka.server.KafkaConfig",
        "metrics",
        "consumer.session.timeout.ms",
    ]
    asked = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys} for kind, name in resources
    ]
    return one(title, CONFIGS, users, **{"resources": asked} | fields)


A_TOPIC, A_BROKER, A_LOGGER, SOME_METRICS, A_GROUP = 2, 4, 8, 16, 32
CONFIGURATIONS = (
    configs("of topics", EVERYBODY, (A_TOPIC, "orders"), (A_TOPIC, "other"), (A_TOPIC, "pay-missing")),
    configs("of a broker", EVERYBODY, (A_BROKER, "1"), (A_TOPIC, "other")),
    configs("of all brokers", FEW, (A_BROKER, "")),
    configs("of a missing broker", (*FEW, CLUSTER), (A_BROKER, "17")),
    configs("of a logger", (*FEW, CLUSTER), (A_LOGGER, "1")),
    configs("of metrics", (*FEW, CLUSTER), (SOME_METRICS, "mine")),
    configs("of groups", FEW, (A_GROUP, "g-open"), (A_GROUP, "x-1")),
    configs("with synonyms", FEW, (A_TOPIC, "orders"), include_synonyms=True, include_documentation=True),
    configs("of a topic twice", FEW, (A_TOPIC, "orders"), (A_TOPIC, "hidden"), (A_TOPIC, "orders")),
    configs("of an unknown type", FEW, (77, "x"), (A_TOPIC, "orders")),
    configs("of any type", FEW, (1, "x")),
    configs("of a nameless topic", FEW, (A_TOPIC, "")),
    configs("of nothing", FEW),
)

CLUSTERS = (
    one("plainly", THE_CLUSTER, EVERYBODY, endpoint_type=1),
    one(
        "with operations", THE_CLUSTER, EVERYBODY, endpoint_type=1, include_cluster_authorized_operations=True
    ),
    Story(
        title="of the controllers",
        steps=(step(THE_CLUSTER, endpoint_type=2, include_cluster_authorized_operations=True),),
        users=FEW,
        versions=(1, 2),
    ),
    Story(
        title="of an unknown kind", steps=(step(THE_CLUSTER, endpoint_type=9),), users=FEW, versions=(1, 2)
    ),
    Story(
        title="fenced brokers too",
        steps=(step(THE_CLUSTER, endpoint_type=1, include_fenced_brokers=True),),
        users=FEW,
        versions=(2, 2),
    ),
)

ACL = {
    "resource_type": 2,
    "resource_name": "zed-{run}",
    "resource_pattern_type": 3,
    "principal": "User:zed-{run}",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
ADMINS = (SUPER, ALL, NOBODY, SOME, CLUSTER, ELSEWHERE)


def acls(
    title: str,
    *changes: dict[str, Any],
    users: tuple[str, ...] = (SUPER, NOBODY),
    parted: Callable[[Any], bool] | None = None,
) -> Story:
    """Return a story of one CreateAcls, and of what there is afterwards."""
    created = step(ApiKey.CREATE_ACLS, creations=[ACL | change for change in changes])
    mine = EVERY_ACL | {"principal_filter": "User:zed-{run}"}
    there = Step(api=ApiKey.DESCRIBE_ACLS, fields=mine, user=SUPER, settles=True, parted=parted)
    return Story(title=title, steps=(created, there), users=users)


def has_acls(answer: Any) -> bool:
    """Return whether an answer to DescribeAcls has some."""
    return bool(answer["resources"])


CREATED = (
    acls("one", {}, users=ADMINS),
    acls("several", {}, {"operation": 4}, {"resource_type": 3}, users=ADMINS),
    acls("one twice", {}, {}),
    acls("none", users=ADMINS),
    acls("prefixed and on everything", {"resource_pattern_type": 4}, {"resource_name": "*"}),
    acls("a strange cluster", {"resource_type": 4}, {}),
    acls("the cluster", {"resource_type": 4, "resource_name": "kafka-cluster"}),
    acls("no name", {"resource_name": ""}, {}),
    *[acls(f"resource type {code}", {"resource_type": code}, {}) for code in (0, 1, 6, 7, 8, 99, -1)],
    *[acls(f"pattern type {code}", {"resource_pattern_type": code}, {}) for code in (0, 1, 2, 5, -1)],
    *[acls(f"operation {code}", {"operation": code}, {}) for code in (0, 1, 13, 15, 16, 99, -1)],
    *[acls(f"permission type {code}", {"permission_type": code}, {}) for code in (0, 1, 2, 4, -1)],
    *[acls(f"principal {text!r}", {"principal": text}, {}) for text in ("zed", "", ":zed", "User:", "a:b:c")],
    *[acls(f"host {text!r}", {"host": text}, {}) for text in ("here", "10.0.0.1", "::1")],
    # no client has such a host: Kafka creates both of the request, kustos one
    *[acls(f"host {text!r}", {"host": text}, {}, parted=has_acls) for text in ("", "10.0.0.0/8")],
    acls("an operation of another type", {"operation": 13}, {"resource_type": 7, "operation": 14}),
)


def described(title: str, users: tuple[str, ...] = (SUPER,), **changes: Any) -> Story:
    """Return a story of one DescribeAcls."""
    return one(title, ApiKey.DESCRIBE_ACLS, users, **EVERY_ACL | changes)


DESCRIBED = (
    described("all", ADMINS),
    described("of a user", ADMINS, principal_filter="User:some"),
    described("of nobody there", principal_filter="User:ghost"),
    described("of an impossible principal", principal_filter="ghost"),
    described("of an empty principal", principal_filter=""),
    described("of a host", host_filter="127.0.0.1"),
    described("of a name", resource_name_filter="orders"),
    described("of an empty name", resource_name_filter=""),
    described("matching a name", resource_name_filter="pay-secret", pattern_type_filter=2),
    described("matching everything", resource_name_filter="*", pattern_type_filter=2),
    described("prefixed", pattern_type_filter=4),
    described("denials", permission_type=2),
    *[described(f"resource type {code}", resource_type_filter=code) for code in (0, 2, 4, 7, 99, -1)],
    *[
        described(f"pattern type {code}", (SUPER, NOBODY), pattern_type_filter=code)
        for code in (0, 2, 3, 5, -1)
    ],
    *[described(f"operation {code}", operation=code) for code in (0, 2, 3, 99)],
    *[described(f"permission type {code}", permission_type=code) for code in (0, 3, 4)],
)


def removed(title: str, *changes: dict[str, Any], users: tuple[str, ...] = (SUPER, NOBODY)) -> Story:
    """Return a story of ACLs made for it, one DeleteAcls, and of what is left."""
    made = [ACL | change for change in ({}, {"operation": 4}, {"resource_type": 3}, {"permission_type": 2})]
    mine = {"resource_name_filter": "zed-{run}"}
    there = Step(api=ApiKey.DESCRIBE_ACLS, fields=EVERY_ACL | mine, user=SUPER, settles=True)
    made_now = replace(there, count=len(made))
    return Story(
        title=title,
        steps=(
            # first, that the version counted is its own
            Step(api=ApiKey.DELETE_ACLS, fields={"filters": []}),
            step(ApiKey.CREATE_ACLS, creations=made, user=SUPER),
            made_now,
            step(ApiKey.DELETE_ACLS, filters=[EVERY_ACL | mine | change for change in changes]),
            there,
        ),
        users=users,
    )


REMOVED = (
    removed("all of a name", {}, users=ADMINS),
    removed("by two filters", {"resource_type_filter": 2}, {"operation": 3}),
    removed("by two that overlap", {}, {"operation": 3}),
    removed("nothing that is there", {"principal_filter": "User:ghost"}, {"operation": 3}),
    removed("matching", {"pattern_type_filter": 2, "principal_filter": "User:zed-{run}"}),
    *[removed(f"resource type {code}", {"resource_type_filter": code}, {"operation": 4}) for code in (0, 99)],
    *[removed(f"pattern type {code}", {"pattern_type_filter": code}, {"operation": 4}) for code in (0, 5)],
    *[removed(f"operation {code}", {"operation": code}, {"operation": 4}) for code in (0, 99)],
    *[removed(f"permission type {code}", {"permission_type": code}, {"operation": 4}) for code in (0, 9)],
)

SCRAM_ADMINS = (SUPER, ALL, NOBODY, SOME, CLUSTER)


def upsert(name: str, mechanism: int = 1, iterations: int = 4096, **fields: Any) -> dict[str, Any]:
    """Return a credential to set."""
    given = {"salt": b"some salt of ours", "salted_password": bytes(32 if mechanism == 1 else 64)}
    return {"name": name, "mechanism": mechanism, "iterations": iterations} | given | fields


def gone(name: str, mechanism: int = 1) -> dict[str, Any]:
    """Return a credential to remove."""
    return {"name": name, "mechanism": mechanism}


def altered(
    title: str,
    upserts: list[dict[str, Any]],
    deletions: list[dict[str, Any]],
    users: tuple[str, ...] = (SUPER, NOBODY),
) -> Story:
    """Return a story of one AlterUserScramCredentials, and of what there is afterwards."""
    changed = step(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=deletions, upsertions=upserts)
    there = step(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=None, user=SUPER, settles=True)
    return Story(title=title, steps=(changed, there), users=users)


ALTERED = (
    altered("a new user", [upsert("u-{run}")], [], SCRAM_ADMINS),
    altered("a user of both mechanisms in one request", [upsert("u-{run}"), upsert("u-{run}", 2)], []),
    altered("two users", [upsert("u-{run}"), upsert("v-{run}", 2)], [], SCRAM_ADMINS),
    altered("a user taken away", [], [gone("zed", 2)], (NOBODY, SUPER)),
    altered("a user that was taken away", [], [gone("zed", 2), gone("u-{run}")]),
    altered("a user set and removed at once", [upsert("u-{run}")], [gone("u-{run}")]),
    altered("a user removed twice", [], [gone("u-{run}"), gone("u-{run}", 2)]),
    altered("a nameless user", [upsert("")], []),
    altered("a nameless user taken away", [], [gone("")]),
    *[altered(f"mechanism {code}", [upsert("u-{run}", code), upsert("v-{run}")], []) for code in (0, 3, -1)],
    *[
        altered(f"mechanism {code} taken away", [], [gone("u-{run}", code), gone("v-{run}")])
        for code in (0, 3)
    ],
    *[
        altered(f"{count} iterations", [upsert("u-{run}", 1, count)], [])
        for count in (-1, 0, 4095, 16384, 16385)
    ],
    altered("an empty salt", [upsert("u-{run}", salt=b"")], []),
    altered("an empty password", [upsert("u-{run}", salted_password=b"")], []),
    altered("a short password", [upsert("u-{run}", salted_password=b"short")], []),
    altered("nothing", [], [], SCRAM_ADMINS),
    altered("good and bad", [upsert("u-{run}"), upsert("", 1), upsert("v-{run}", 9)], [gone("w-{run}")]),
)


def scram_users(title: str, names: list[str] | None, users: tuple[str, ...] = (SUPER, CLUSTER)) -> Story:
    """Return a story of one DescribeUserScramCredentials."""
    asked = None if names is None else [{"name": name} for name in names]
    return one(title, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users, users=asked)


SCRAM_SEEN = (
    scram_users("all", None),
    scram_users("all of an empty list", []),
    scram_users("some", ["zed", "admin", "ghost"], SCRAM_ADMINS),
    scram_users("one twice", ["zed", "zed", "admin"], SCRAM_ADMINS),
    scram_users("one three times", ["zed", "zed", "zed"]),
    scram_users("a ghost twice", ["ghost", "ghost"]),
    scram_users("a nameless one", [""]),
)


def misdirected(title: str, **fields: Any) -> Story:
    """Return a story of an ApiVersions that names a cluster and a node (KIP-1242)."""
    fields |= {"client_software_name": "a", "client_software_version": "1.0"}
    asked = step(ApiKey.API_VERSIONS, **fields)
    return Story(title=title, steps=(asked,), users=FEW, versions=(5, 5))


OFFERED = (
    one(
        "of a named client",
        ApiKey.API_VERSIONS,
        THREE,
        client_software_name="a",
        client_software_version="1.0",
    ),
    Story(
        title="of a client with an impossible name",
        steps=(step(ApiKey.API_VERSIONS, client_software_name="-a-", client_software_version="1.0"),),
        users=FEW,
        versions=(3, 5),
    ),
    misdirected("of a client that means another node", cluster_id="c-none", node_id=99),
    misdirected("of a client that means a node of no cluster", node_id=1),
    misdirected("of a client that means no node of a cluster", cluster_id="c-none"),
)


def quotas(title: str, *components: tuple[str, int, str | None], strict: bool = False) -> Story:
    """Return a story of one DescribeClientQuotas of (entity type, kind of match, name)."""
    asked = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    return one(title, ApiKey.DESCRIBE_CLIENT_QUOTAS, ADMINS, components=asked, strict=strict)


QUOTAS = (
    quotas("all"),
    quotas("of users", ("user", 2, None), strict=True),
    quotas("of a user", ("user", 0, "zed"), ("client-id", 1, None)),
    quotas("of an unknown kind", ("planet", 0, "mars")),
    quotas("matched in an unknown way", ("user", 9, "zed")),
)

SASL_AGAIN = (
    one("after the login", ApiKey.SASL_HANDSHAKE, THREE, mechanism="PLAIN"),
    one("after the login", ApiKey.SASL_AUTHENTICATE, THREE, auth_bytes=b"\0a\0b"),
)

LOOKING = CONFIGURATIONS + CLUSTERS + DESCRIBED + SCRAM_SEEN + QUOTAS + OFFERED + SASL_AGAIN
CHANGING = CREATIONS + DELETIONS + CREATED + REMOVED + ALTERED
