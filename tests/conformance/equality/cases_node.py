"""What a node answers about itself where controllers listen, and requests of others in Envelopes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kustos.acl import KafkaPrincipal
from kustos.metadata.features import LATEST_LEVEL
from kustos.protocol.envelopes import principal_bytes
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Story, Wrapped, offered, one
from tests.conformance.equality import cases_admin, cases_tokens
from tests.conformance.equality.world import (
    ALL,
    CLUSTER,
    ELSEWHERE,
    EVERY_ACL,
    MIXED,
    NOBODY,
    READER,
    SOME,
    SUPER,
    THREE,
)

ALTER, CONFIGS = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.DESCRIBE_CONFIGS
FEATURES, QUORUM, ENVELOPE = ApiKey.UPDATE_FEATURES, ApiKey.DESCRIBE_QUORUM, ApiKey.ENVELOPE
EVERY_ADMIN = (SUPER, ALL, NOBODY, SOME, MIXED, CLUSTER, ELSEWHERE)
TWO = (SUPER, NOBODY)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
A_SETTING = "allow.everyone.if.no.acl.found"

ELSEWHERE_ONLY = frozenset({ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_DELEGATION_TOKEN})
"""What kustos answers on every listener, and Kafka's controllers on none of theirs."""


def without_looks(stories: tuple[Story, ...]) -> Iterator[Story]:
    """Yield stories without the requests that Kafka's controllers do not answer, each in its newest version.

    In all versions they are told to the listeners for clients, where the same code answers them.
    """
    for story in stories:
        steps = tuple(each for each in story.steps if each.api not in ELSEWHERE_ONLY)
        if steps and story.api not in ELSEWHERE_ONLY:
            newest = (story.versions or offered(story.api))[1]
            yield replace(story, steps=steps, versions=(newest, newest))


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> dict[str, Any]:
    """Return what is to be changed of one resource."""
    configs = [{"name": key, "config_operation": how, "value": value} for key, how, value in changes]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


SETS_IT, TAKES_IT_AWAY = (A_SETTING, SET, "false"), (A_SETTING, DELETE, None)


def altered(
    title: str, *resources: dict[str, Any], users: tuple[str, ...] = TWO, validate_only: bool = False
) -> Story:
    """Return a story of one IncrementalAlterConfigs."""
    return one(title, ALTER, users, resources=list(resources), validate_only=validate_only)


ALTERED = (
    altered("of the node", resource(BROKER, "1", SETS_IT), users=EVERY_ADMIN),
    altered("of all nodes", resource(BROKER, "", SETS_IT), users=EVERY_ADMIN),
    altered("taken away", resource(BROKER, "1", TAKES_IT_AWAY), resource(BROKER, "", TAKES_IT_AWAY)),
    altered("taken away twice", resource(BROKER, "1", TAKES_IT_AWAY)),
    altered("that nobody knows taken away", resource(BROKER, "1", ("nobody.knows", DELETE, None))),
    altered("to nothing", resource(BROKER, "1", (A_SETTING, SET, None))),
    altered("only to see", resource(BROKER, "1", SETS_IT), users=EVERY_ADMIN, validate_only=True),
    altered("of a node that is not there", resource(BROKER, "17", SETS_IT), users=EVERY_ADMIN),
    altered("one of which is there", resource(BROKER, "17", SETS_IT), resource(BROKER, "1", SETS_IT)),
    *[
        altered(f"of a node named {name!r}", resource(BROKER, name, SETS_IT))
        for name in ("x", "-1", "-0", "+1", "01", " 1", "1.0", "1_0", "2147483648", "99999999999999999999")
    ],
    altered("of nothing", users=EVERY_ADMIN),
    altered("of the node without a change", resource(BROKER, "1")),
    altered("twice of the node", resource(BROKER, "1", SETS_IT), resource(BROKER, "1", TAKES_IT_AWAY)),
    altered("three times of the node", *[resource(BROKER, "1", SETS_IT)] * 3),
    altered(
        "twice of the node and once of all",
        resource(BROKER, "1", SETS_IT),
        resource(BROKER, "", SETS_IT),
        resource(BROKER, "1", SETS_IT),
    ),
    altered("one setting twice", resource(BROKER, "1", SETS_IT, TAKES_IT_AWAY)),
    *[
        altered(f"{how} of what is no list", resource(BROKER, "1", (A_SETTING, how, "x")))
        for how in (APPEND, SUBTRACT)
    ],
    *[altered(f"type {kind}", resource(kind, "x", SETS_IT)) for kind in (0, 1, 3, 64, 77, -1)],
    altered("of a topic that is not there", resource(TOPIC, "ghost"), users=EVERY_ADMIN),
    altered("of a nameless topic", resource(TOPIC, "", ("retention.ms", DELETE, None))),
    altered("good and bad", resource(BROKER, "", SETS_IT), resource(TOPIC, "ghost"), resource(99, "x")),
)


CLOSING = (
    replace(
        altered(
            "an operation that is none",
            resource(BROKER, "", SETS_IT),
            resource(BROKER, "1", (A_SETTING, 4, "x")),
            resource(LOGGER, "1", ("root", SET, "INFO")),
            users=(NOBODY, SUPER),
        ),
        versions=(1, 1),
    ),
)
"""The last of all: Kafka's controller fails over it, and gives up its office for a while."""


def level(title: str, name: str, *changes: tuple[str, int, str | None], **fields: Any) -> Story:
    """Return a story of log levels changed."""
    return altered(title, resource(LOGGER, name, *changes), **fields)


LEVELS = (
    level("of root", "1", ("root", SET, "INFO"), users=EVERY_ADMIN),
    level("of root only to see", "1", ("root", SET, "INFO"), users=EVERY_ADMIN, validate_only=True),
    level("of root taken away", "1", ("root", DELETE, None)),
    level("of a logger that is not there", "1", ("no.such.logger", SET, "INFO")),
    level("of a logger that is not there taken away", "1", ("no.such.logger", DELETE, None)),
    *[level(f"{word!r}", "1", ("root", SET, word)) for word in ("info", "LOUD", "", "OFF", "ALL")],
    *[level(f"operation {how}", "1", ("root", how, "INFO")) for how in (APPEND, SUBTRACT, 4, -1)],
    *[level(f"of node {name!r}", name, ("root", SET, "INFO")) for name in ("", "17", "x", "-1", "01")],
    level("nothing", "1"),
    altered("twice", *[resource(LOGGER, "1", ("root", SET, "INFO"))] * 2),
    altered("beside a setting", resource(LOGGER, "1", ("root", SET, "INFO")), resource(BROKER, "", SETS_IT)),
)


def shown(title: str, users: tuple[str, ...], *resources: tuple[int, str], **fields: Any) -> Story:
    """Return a story of one DescribeConfigs of settings that both have."""
    keys = [
        "socket.request.max.bytes",
        "connections.max.idle.ms",
        "delegation.token.secret.key",
        "no.such.key",
    ]
    asked = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys} for kind, name in resources
    ]
    return one(title, CONFIGS, users, **{"resources": asked} | fields)


SHOWN = (
    shown("of the node", EVERY_ADMIN, (BROKER, "1")),
    shown("of the node with synonyms", TWO, (BROKER, "1"), include_synonyms=True),
    shown("of all nodes", EVERY_ADMIN, (BROKER, "")),
    shown(
        "of other nodes", TWO, (BROKER, "17"), (BROKER, "x"), (BROKER, "-1"), (BROKER, "+1"), (BROKER, "01")
    ),
    shown("of the node twice", TWO, (BROKER, "1"), (BROKER, "1")),
    shown("of loggers", EVERY_ADMIN, (LOGGER, "1")),
    shown("of loggers elsewhere", TWO, (LOGGER, ""), (LOGGER, "17"), (LOGGER, "x")),
    shown("of a topic that is not there", EVERY_ADMIN, (TOPIC, "ghost")),
    shown("of nothing", EVERY_ADMIN),
    *[shown(f"of type {kind}", TWO, (kind, "x")) for kind in (0, 1, 64, 77, -1)],
    shown("of an unknown type and a known one", TWO, (77, "x"), (BROKER, "1")),
)


def updated(title: str, *updates: tuple[str, int, int], users: tuple[str, ...] = TWO, **fields: Any) -> Story:
    """Return a story of one UpdateFeatures of (feature, level, upgrade type)."""
    asked = [
        {"feature": name, "max_version_level": level, "upgrade_type": how, "allow_downgrade": how > 1}
        for name, level, how in updates
    ]
    return one(title, FEATURES, users, feature_updates=asked, timeout=10_000, **fields)


MV, UP, SAFE, UNSAFE = "metadata.version", 1, 2, 3
UPDATED = (
    updated("nothing", users=EVERY_ADMIN),
    updated("as it is", (MV, LATEST_LEVEL, UP), users=EVERY_ADMIN),
    updated("as it is, safely lowered", (MV, LATEST_LEVEL, SAFE)),
    updated("as it is, unsafely lowered", (MV, LATEST_LEVEL, UNSAFE)),
    updated("only to see", (MV, LATEST_LEVEL, UP), users=EVERY_ADMIN, validate_only=True),
    *[
        updated(f"to {level} by {how}", (MV, level, how))
        for level in (-1, 0, 6, 30, 7)
        for how in (UP, SAFE, UNSAFE)
    ],
    *[updated(f"to {level} by {how}", (MV, level, how)) for level in (99, 32767) for how in (UP, SAFE)],
    *[updated(f"by upgrade type {how}", (MV, LATEST_LEVEL, how)) for how in (0, 4, -1)],
    updated("a feature nobody knows", ("no.such.feature", 1, UP), users=EVERY_ADMIN),
    updated("a feature nobody knows to nothing", ("no.such.feature", 0, SAFE)),
    updated("a feature nobody knows below nothing", ("no.such.feature", -1, SAFE)),
    updated("a nameless feature", ("", 1, UP)),
    updated("a good one and a bad one", (MV, LATEST_LEVEL, UP), ("no.such.feature", 1, UP)),
    updated("one twice", (MV, 99, UP), (MV, LATEST_LEVEL, UP)),
)


def asked_quorum(title: str, users: tuple[str, ...], *topics: tuple[str, tuple[int, ...]]) -> Story:
    """Return a story of one DescribeQuorum of (topic, partitions)."""
    asked = [
        {"topic_name": name, "partitions": [{"partition_index": index} for index in indexes]}
        for name, indexes in topics
    ]
    return one(title, QUORUM, users, topics=asked)


METADATA = "__cluster_metadata"
QUORUMS = (
    asked_quorum("of the metadata", EVERY_ADMIN, (METADATA, (0,))),
    asked_quorum("of nothing", EVERY_ADMIN),
    asked_quorum("of no partition", TWO, (METADATA, ())),
    asked_quorum("of another partition", TWO, (METADATA, (1,))),
    asked_quorum("of two partitions", TWO, (METADATA, (0, 1))),
    asked_quorum("of another topic", EVERY_ADMIN, ("orders", (0,))),
    asked_quorum("of two topics", TWO, (METADATA, (0,)), ("orders", (0,))),
    asked_quorum("of the metadata twice", TWO, (METADATA, (0,)), (METADATA, (0,))),
    asked_quorum("of a nameless topic", TWO, ("", (0,))),
)

CLUSTERS = tuple(
    one(
        f"of kind {kind}{' with operations' if operations else ''}",
        ApiKey.DESCRIBE_CLUSTER,
        EVERY_ADMIN,
        endpoint_type=kind,
        include_cluster_authorized_operations=operations,
    )
    for kind in (0, 1, 2, 3, 9, -1)
    for operations in (False, True)
)


def wrapped(
    title: str,
    inner: Wrapped | bytes,
    by: str = ALL,
    users: tuple[str, ...] = (SUPER, ALL, NOBODY, CLUSTER),
    **fields: Any,
) -> Story:
    """Return a story of one Envelope, with a request that `by` made."""
    given = {
        "request_data": inner,
        "request_principal": principal_bytes(KafkaPrincipal("User", by)),
        "client_host_address": bytes((127, 0, 0, 1)),
    }
    return one(title, ENVELOPE, users, **given | fields)


ACL = {**cases_admin.ACL, "resource_name": "wrapped", "principal": "User:wrapped"}
MAKES_ACL = Wrapped(ApiKey.CREATE_ACLS, 3, {"creations": [ACL, ACL | {"operation": 99}]})
REMOVES_ACL = Wrapped(
    ApiKey.DELETE_ACLS,
    3,
    {
        "filters": [
            {
                "resource_type_filter": 2,
                "resource_name_filter": "wrapped",
                "pattern_type_filter": 3,
                "principal_filter": None,
                "host_filter": None,
                "operation": 1,
                "permission_type": 1,
            }
        ]
    },
)
INNER = {
    "ACLs made": MAKES_ACL,
    "ACLs removed": REMOVES_ACL,
    "SCRAM users altered": Wrapped(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        {"deletions": [cases_admin.gone("nobody-there")], "upsertions": [cases_admin.upsert("", 1)]},
    ),
    "a token made": Wrapped(ApiKey.CREATE_DELEGATION_TOKEN, 3, {"renewers": [], "max_lifetime": -1}),
    "a token renewed": Wrapped(ApiKey.RENEW_DELEGATION_TOKEN, 2, {"hmac": b"none", "renew_period": -1}),
    "a token ended": Wrapped(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, {"hmac": b"none", "expiry_time_period": -1}),
    "the quorum": Wrapped(
        QUORUM, 2, {"topics": [{"topic_name": METADATA, "partitions": [{"partition_index": 0}]}]}
    ),
    "features": Wrapped(FEATURES, 2, {"feature_updates": [], "timeout": 1000}),
    "settings": Wrapped(ALTER, 1, {"resources": [resource(BROKER, "1", TAKES_IT_AWAY)]}),
}
EVERYBODYS = (SUPER, ALL, NOBODY, SOME, CLUSTER, ELSEWHERE, "ghost", "")

WHOLE = principal_bytes(KafkaPrincipal("User", ALL))
PRINCIPALS = {
    "nothing": None,
    "no bytes": b"",
    "one byte": b"\0",
    "version 1": b"\0\1" + WHOLE[2:],
    "version -1": b"\xff\xff" + WHOLE[2:],
    "half of it": WHOLE[:-2],
    "a null type": b"\0\0\0\4all\0\0",
    "a null name": b"\0\0\5User\0\0\0",
    "bytes behind it": WHOLE + b"more",
    "an unknown tag": WHOLE[:-1] + b"\1\x09\3abc",
    "a tag too long": WHOLE[:-1] + b"\1\x09\x7fabc",
    "a strange true": WHOLE[:-2] + b"\x07\0",
    "a token": WHOLE[:-2] + b"\1\0",
    "another type": principal_bytes(KafkaPrincipal("Group", ALL)),
    "no type": principal_bytes(KafkaPrincipal("", ALL)),
    "everybody": principal_bytes(KafkaPrincipal("User", "*")),
}
ADDRESSES = {
    "nothing": b"",
    "5 bytes": bytes(5),
    "17 bytes": bytes(17),
    "text": b"127.0.0.1",
    "zeros": bytes(4),
    "IPv6": bytes(15) + b"\1",
    "mapped": bytes(10) + b"\xff\xff\x7f\0\0\1",
    "the other host": bytes((10, 9, 8, 7)),
}
BROKEN = MAKES_ACL.frame("broken", lambda value: value)
REQUESTS = {
    "nothing": b"",
    "two bytes": BROKEN[:2],
    "half a header": BROKEN[:9],
    "a header alone": BROKEN[: 8 + 2 + len("broken") + 1],
    "a body cut short": BROKEN[:-1],
    "bytes behind it": BROKEN + b"more",
    "version 0": BROKEN[:2] + b"\0\0" + BROKEN[4:],
    "version 99": BROKEN[:2] + b"\0\x63" + BROKEN[4:],
    "version -1": BROKEN[:2] + b"\xff\xff" + BROKEN[4:],
    "an API nobody knows": b"\x7f\xff" + BROKEN[2:],
    "an API of no number": b"\xff\xff" + BROKEN[2:],
    "an API of the past": b"\0\4" + BROKEN[2:],
    "a client id too long": BROKEN[:8] + b"\x7f\xff" + BROKEN[10:],
}


def plain(api: ApiKey, version: int, **fields: Any) -> bytes:
    """Return a request that is not to be forwarded."""
    return Wrapped(api, version, fields).frame("plain", lambda value: value)


NESTED = plain(ENVELOPE, 0, request_data=BROKEN, request_principal=WHOLE, client_host_address=bytes(4))
NOT_FORWARDABLE = {
    "an Envelope": NESTED,
    "Metadata": plain(ApiKey.METADATA, 9, topics=None),
    "DescribeAcls": plain(ApiKey.DESCRIBE_ACLS, 3, **EVERY_ACL),
    "DescribeConfigs": plain(CONFIGS, 4, resources=[]),
    "DescribeCluster": plain(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=2),
    "ApiVersions": plain(ApiKey.API_VERSIONS, 0),
    "a handshake": plain(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN"),
    "a login": plain(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0admin\0admin-secret"),
    "Fetch": plain(ApiKey.FETCH, 12, topics=[]),
}
UNPARSABLE = {f"resource type {code}": ACL | {"resource_type": code} for code in (0, 1, 99)}

FORWARDED = (
    *[wrapped(f"{what} by {by!r}", inner, by) for what, inner in INNER.items() for by in EVERYBODYS],
    *[
        wrapped(f"principal: {what}", MAKES_ACL, request_principal=data, users=(SUPER, NOBODY))
        for what, data in PRINCIPALS.items()
    ],
    *[
        wrapped(f"address: {what} of {by}", MAKES_ACL, by, client_host_address=data, users=(SUPER,))
        for what, data in ADDRESSES.items()
        for by in (ALL, READER)
    ],
    *[wrapped(f"request: {what}", data, users=(SUPER, NOBODY)) for what, data in REQUESTS.items()],
    *[
        wrapped(f"not to be forwarded: {what}", data, users=(SUPER, ALL))
        for what, data in NOT_FORWARDABLE.items()
    ],
    *[
        wrapped(f"ACLs of {what}", Wrapped(ApiKey.CREATE_ACLS, 3, {"creations": [acl]}), users=(SUPER,))
        for what, acl in UNPARSABLE.items()
    ],
)

OFFERED = (
    one(
        "of a named client", ApiKey.API_VERSIONS, THREE, client_software_name="a", client_software_version="1"
    ),
)

STORIES: tuple[Story, ...] = (
    *QUORUMS,
    *CLUSTERS,
    *OFFERED,
    *cases_admin.SASL_AGAIN,
    *without_looks(cases_admin.DESCRIBED),
    *SHOWN,
    *UPDATED,
    *ALTERED,
    *LEVELS,
    *FORWARDED,
    *without_looks(cases_admin.CREATED),
    *without_looks(cases_admin.REMOVED),
    *without_looks(cases_admin.ALTERED),
    *without_looks(cases_tokens.STORIES),
    *CLOSING,
)
"""In the order in which they are played."""
