"""The formats in which a sink writes an event: kustos' own line, or the same in an envelope that others read.

CloudEvents 1.0 in JSON, structured mode: the event is the `data`. OCSF: see `ocsf`. Each is made from the
event's own line, so it says nothing else, and also what a killed process left can be written.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, unique
from typing import Any, Final

from kustos.authorizer.audit.events import visible
from kustos.authorizer.audit.lines import json_text
from kustos.authorizer.audit.ocsf import ocsf_of

CLOUDEVENTS_TYPES: Final = "kustos.audit."
"""What the types of events begin with."""

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


def formatter(name: AuditFormat) -> Callable[[str], str]:
    """Return what makes a line of this format from an event's own line; both are one line of JSON."""
    return _FORMATTERS[name]


def cloudevent(line: str) -> str:
    """Return an event in an envelope of CloudEvents 1.0."""
    event = json.loads(line)
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


def _subject(event: dict[str, Any]) -> str:
    """Return what an event is about; empty for a login, which is about nothing but who logs in.

    CloudEvents allows neither control characters nor lone surrogates in it: they become escapes.
    """
    if "event_type" in event:
        text = event["subject"] or ""
    else:
        name = event["resource_name"]
        text = event["resource_type"] if name is None else f"{event['resource_type']}:{name}"
    return visible(text)[:SUBJECT_CHARACTERS_MAX]


def rfc3339(time_ms: int) -> str:
    """Return a time as RFC 3339 has it, in UTC, to the millisecond."""
    return (
        datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03}Z"
    )


def _ocsf(line: str) -> str:
    return json_text(ocsf_of(json.loads(line)))


def _as_it_is(line: str) -> str:
    return line


_FORMATTERS: Final[dict[AuditFormat, Callable[[str], str]]] = {
    AuditFormat.KUSTOS: _as_it_is,
    AuditFormat.CLOUDEVENTS: cloudevent,
    AuditFormat.OCSF: _ocsf,
}
