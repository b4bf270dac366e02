"""Security events on identities and settings, as values and as lines of JSON.

The events are logins, the expiry of sessions, and changes of users, tokens and settings. Clients choose names
in them, so names are truncated. No field is a secret: no password, proof, HMAC or value of a setting.
"""

import json
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any, Final

from kustos.acl import KafkaPrincipal
from kustos.authorizer.audit.events import schema_of
from kustos.authorizer.audit.fields import AuditField
from kustos.authorizer.audit.lines import line_writer

SECURITY_SCHEMA_VERSION: Final = 2
"""Schema version of security events, which are in the same files as decisions."""

SECURITY_TEXT_MAX_CHARACTERS: Final = 255
"""The longest text in a security event: a claimed name may have half a megabyte."""

SECURITY_FIELDS: Final[tuple[AuditField, ...]] = (
    AuditField("schema_version", "int", False, "version of this table", "SECURITY_SCHEMA_VERSION"),
    AuditField("event_id", "string", False, "unique id of the event (UUID text)", "event_id"),
    AuditField(
        "event_type",
        "string",
        False,
        "LOGIN, REAUTHENTICATION, SESSION_EXPIRY, USER_CHANGE, TOKEN_CHANGE or SETTING_CHANGE",
        "event.event_type.value",
    ),
    AuditField(
        "time_ms",
        "timestamp_ms",
        False,
        "time of the event, milliseconds since the epoch; for several attempts the time of the last one",
        "event.time_ms",
    ),
    AuditField("node_id", "int", False, "the kustos node where it happened", "node_id"),
    AuditField(
        "cluster_id",
        "string",
        True,
        "id of the node's cluster, as `meta.properties` has it",
        "cluster_id",
        came_later=True,
    ),
    AuditField(
        "listener_name",
        "string",
        False,
        "name of the listener that the client used; empty if no client took part",
        "event.listener_name",
    ),
    AuditField(
        "security_protocol", "string", False, "SASL_PLAINTEXT, SASL_SSL, ...", "event.security_protocol"
    ),
    AuditField(
        "principal_type",
        "string",
        True,
        "type of the principal that logged in or made the change; null if the client was not authenticated",
        "event.principal and event.principal.principal_type",
    ),
    AuditField(
        "principal_name", "string", True, "name of that principal", "event.principal and event.principal.name"
    ),
    AuditField(
        "token_authenticated",
        "boolean",
        False,
        "whether the principal logged in with a delegation token",
        "event.principal is not None and event.principal.token_authenticated",
    ),
    AuditField(
        "host",
        "string",
        True,
        "client address as Java's getHostAddress() writes it; null if no client took part, or if the event "
        "counts failures from many addresses",
        "event.host",
    ),
    AuditField(
        "mechanism",
        "string",
        True,
        "SASL mechanism of the login, or of the changed credential",
        "event.mechanism",
    ),
    AuditField(
        "result",
        "string",
        False,
        "SUCCESS, FAILURE, or UNKNOWN if the outcome of a change was not known yet",
        "event.result.value",
    ),
    AuditField("failure", "string", True, "reason of the failure, as text", "event.failure"),
    AuditField(
        "claimed_name",
        "string",
        True,
        "user name or token id that the login claimed, proven or not; null if there was none, or if the "
        "event counts failures with many names",
        "event.claimed_name",
    ),
    AuditField(
        "attempt_count",
        "long",
        False,
        "number of equal attempts that the event stands for",
        "event.attempt_count",
    ),
    AuditField("first_time_ms", "timestamp_ms", False, "time of the first attempt", "event.first_time_ms"),
    AuditField(
        "change",
        "string",
        True,
        "UPSERT, DELETE, CREATE, RENEW, EXPIRE, ALTER, or RELOAD of the properties file",
        "event.change",
    ),
    AuditField(
        "subject",
        "string",
        True,
        "changed user, token id, or resource of the changed settings",
        "event.subject",
    ),
    AuditField(
        "detail",
        "string",
        True,
        "groups of the client that logged in; keys of the changed settings, never their values; owner of the "
        "token",
        "event.detail",
    ),
)
"""Texts are truncated after 255 characters."""


@unique
class SecurityEventType(Enum):
    """The kind of event."""

    LOGIN = "LOGIN"
    REAUTHENTICATION = "REAUTHENTICATION"
    SESSION_EXPIRY = "SESSION_EXPIRY"
    USER_CHANGE = "USER_CHANGE"
    TOKEN_CHANGE = "TOKEN_CHANGE"  # noqa: S105 - a kind of event
    SETTING_CHANGE = "SETTING_CHANGE"


@unique
class SecurityResult(Enum):
    """The outcome of an event."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    UNKNOWN = "UNKNOWN"
    """The change had no outcome when the event was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityEvent:
    """One event, or `attempt_count` equal events, with the fields of `SECURITY_FIELDS`."""

    event_type: SecurityEventType
    result: SecurityResult
    time_ms: int
    first_time_ms: int
    listener_name: str
    security_protocol: str
    host: str | None
    principal: KafkaPrincipal | None = None
    mechanism: str | None = None
    failure: str | None = None
    claimed_name: str | None = None
    attempt_count: int = 1
    change: str | None = None
    subject: str | None = None
    detail: str | None = None

    def to_json(self, *, event_id: str, node_id: int, cluster_id: str | None = None) -> str:
        """Return the event as one line of JSON, fields in the table's order."""
        # everything is escaped: unauthenticated clients choose these names, and other tools display them
        return _LINE(self, event_id, node_id, cluster_id)


def cut(text: str) -> str:
    """Return a text truncated to the limit; a truncated text ends with `…`."""
    if len(text) <= SECURITY_TEXT_MAX_CHARACTERS:
        return text
    return f"{text[: SECURITY_TEXT_MAX_CHARACTERS - 1]}…"


def _ascii(text: str) -> str:
    return json.dumps(cut(text))


_LINE: Final = line_writer(
    "event, event_id, node_id, cluster_id",
    SECURITY_FIELDS,
    {"text": _ascii, "SECURITY_SCHEMA_VERSION": SECURITY_SCHEMA_VERSION},
)


def security_json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a security event, generated from `SECURITY_FIELDS`."""
    return schema_of(SECURITY_FIELDS, SECURITY_SCHEMA_VERSION, "security event")
