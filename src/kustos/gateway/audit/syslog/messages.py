"""Audit events as messages of syslog (RFC 5424).

A message is a header and the event as JSON. Texts that a client chose are only in the JSON, which is ASCII
with all other characters escaped: no name can end a message, look like another message, or break the
encoding. The structured data only names the program that wrote the message.
"""

import json
import re
import socket
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kustos.authorizer.audit import AuditFormat, formatter, rfc3339
from kustos.gateway.audit.batches import cut_texts
from kustos.gateway.audit.events import text_lines

FACILITIES: Final = {
    "user": 1,
    "auth": 4,
    "authpriv": 10,
    "audit": 13,
    **{f"local{number}": 16 + number for number in range(8)},
}
"""Names of facilities that suit an audit trail (RFC 5424, table 1)."""

WARNING, NOTICE, INFORMATIONAL = 4, 5, 6
"""Severities: of denials and failed logins, of changes, and of all other events."""

VERSION: Final = 1
APP_NAME: Final = "kustos"
HOST_NAME_CHARACTERS_MAX: Final = 255

UNPRINTABLE: Final = re.compile(r"[^\x21-\x7e]")

TEXT_CHARACTERS: Final = (249, 32)
"""The lengths to which the texts of a message that is too large are cut: first as in a topic, then
shorter."""


class SyslogMessage(NamedTuple):
    """A message without framing; `is_shortened`: its long texts are cut."""

    data: bytes
    is_shortened: bool


@dataclass(frozen=True, slots=True)
class SyslogMessages:
    """Makes messages of at most `max_bytes`, or larger if an event does not fit even with its texts cut."""

    facility: int
    line_format: AuditFormat
    max_bytes: int
    host_name: str

    @classmethod
    def of_host(cls, facility: str, line_format: AuditFormat, max_bytes: int) -> "SyslogMessages":
        """Return the instance of this machine."""
        return cls(FACILITIES[facility], line_format, max_bytes, header_text(socket.gethostname()))

    def of_lines(self, lines: bytes) -> list[SyslogMessage]:
        """Return the message of each event."""
        return list(map(self._message, text_lines(lines)))

    def _message(self, line: str) -> SyslogMessage:
        event: dict[str, Any] = json.loads(line)
        header, in_format = self._header(event), formatter(self.line_format)
        message = header + _ascii(in_format(line, event))
        for characters in TEXT_CHARACTERS:
            if len(message) <= self.max_bytes:
                break
            shorter = cut_texts(event, characters)
            message = header + _ascii(in_format(json.dumps(shorter), shorter))
        else:
            return SyslogMessage(message, is_shortened=True)
        return SyslogMessage(message, is_shortened=characters != TEXT_CHARACTERS[0])

    def _header(self, event: dict[str, Any]) -> bytes:
        priority = self.facility * 8 + _severity(event)
        kind = event.get("event_type", "DECISION")
        text = (
            f"<{priority}>{VERSION} {rfc3339(event['time_ms'])} {self.host_name} {APP_NAME} "
            f"{event['node_id']} {kind} {ORIGIN} "
        )
        return text.encode("ascii")


def _ascii(line: str) -> bytes:
    """Return a line of JSON in ASCII: a message without a byte order mark is ASCII (6.4)."""
    return (line if line.isascii() else json.dumps(json.loads(line), separators=(",", ":"))).encode("ascii")


def _severity(event: dict[str, Any]) -> int:
    if "event_type" in event:
        if event["result"] == "FAILURE":
            return WARNING
        return INFORMATIONAL if event["change"] is None else NOTICE
    refuses = event["access"] == "ACCESS" and (event["log_if_denied"] or event["resource_name"] is None)
    is_denied = event["decision"] != "ALLOWED" and refuses
    return WARNING if is_denied or event.get("shadow_decision") else INFORMATIONAL


def header_text(text: str) -> str:
    """Return a text as a field of a header: printable ASCII without spaces, `-` for an empty one."""
    return UNPRINTABLE.sub("", text)[:HOST_NAME_CHARACTERS_MAX] or "-"


def parameter_value(text: str) -> str:
    """Return a text as the value of a parameter of structured data: three characters are escaped (6.3.3)."""
    return re.sub(r'(["\\\]])', r"\\\1", text)


def _origin() -> str:
    from kustos import __version__

    return f'[origin software="{APP_NAME}" swVersion="{parameter_value(__version__)}"]'


ORIGIN: Final = _origin()
"""The structured data of each message: an element that the RFC itself defines (7.2)."""
