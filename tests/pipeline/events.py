"""Audit events as kustos writes them, made by hand from the table of fields."""

import json
from datetime import UTC, datetime
from typing import Any, Final

from kustos.authorizer.audit import AUDIT_FIELDS, SECURITY_FIELDS

NOW: Final = datetime.now(UTC)
NOW_MS: Final = int(NOW.timestamp() * 1000)
"""When the tests began, for answers that are of today: what was not used for long is dormant."""

_VALUES: dict[str, Any] = {
    "schema_version": 1,
    "event_id": "00000000-0000-0000-0000-000000000001",
    "time_ms": 1_795_233_600_123,
    "listener_name": "CLIENT",
    "security_protocol": "SASL_SSL",
    "principal_type": "User",
    "principal_name": "bob",
    "host": "10.0.0.7",
    "api_key": 1,
    "api_name": "Fetch",
    "api_version": 17,
    "client_id": None,
    "resource_type": "TOPIC",
    "resource_name": "payments",
    "operation": "READ",
    "decision": "ALLOWED",
    "rule.kind": "SuperUser",
    "access": "ACCESS",
    "acl_offset": 42,
    "reference_count": 1,
    "log_if_allowed": True,
    "log_if_denied": True,
    "distinct_names": None,
    "decision_count": None,
}
_DEFAULTS: dict[str, Any] = {"string": None, "int": 0, "long": 0, "boolean": False, "timestamp_ms": 0}


def event(**changes: Any) -> dict[str, Any]:
    """Return one event with all fields, nested; a change `rule__kind` is `rule.kind`."""
    changed = {name.replace("__", "."): value for name, value in changes.items()}
    nested: dict[str, Any] = {}
    for field in AUDIT_FIELDS:
        value = changed.pop(field.name, _VALUES.get(field.name, _DEFAULTS[field.kind]))
        target = nested
        *path, last = field.name.split(".")
        for part in path:
            target = target.setdefault(part, {})
        target[last] = value
    assert not changed, f"no such fields: {changed}"
    return nested


def event_line(number: int = 1, **changes: Any) -> str:
    """Return an event as its JSON line, with an event id made of `number`."""
    return json.dumps(event(event_id=f"00000000-0000-0000-0000-{number:012d}", **changes))


_LOGIN: dict[str, Any] = {
    "schema_version": 2,
    "event_id": "00000000-0000-0000-0000-000000000001",
    "event_type": "LOGIN",
    "time_ms": 1_795_233_600_123,
    "first_time_ms": 1_795_233_600_123,
    "node_id": 1,
    "listener_name": "CLIENT",
    "security_protocol": "SASL_SSL",
    "token_authenticated": False,
    "host": "10.0.0.7",
    "mechanism": "SCRAM-SHA-256",
    "result": "FAILURE",
    "failure": "invalid client credentials",
    "claimed_name": "bob",
    "attempt_count": 1,
}


def login(**changes: Any) -> dict[str, Any]:
    """Return a login that failed, with all fields, as an event."""
    made = {field.name: _LOGIN.get(field.name) for field in SECURITY_FIELDS} | changes
    assert list(made) == [field.name for field in SECURITY_FIELDS]
    return made


def login_line(number: int = 1, **changes: Any) -> str:
    """Return a login as its JSON line, with an event id made of `number`."""
    return json.dumps(login(event_id=f"00000000-0000-0000-0002-{number:012d}", **changes))


def kafka_line(
    *,
    time: str = "2026-11-21 04:00:00,123",
    level: str = "DEBUG",
    principal: str = "User:bob",
    result: str = "Allowed",
    resource: str = "Topic:LITERAL:payments",
    count: int = 1,
    rule: str = "SuperUser",
) -> str:
    """Return a line in the form of Kafka's authorizer logger."""
    return (
        f"[{time}] {level} Principal = {principal} is {result} operation = READ from host = 127.0.0.1 "
        f"on resource = {resource} for request = Fetch with resourceRefCount = {count} "
        f"based on rule {rule} (kafka.authorizer.logger)"
    )
