"""The values that fields of an event may have: a line with any other value is no event.

Analyses look up operations and resource types by name, and sum numbers. They trust the tables, so each reader
of lines checks the values that it takes in. Only operations and resource types of Kafka are decisions: other
services, such as Kafka Connect and Confluent's metadata service, log theirs in the same form.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kustos.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.authorizer import RuleKind

RESOURCE_TYPES: Final = tuple(kind.name for kind in ResourceType if kind > ResourceType.ANY)
OPERATIONS: Final = tuple(each.name for each in AclOperation if each > AclOperation.ANY)
PATTERN_TYPES: Final = (PatternType.LITERAL.name, PatternType.PREFIXED.name)
PERMISSION_TYPES: Final = (AclPermissionType.ALLOW.name, AclPermissionType.DENY.name)

_DECISIONS: Final = ("ALLOWED", "DENIED", "ERROR")

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "resource_type": RESOURCE_TYPES,
    "operation": OPERATIONS,
    "decision": _DECISIONS,
    "rule.kind": (*(kind.value for kind in RuleKind), "Error"),
    "rule.resource_type": RESOURCE_TYPES,
    "rule.pattern_type": PATTERN_TYPES,
    "rule.operation": OPERATIONS,
    "rule.permission_type": PERMISSION_TYPES,
    "access": ("ACCESS", "LISTING"),
    "shadow_decision": _DECISIONS,
    "candidate_decision": _DECISIONS,
}
"""The words of a field of a decision, by its dotted name."""

HOST: Final = r"[0-9A-Za-z.:%_\-]+"
"""An address as Java's getHostAddress() writes it, with the scope of IPv6."""

PATTERNS: Final = {"host": HOST, "principal_type": "[^:]*"}
"""The form of a text, in the syntax that `re` and RE2 share.

A type with a colon and a short name would be the principal of a shorter type and a long name.
"""

LEAST: Final = {
    "node_id": 0,
    "api_key": 0,
    "api_version": 0,
    "reference_count": 0,
    "acl_offset": -1,
    "change_offset": 0,
    "latency_us": 0,
    "distinct_names": 0,
    "decision_count": 1,
}
"""The smallest number of a field of a decision; its type limits the largest one."""

SECURITY_WORDS: Final[dict[str, tuple[str, ...]]] = {"result": ("SUCCESS", "FAILURE", "UNKNOWN")}
SECURITY_LEAST: Final = {"node_id": 0, "first_time_ms": 0, "attempt_count": 1}
"""The same for a security event."""

ATTEMPTS_MAX: Final = 2**31 - 1
"""Attempts that one event counts: answers add them up in 64 bits."""

INVALID: Final = "value_invalid"
"""The beginning of each reason."""

_SHOWN: Final = re.compile(r"[A-Za-z0-9_\-]{1,100}", re.ASCII)
"""A word with other characters is not quoted in a reason: it is untrusted text."""

_FORMS: Final = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}


def invalid_decision(event: Mapping[str, Any]) -> str | None:
    """Return the reason why a decision has an invalid value; None if all its values are valid.

    `event` has the fields as a table has them, `rule` nested. A field that is missing or None is valid.
    """
    return _invalid(event, WORDS, LEAST)


def invalid_security_event(event: Mapping[str, Any]) -> str | None:
    """Return the same for a security event."""
    return _invalid(event, SECURITY_WORDS, SECURITY_LEAST)


def _invalid(
    event: Mapping[str, Any], words: Mapping[str, tuple[str, ...]], least: Mapping[str, int]
) -> str | None:
    return next(_reasons(event, words, least), None)


def _reasons(
    event: Mapping[str, Any], words: Mapping[str, tuple[str, ...]], least: Mapping[str, int]
) -> Iterator[str]:
    for name, known in words.items():
        value = _value(event, name)
        if value is not None and value not in known:
            yield f"{INVALID}: {name} {value}" if _SHOWN.fullmatch(value) else f"{INVALID}: {name}"
    for name, form in _FORMS.items():
        value = event.get(name)
        if value is not None and form.fullmatch(value) is None:
            yield f"{INVALID}: {name}"
    for name, smallest in least.items():
        value = event.get(name)
        if value is not None and value < smallest:
            yield f"{INVALID}: {name} {value}"


def _value(event: Mapping[str, Any], dotted_name: str) -> Any:
    value: Any = event
    for name in dotted_name.split("."):
        value = None if value is None else value.get(name)
    return value
