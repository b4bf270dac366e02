"""The formats in which a sink writes an event: kustos' own line, or an envelope that other tools read.

CloudEvents 1.0 in JSON, structured mode: the event is the `data`. OCSF: see `ocsf`. Each format is converted
from the event's own line and has the same content, so the events of a killed process can be written in any
format.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum, unique
from typing import Any, Final

from kustos.authorizer.audit.events import visible
from kustos.authorizer.audit.lines import json_text
from kustos.authorizer.audit.ocsf import ocsf_of

CLOUDEVENTS_TYPES: Final = "kustos.audit."
"""The prefix of the types of events."""

SUBJECT_CHARACTERS_MAX: Final = 512


@unique
class AuditFormat(Enum):
    """A format of events."""

    KUSTOS = "kustos"
    CLOUDEVENTS = "cloudevents"
    OCSF = "ocsf"

    @property
    def content_type(self) -> str:
        """The media type of a line."""
        return "application/cloudevents+json" if self is AuditFormat.CLOUDEVENTS else "application/json"


Formatter = Callable[[str, dict[str, Any]], str]
"""Returns a line of JSON from an event's own line and the object in that line."""


def formatter(name: AuditFormat) -> Formatter:
    """Return the function that makes the lines of a format."""
    return _FORMATTERS[name]


def cloudevent(line: str, event: Mapping[str, Any]) -> str:
    """Return an event in an envelope of CloudEvents 1.0."""
    attributes = {
        "specversion": "1.0",
        "id": event["event_id"],
        "source": f"urn:kustos:node:{event['node_id']}",
        "type": CLOUDEVENTS_TYPES + str(event.get("event_type", "DECISION")).lower(),
        "time": rfc3339(event["time_ms"]),
        "datacontenttype": "application/json",
    }
    subject = _subject(event)
    if subject:
        attributes["subject"] = subject
    head = json_text(attributes).removesuffix("}")
    return f'{head},"data":{line}}}'


def _subject(event: Mapping[str, Any]) -> str:
    """Return the subject of an event; empty for a login, whose only subject is the client.

    CloudEvents allows neither control characters nor lone surrogates in a subject: they become escapes.
    """
    if "event_type" in event:
        text = event["subject"] or ""
    else:
        name = event["resource_name"]
        text = event["resource_type"] if name is None else f"{event['resource_type']}:{name}"
    return visible(text)[:SUBJECT_CHARACTERS_MAX]


def rfc3339(time_ms: int) -> str:
    """Return a time in the form of RFC 3339, in UTC, with milliseconds."""
    return (
        datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03}Z"
    )


def _ocsf(_line: str, event: dict[str, Any]) -> str:
    return json_text(ocsf_of(event))


def _own_line(line: str, _event: dict[str, Any]) -> str:
    return line


_FORMATTERS: Final[dict[AuditFormat, Formatter]] = {
    AuditFormat.KUSTOS: _own_line,
    AuditFormat.CLOUDEVENTS: cloudevent,
    AuditFormat.OCSF: _ocsf,
}
