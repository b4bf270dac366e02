"""Kafka's own audit text, as `kafka.authorizer.logger` prints it, of every authorizer that Kafka has shipped.

    [2026-11-21 04:26:55,815] DEBUG Principal = User:bob is Allowed operation = READ from host = 127.0.0.1
    on resource = Topic:LITERAL:foo for request = Fetch with resourceRefCount = 1 based on rule
    MatchingAcl(acl=StandardAcl[...]) (kafka.authorizer.logger)            (all on one line)

| authorizer | its form |
|---|---|
| StandardAuthorizer of 4.x | as above; `StandardAcl(...)` in 3.x; kustos writes the same |
| AclAuthorizer, 2.4 to 3.9 | `Operation = Read`, and nothing after `resourceRefCount = 1` |
| SimpleAclAuthorizer, up to 2.3 | `Operation = Read`, and nothing after the resource, `Topic:foo` up to 1.1 |

The layout is Kafka's `[%d] %p %m (%c)%n`, of log4j 1, reload4j and log4j2 alike; also with a `T` in the time,
with a time zone after it (then that one counts), with a padded level, and without the logger at the end. Only
the oldest form must end with the logger: else a line cut in a name could not be told from a whole one.

Theory of operation. Principal and resource name are whatever the client sent, unescaped, so a name can
imitate the words around it. A line is taken only if it can be read in one way: each connecting phrase
occurs once. A line that can be read in two ways is quarantined. A name with a line break cuts its own line
in two; both halves are quarantined unless the forger completed one of them, which this format cannot show.

One replacement and one split do the work of many extractions, eight times faster. Each name ends at the first
phrase that can follow it, in an atomic group, so that no name can make the matcher go back and try again: the
time a line takes grows with its length and no faster.
Sources: `StandardAuthorizerData.buildAuditMessage` (KIP-801), `AclAuthorizer.logAuditMessage` and
`SimpleAclAuthorizer.logAuditMessage`, lines that Kafka 4.3.1 and 2.8.2 wrote, `config/log4j.properties`.
"""

import functools
import operator
from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

from kustos.acl import AclOperation, ResourceType

FIELD_SEPARATOR: Final = "\x1f"
"""Stands between the captured parts; a line that has one of its own is called ambiguous."""

_LOGGER = r" \(kafka\.authorizer\.logger\)"
_ENUM = "[A-Z_]+"
LINE_PATTERN: Final = (
    r"(?s)^\[(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})(Z|[+-]\d\d(?::?\d\d)?)?\] "
    r"(TRACE|DEBUG|INFO) {1,2}"
    r"Principal = ([^:]*+):(?>(.*?) is (Allowed|Denied) "
    r"([oO])peration = )([A-Za-z_]+) from host = ([0-9A-Za-z.:%_\-]+) "
    rf"on resource = ([A-Za-z]+):(?:({_ENUM}):)?(?>(.*?)"
    rf"(?: for request = ([A-Za-z_0-9\-]+) with resourceRefCount = (\d{{1,9}})|(?={_LOGGER}$)))"
    r"(?: based on rule (?:(SuperUser|DefaultAllow|DefaultDeny|CustomAuthorizer)|"
    rf"(MatchingAcl)\(acl=StandardAcl[\[(]resourceType=({_ENUM}), "
    rf"resourceName=(?>(.*?), patternType=)({_ENUM}), "
    rf"principal=(?>(.*?), host=)(?>(.*?), operation=)({_ENUM}), permissionType=({_ENUM})[\])]\)))?"
    rf"(?:{_LOGGER})?$"
)
_PARTS: Final = [
    "time",
    "zone",
    "level",
    "principal_type",
    "principal_name",
    "result",
    "form",
    "operation",
    "host",
    "resource_type",
    "pattern",
    "resource_name",
    "api",
    "reference_count",
    "plain_rule",
    "acl_rule",
    "acl_resource_type",
    "acl_resource_name",
    "acl_pattern",
    "acl_principal",
    "acl_host",
    "acl_operation",
    "acl_permission",
]
_GROUPS_OF_TIME: Final = 3

LINE_START: Final = r"^\[\d{4}-[^\]]*\] [A-Z]+ +Principal = "
"""What begins like an audit line: if it then is none, it was cut or forged."""

NOTE_START: Final = (
    r"^\[\d{4}-[^\]]*\] DEBUG +(?:[pP]rincipal = .* is a super user|operation = |No acl found for resource )"
)
"""What AclAuthorizer says at DEBUG beside its decision: no decision itself."""

_FREE_PARTS: Final = [
    "principal_type",
    "principal_name",
    "resource_name",
    "acl_resource_name",
    "acl_principal",
    "acl_host",
]
_MESSAGE_PHRASES: Final = (
    r"Principal = ",
    r" is (?:Allowed|Denied) [oO]peration = ",
    r" from host = ",
    r" on resource = ",
    r" for request = ",
    r" with resourceRefCount = ",
    r" based on rule ",
)
_ACL_PHRASES: Final = (", patternType=", ", principal=", ", host=", ", operation=", ", permissionType=")
_PHRASES: Final = "|".join((*_MESSAGE_PHRASES, *_ACL_PHRASES, _LOGGER))
_PROBE_NAME: Final = "hardcode"
"""Kafka asks for "any resource of the type" with this name and reference count 0 (KIP-679)."""


def _part(parts: Column, name: str) -> Column:
    return parts.getItem(_PARTS.index(name))


def _or_null(column: Column) -> Column:
    return sql.nullif(column, sql.lit(""))


def captured_parts(line: Column) -> Column:
    """Return the line's captured parts as an array, of length 1 if it is no audit line."""
    others = range(_GROUPS_OF_TIME + 1, _GROUPS_OF_TIME + len(_PARTS))
    replacement = FIELD_SEPARATOR.join(("$1 $2.$3", *(f"${number}" for number in others)))
    return sql.split(sql.regexp_replace(line, LINE_PATTERN, replacement), FIELD_SEPARATOR, -1)


def is_complete(parts: Column) -> Column:
    """Return whether the parts are those of a whole audit line.

    StandardAuthorizer (`operation`) always names the rule, the older ones (`Operation`) never do; only the
    oldest leaves out the kind of pattern, and it names no request either.
    """
    names_rule = (_part(parts, "plain_rule") != "") | (_part(parts, "acl_rule") != "")
    old_name = (_part(parts, "pattern") != "") | (_part(parts, "api") == "")
    return sql.when(
        sql.size(parts) == len(_PARTS), ((_part(parts, "form") == "o") == names_rule) & old_name
    ).otherwise(sql.lit(False))


def has_separator(line: Column) -> Column:
    """Return whether the line brings a separator of its own, so that its parts cannot be trusted."""
    return sql.contains(line, sql.lit(FIELD_SEPARATOR))


def names(parts: Column) -> Column:
    """Return all that whoever sent the request, or wrote the ACL, could choose; null for no whole line."""
    # each name with the space that follows it: a phrase that begins in a name and ends beyond it counts too
    free_text = sql.concat_ws(" \n", *(_part(parts, name) for name in _FREE_PARTS), sql.lit(""))
    return sql.when(sql.size(parts) == len(_PARTS), free_text)


def is_ambiguous(free_text: Column) -> Column:
    """Return whether one of the `names` imitates a connecting phrase: the line can be read in two ways."""
    # nearly no name holds what every phrase but two has; looking for that is quicker than for the phrases
    suspect = (
        sql.contains(free_text, sql.lit("="))
        | sql.contains(free_text, sql.lit(" based on rule "))
        | sql.contains(free_text, sql.lit("kafka.authorizer.logger"))
    )
    return suspect & free_text.rlike(_PHRASES)


def repeats_itself(line: Column) -> Column:
    """Return whether a phrase of the message occurs twice in a line that could not be read."""
    return functools.reduce(
        operator.or_, (sql.regexp_count(line, sql.lit(phrase)) > 1 for phrase in _MESSAGE_PHRASES)
    )


def instant(parts: Column, time_zone: str) -> Column:
    """Return when the line was written, null if there is no such time.

    `time_zone` is the broker's (an IANA name): log4j writes local time without a zone, unless it is told to.
    """
    time, zone = _part(parts, "time"), _part(parts, "zone")
    local = time.try_cast("timestamp")
    if time_zone != "UTC":
        local = sql.to_utc_timestamp(local, sql.lit(time_zone))
    return sql.when(zone == "", local).otherwise(sql.concat(time, zone).try_cast("timestamp"))


def enum_name(column: Column, kinds: Iterable[ResourceType | AclOperation]) -> Column:
    """Return the name of a resource type or operation, also of one written as `DescribeConfigs`.

    One that we do not know gets its name by the same rule.
    """
    names: list[Column] = []
    for kind in kinds:
        camel_case = "".join(word.capitalize() for word in kind.name.split("_"))
        names += [sql.lit(camel_case), sql.lit(kind.name)]
    by_rule = sql.upper(sql.regexp_replace(column, "(?<=[a-z])(?=[A-Z])", "_"))
    return sql.coalesce(sql.try_element_at(sql.create_map(*names), column), by_rule)


def event_columns(parts: Column, time: Column) -> dict[str, Column]:
    """Return the audit fields that the line tells, by dotted name; what it does not tell is missing.

    `time` is its `instant`. Kafka writes at TRACE what it only filtered a list by, hence `access`. The older
    authorizers do not say which rule decided: `rule.kind` is null.
    """
    level, result = _part(parts, "level"), _part(parts, "result")
    count = _or_null(_part(parts, "reference_count")).cast("int")
    name = _part(parts, "resource_name")
    probe = (name == _PROBE_NAME) & (count == 0)
    return {
        "time_ms": sql.unix_millis(time),
        "principal_type": _part(parts, "principal_type"),
        "principal_name": _part(parts, "principal_name"),
        "host": _part(parts, "host"),
        "api_name": _or_null(_part(parts, "api")),
        "resource_type": enum_name(_part(parts, "resource_type"), ResourceType),
        "resource_name": sql.when(probe, sql.lit(None)).otherwise(name),
        "operation": enum_name(_part(parts, "operation"), AclOperation),
        "decision": sql.upper(result),
        "rule.kind": sql.coalesce(_or_null(_part(parts, "plain_rule")), _or_null(_part(parts, "acl_rule"))),
        "rule.resource_type": _or_null(_part(parts, "acl_resource_type")),
        "rule.resource_name": _or_null(_part(parts, "acl_resource_name")),
        "rule.pattern_type": _or_null(_part(parts, "acl_pattern")),
        "rule.principal": _or_null(_part(parts, "acl_principal")),
        "rule.host": _or_null(_part(parts, "acl_host")),
        "rule.operation": _or_null(_part(parts, "acl_operation")),
        "rule.permission_type": _or_null(_part(parts, "acl_permission")),
        "reference_count": count,
        "log_if_allowed": sql.when(result == "Allowed", level == "DEBUG"),
        "log_if_denied": sql.when(result == "Denied", level == "INFO"),
        "access": sql.when(level == "TRACE", sql.lit("LISTING")).otherwise(sql.lit("ACCESS")),
    }
