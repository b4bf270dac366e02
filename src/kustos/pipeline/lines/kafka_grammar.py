"""Kafka's own audit text, as `kafka.authorizer.logger` prints it, for every authorizer of Kafka.

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
the oldest form must end with the logger: otherwise a line cut in a name would look like a whole one.

Theory of operation. Principal and resource name are the client's unescaped text, so a name can imitate the
words around it. A line is accepted only if it is unambiguous: each connecting phrase occurs once. An
ambiguous line is quarantined. A name with a line break cuts its own line in two; both halves are quarantined
unless the forger completed one of them, which this format cannot show.

Each name ends at the first phrase that can follow it, in an atomic group, so that no name can cause
backtracking: parsing a line takes time linear in its length.
Sources: `StandardAuthorizerData.buildAuditMessage` (KIP-801), `AclAuthorizer.logAuditMessage` and
`SimpleAclAuthorizer.logAuditMessage`, lines that Kafka 4.3.1 and 2.8.2 wrote, `config/log4j.properties`.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from kustos.acl import AclOperation, ResourceType
from kustos.pipeline.lines.known_values import HOST, invalid_decision

SEPARATOR: Final = "\x1f"
"""No valid log line has this character; a line with it is ambiguous."""

LOGGER: Final = " (kafka.authorizer.logger)"
PLAIN_RULES: Final = (
    "SuperUser",
    "DefaultAllow",
    "DefaultDeny",
    "CustomAuthorizer",
    "ShadowMode",
    "AuthorizationOff",
)
PROBE_NAME: Final = "hardcode"
"""Kafka logs a question for "any resource of the type" with this name and reference count 0 (KIP-679)."""

MAXIMUM_TIME_MS: Final = 253_402_300_799_999
"""The end of the year 9999; a later time (or one before 1970) is quarantined."""

AMBIGUOUS, INCOMPLETE, OUT_OF_RANGE = "kafka_line_ambiguous", "kafka_line_incomplete", "time_out_of_range"
NOTE, BLANK, UNKNOWN = "kafka_note", "blank", "format_unknown"
"""Why a line is not an event."""

_LOGGER: Final = re.escape(LOGGER)
_ENUM: Final = "[A-Z_]+"
_LINE: Final = re.compile(
    r"\[(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})(Z|[+-]\d\d(?::?\d\d)?)?\] "
    r"(TRACE|DEBUG|INFO) {1,2}"
    r"Principal = ([^:]*+):(?>(.*?) is (Allowed|Denied) "
    rf"([oO])peration = )([A-Za-z_]+) from host = ({HOST}) "
    rf"on resource = ([A-Za-z]+):(?:({_ENUM}):)?(?>(.*?)"
    rf"(?: for request = ([A-Za-z_0-9\-]+) with resourceRefCount = (\d{{1,9}})|(?={_LOGGER}\Z)))"
    rf"(?: based on rule (?:({'|'.join(PLAIN_RULES)})|"
    rf"(MatchingAcl)\(acl=StandardAcl[\[(]resourceType=({_ENUM}), "
    rf"resourceName=(?>(.*?), patternType=)({_ENUM}), "
    rf"principal=(?>(.*?), host=)(?>(.*?), operation=)({_ENUM}), permissionType=({_ENUM})[\])]\)))?"
    rf"(?:{_LOGGER})?\Z",
    re.ASCII | re.DOTALL,
)
_LINE_START: Final = re.compile(r"\[\d{4}-[^\]]*\] [A-Z]+ +Principal = ", re.ASCII)
"""The beginning of an audit line: if the rest does not match, it was cut or forged."""

_NOTE_START: Final = re.compile(
    r"\[\d{4}-[^\]]*\] DEBUG +(?:[pP]rincipal = .* is a super user|operation = |No acl found for resource )",
    re.ASCII,
)
"""Further messages of AclAuthorizer at DEBUG: no decisions."""

_MESSAGE_PHRASES: Final = tuple(
    re.compile(phrase)
    for phrase in (
        r"Principal = ",
        r" is (?:Allowed|Denied) [oO]peration = ",
        r" from host = ",
        r" on resource = ",
        r" for request = ",
        r" with resourceRefCount = ",
        r" based on rule ",
    )
)
_ACL_PHRASES: Final = (", patternType=", ", principal=", ", host=", ", operation=", ", permissionType=")
_PHRASES: Final = re.compile(
    "|".join((*(phrase.pattern for phrase in _MESSAGE_PHRASES), *_ACL_PHRASES, _LOGGER))
)
_FARTHEST_ZONE_MINUTES: Final = 18 * 60
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ParsedRule(NamedTuple):
    """The deciding rule of an event; None for fields that the event lacks."""

    kind: str | None
    resource_type: str | None
    resource_name: str | None
    pattern_type: str | None
    principal: str | None
    host: str | None
    operation: str | None
    permission_type: str | None


class ParsedLine(NamedTuple):
    """The fields of a line's audit event.

    Kafka logs decisions that only filtered a list at TRACE, hence `access`. The older authorizers do not log
    the deciding rule.
    """

    time_ms: int
    principal_type: str
    principal_name: str
    host: str
    api_name: str | None
    resource_type: str
    resource_name: str | None
    operation: str
    decision: str
    rule: ParsedRule
    reference_count: int | None
    log_if_allowed: bool | None
    log_if_denied: bool | None
    access: str


def spellings(kinds: Iterable[ResourceType | AclOperation]) -> dict[str, str]:
    """Return the names by their spellings: `DescribeConfigs` and `DESCRIBE_CONFIGS`."""
    found: dict[str, str] = {}
    for kind in kinds:
        camel_case = "".join(word.capitalize() for word in kind.name.split("_"))
        found |= {camel_case: kind.name, kind.name: kind.name}
    return found


OPERATION_NAMES: Final = spellings(AclOperation)
RESOURCE_TYPE_NAMES: Final = spellings(ResourceType)
"""The names by their spellings. `known_values` refuses an unknown word as its writer spelled it."""


def read_line(text: str, time_zone: ZoneInfo | None = None) -> ParsedLine | str:
    """Return the parsed line, or the reason why it is not an event.

    `time_zone` is the broker's, None for UTC: by default log4j writes local time without a zone.
    """
    found = _LINE.match(text)
    if found is None:
        return _why_not(text)
    parts = found.groups()
    if SEPARATOR in text:
        return AMBIGUOUS
    date, time, milliseconds, zone, level, principal_type, principal, result, form, operation, host = parts[
        :11
    ]
    resource_type, pattern, name, api, count, plain_rule, *acl = parts[11:]
    # StandardAuthorizer (`operation`) always names the rule, the older ones (`Operation`) never do; only the
    # oldest leaves out the kind of pattern, and it names no request either
    names_rule = plain_rule is not None or acl[0] is not None
    if (form == "o") != names_rule or (pattern is None and api is not None):
        return _why_not(text)
    if _deceives(principal_type, principal, name, *(acl[2:3] + acl[4:6])):
        return AMBIGUOUS
    time_ms = _time_ms(f"{date}T{time}.{milliseconds}", zone, time_zone)
    resource_type = RESOURCE_TYPE_NAMES.get(resource_type, resource_type)
    operation = OPERATION_NAMES.get(operation, operation)
    rule = ParsedRule(plain_rule or acl[0], *(part or None for part in acl[1:]))
    reason = invalid_decision(
        {"resource_type": resource_type, "operation": operation, "rule": rule._asdict()}
    )
    if time_ms is None or reason is not None:
        return reason or OUT_OF_RANGE
    reference_count = None if count is None else int(count)
    is_probe = name == PROBE_NAME and reference_count == 0
    is_allowed = result == "Allowed"
    return ParsedLine(
        time_ms,
        principal_type,
        principal,
        host,
        api,
        resource_type,
        None if is_probe else name,
        operation,
        "ALLOWED" if is_allowed else "DENIED",
        rule,
        reference_count,
        level == "DEBUG" if is_allowed else None,
        None if is_allowed else level == "INFO",
        "LISTING" if level == "TRACE" else "ACCESS",
    )


def _why_not(text: str) -> str:
    """Return why a line is not an audit line."""
    if not text.strip(" "):
        return BLANK
    if SEPARATOR in text:
        return AMBIGUOUS
    if _LINE_START.match(text):
        # a name that imitates a phrase may have made the line unreadable
        is_repeated = any(len(phrase.findall(text)) > 1 for phrase in _MESSAGE_PHRASES)
        return AMBIGUOUS if is_repeated else INCOMPLETE
    return NOTE if _NOTE_START.match(text) else UNKNOWN


def _deceives(*names: str | None) -> bool:
    """Return whether a name that a client or the author of an ACL could choose imitates a phrase."""
    # each name with the space that follows it: a phrase that begins in a name and ends beyond it counts too
    text = " \n".join([*filter(None, names), ""])
    # every phrase but two has `=`, which nearly no name has; this test is faster than the regex
    if "=" not in text and " based on rule " not in text and "kafka.authorizer.logger" not in text:
        return False
    return _PHRASES.search(text) is not None


def _time_ms(moment: str, zone: str | None, time_zone: ZoneInfo | None) -> int | None:
    """Return the milliseconds since the epoch, None if there is no such time or it is out of range."""
    if moment[11:13] == "24":  # the end of a day to newer Pythons
        return None
    try:
        time = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    except ValueError:
        return None
    milliseconds = (time - _EPOCH) // timedelta(milliseconds=1)
    if zone is None and time_zone is not None:
        milliseconds -= local_offset_ms(milliseconds // 1_000, time_zone)
    elif zone is not None and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
        if hours * 60 + minutes > _FARTHEST_ZONE_MINUTES or minutes > 59:
            return None
        away = (hours * 60 + minutes) * 60_000
        milliseconds -= away if zone[0] == "+" else -away
    return milliseconds if 0 <= milliseconds <= MAXIMUM_TIME_MS else None


def local_offset_ms(local_seconds: int, time_zone: ZoneInfo) -> int:
    """Return how far a zone is before UTC at a local time, given as seconds since the epoch in that zone.

    A time that occurs twice means the first one; a skipped time takes the offset before the gap.
    """
    try:
        offset = (_EPOCH + timedelta(seconds=local_seconds)).replace(tzinfo=time_zone).utcoffset()
    except OverflowError:  # the first and the last day there are
        return 0
    return 0 if offset is None else offset // timedelta(milliseconds=1)
