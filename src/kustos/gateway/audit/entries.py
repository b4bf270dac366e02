"""Audit entries, and how they become events.

An entry holds the decisions of one request and their context, or one security event, not formatted yet. Each
sink makes the events of an entry by itself, and all must make the same ones: an event's id follows from the
entry's number.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from kustos.authorizer import AuthorizableRequestContext, SecurityEvent
from kustos.authorizer.audit import (
    AUDITED_NAME_CHARACTERS_MAX,
    AuditFormat,
    JsonLines,
    LineOfRepetition,
    audited_name,
    formatter,
)
from kustos.protocol import Decided
from kustos.runtime import Entropy
from kustos.wire import api_name

_VERSION: Final = 0x8 << 12
_FREE_OF_VERSION: Final = ~(0xF << 12)
_VARIANT: Final = 0b10 << 62
_FREE_OF_VARIANT: Final = (1 << 62) - 1
"""A UUID of version 8, with custom content (RFC 9562): a random half and a number."""


def with_logged_names(decided: tuple[Decided, ...]) -> tuple[Decided, ...]:
    """Return decisions with their names as they are logged.

    Clients choose names of up to 32,767 characters, and tens of thousands of decisions wait in a lane.
    """
    if all(len(item.action.resource_name) <= AUDITED_NAME_CHARACTERS_MAX for item in decided):
        return decided
    return tuple(_with_logged_name(item) for item in decided)


def _with_logged_name(item: Decided) -> Decided:
    name = audited_name(item.action.resource_name)
    return item._replace(
        action=replace(item.action, resource_name=name), name=None if item.name is None else name
    )


class AuditEntry(NamedTuple):
    """The decisions of one request, taken at `time_ms`; `number` is that of the first one."""

    number: int
    time_ms: int
    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    acl_offset: int
    change_offset: int | None = None
    """The offset of the request's change in the metadata log, if it is known."""
    latency_us: int | None = None
    """Microseconds from the request to its decisions; None for decisions of several requests."""
    encoded: bytes | None = None
    """Its JSON lines, each with a line feed, if they were formatted already."""

    @property
    def size(self) -> int:
        """The number of its events."""
        return len(self.decided)

    @property
    def key(self) -> str:
        """The principal, as a record's key."""
        return str(self.context.principal)


class SecurityEntry(NamedTuple):
    """One security event, with its number."""

    number: int
    event: SecurityEvent

    @property
    def size(self) -> int:
        """The number of its events."""
        return 1

    @property
    def key(self) -> str:
        """The principal, as a record's key; empty if nobody was authenticated."""
        return "" if self.event.principal is None else str(self.event.principal)

    @property
    def time_ms(self) -> int:
        """When it happened."""
        return self.event.time_ms


class RecoveredEntry(NamedTuple):
    """One event that an earlier process took but did not write, as its JSON line."""

    line: str
    event_id: str
    key: str
    time_ms: int

    @classmethod
    def of(cls, line: str) -> "RecoveredEntry":
        """Return the entry of a line; raise ValueError, KeyError or TypeError if it is none."""
        event = json.loads(line)
        name = event["principal_name"]
        key = "" if name is None else f"{event['principal_type']}:{name}"
        return cls(line, str(event["event_id"]), key, int(event["time_ms"]))

    @property
    def size(self) -> int:
        """The number of its events."""
        return 1


class RepeatedEntry(NamedTuple):
    """Makes the entries of requests that repeat one: they differ in time, numbers, and offset of the ACLs.

    `context` is that of the first request; sinks that need a correlation id find it in the lines.
    """

    events: "AuditEvents"
    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    lines: tuple[LineOfRepetition, ...]

    def entry(
        self, number: int, time_ms: int, correlation_id: int, acl_offset: int, latency_us: int
    ) -> AuditEntry:
        """Return the entry of one request."""
        event_id_text = self.events.event_id_text
        text = ""
        # most have one line, for which a comprehension costs more than this
        for at, line in enumerate(self.lines):
            text += f"{line(event_id_text(number + at), time_ms, correlation_id, acl_offset, latency_us)}\n"
        encoded = text.encode()
        return AuditEntry(number, time_ms, self.context, self.decided, acl_offset, None, latency_us, encoded)


Entry: TypeAlias = AuditEntry | SecurityEntry | RecoveredEntry


@dataclass(frozen=True, slots=True)
class AuditEvents:
    """Makes events from entries, the same ones each time."""

    node_id: int
    random_half: int
    """64 random bits of this process, so that no two runs give the same id."""
    cluster_id: str | None = None
    _ids_begin: str = field(init=False, repr=False, compare=False)
    """The random half, as all ids of this process begin."""

    def __post_init__(self) -> None:
        half = f"{self.random_half & _FREE_OF_VERSION | _VERSION:016x}"
        object.__setattr__(self, "_ids_begin", f"{half[:8]}-{half[8:12]}-{half[12:]}-")

    @classmethod
    def of_node(cls, node_id: int, entropy: Entropy, cluster_id: str | None = None) -> "AuditEvents":
        """Return the instance for this run of a node."""
        return cls(node_id, int.from_bytes(entropy.token_bytes(8), "big"), cluster_id)

    def writer(self) -> JsonLines:
        """Return a writer of lines, for one thread."""
        return JsonLines(self.node_id, self.cluster_id)

    def event_id(self, number: int) -> UUID:
        """Return the id of the event with this number, counted since the process began."""
        return UUID(self.event_id_text(number))

    def json_lines(self, entry: Entry, writer: JsonLines | None = None) -> Iterator[str]:
        """Yield the JSON line of each event, without a line feed.

        A sink hands in its own `writer`, which remembers texts from call to call.
        """
        if isinstance(entry, RecoveredEntry):
            return iter((entry.line,))
        if isinstance(entry, SecurityEntry):
            event_id = self.event_id_text(entry.number)
            line = entry.event.to_json(event_id=event_id, node_id=self.node_id, cluster_id=self.cluster_id)
            return iter((line,))
        if entry.encoded is not None:
            return iter(entry.encoded.decode().split("\n")[:-1])
        writer = writer or self.writer()
        ids = map(self.event_id_text, count(entry.number))
        of_request = entry.time_ms, entry.acl_offset, entry.change_offset, entry.latency_us
        name = api_name(entry.context.request_type)
        return writer.lines(entry.context, name, entry.decided, ids, *of_request)

    def formatted_lines(self, entry: Entry, writer: JsonLines, name: AuditFormat) -> Iterator[str]:
        """Yield the line of each event in a format, without a line feed."""
        return map(formatter(name), self.json_lines(entry, writer))

    def encoded(self, entry: Entry, writer: JsonLines, name: AuditFormat = AuditFormat.KUSTOS) -> bytes:
        """Return the lines of an entry in a format, each with a line feed."""
        if name is AuditFormat.KUSTOS and isinstance(entry, AuditEntry) and entry.encoded is not None:
            return entry.encoded
        return "".join(f"{line}\n" for line in self.formatted_lines(entry, writer, name)).encode()

    def event_id_text(self, number: int) -> str:
        """Return the id as text, sooner than a `UUID` gives it."""
        half = f"{number & _FREE_OF_VARIANT | _VARIANT:016x}"
        return f"{self._ids_begin}{half[:4]}-{half[4:]}"

    def repeated(
        self, context: AuthorizableRequestContext, decided: tuple[Decided, ...], writer: JsonLines
    ) -> RepeatedEntry:
        """Return what makes the entries of requests that repeat one."""
        lines = writer.repeated(context, api_name(context.request_type), decided)
        return RepeatedEntry(self, context, decided, lines)
