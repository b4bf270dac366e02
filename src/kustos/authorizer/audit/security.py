"""Security events on identities and settings, as values and as lines of JSON.

Logins, ends of sessions by expiry, and changes of users, tokens and settings. Names in them come from
clients: they are truncated. No field is a secret: no password, proof, HMAC or value of a setting.
"""

import json
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any, Final

from kustos.acl import KafkaPrincipal
from kustos.authorizer.audit.events import schema_of
from kustos.authorizer.audit.fields import (
    SECURITY_FIELDS,
    SECURITY_SCHEMA_VERSION,
    SECURITY_TEXT_MAX_CHARACTERS,
)
from kustos.authorizer.audit.lines import line_writer


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
    """It was in flight when the event had to be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityEvent:
    """One event, or `attempt_count` equal ones; the fields are those of `SECURITY_FIELDS`."""

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

    def to_json(self, *, event_id: str, node_id: int) -> str:
        """Return the event as one line of JSON, fields in the table's order."""
        # escape everything: strangers choose these names, and other tools must not render their tricks
        return _LINE(self, event_id, node_id)


def cut(text: str) -> str:
    """Return a text truncated to the limit; a truncated one ends with `…`."""
    if len(text) <= SECURITY_TEXT_MAX_CHARACTERS:
        return text
    return f"{text[: SECURITY_TEXT_MAX_CHARACTERS - 1]}…"


def _ascii(text: str) -> str:
    return json.dumps(cut(text))


_LINE: Final = line_writer(
    "event, event_id, node_id",
    SECURITY_FIELDS,
    {"text": _ascii, "SECURITY_SCHEMA_VERSION": SECURITY_SCHEMA_VERSION},
)


def security_json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a security event, generated from `SECURITY_FIELDS`."""
    return schema_of(SECURITY_FIELDS, SECURITY_SCHEMA_VERSION, "security event")
