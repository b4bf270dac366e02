"""What administrators set: topics, groups, brokers, loggers, metrics and quotas."""

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
)
from tests.conformance.equality.cases_daily import OPEN, PAY, SHUT, STRANGE, USERS, made
from tests.conformance.equality.world import CLUSTER, EVERYBODY, FEW, NOBODY, SOME, SUPER

QUOTAS = ApiKey.ALTER_CLIENT_QUOTAS
ALTER, ALTER_ALL = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS

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

LOOKING = SHOWN
CHANGING = ALTERATIONS + QUOTA_STORIES + LISTED
