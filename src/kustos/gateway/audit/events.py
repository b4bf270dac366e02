"""Makes audit events: JSON lines whose ids count up from the start of the process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple
from uuid import UUID

from kustos.authorizer import AuthorizableRequestContext, SecurityEvent
from kustos.authorizer.audit import JsonLines
from kustos.protocol import Decided
from kustos.runtime import Entropy
from kustos.wire import api_name

_VERSION: Final = 0x8 << 12
_FREE_OF_VERSION: Final = ~(0xF << 12)
_VARIANT: Final = 0b10 << 62
_FREE_OF_VARIANT: Final = (1 << 62) - 1
"""An event id is a UUID of version 8, with custom content (RFC 9562): a random half and a number."""

_NODE_BITS: Final = 48
_NODE: Final = (1 << _NODE_BITS) - 1
"""The last group of a UUID's text; the group before it has the 16 bits above."""


class RequestEvents(NamedTuple):
    """The events of one request's decisions at `time_ms`; `number` is the number of the first event."""

    number: int
    time_ms: int
    context: AuthorizableRequestContext
    decided: Sequence[Decided]
    acl_offset: int
    change_offset: int | None = None
    """The offset of the request's change in the metadata log; None if unknown."""
    latency_us: int | None = None
    """Microseconds from the request to its decisions; None for decisions of several requests."""


class RepeatedRequest(NamedTuple):
    """Makes the events of requests that repeat one: they differ in ids, times and offset of the ACLs."""

    template: bytes
    """A `%` format of the lines."""
    events: int

    def lines(
        self, number: int, time_ms: int, correlation_id: int, acl_offset: int, latency_us: int
    ) -> bytes:
        """Return the events of one request as JSON lines, each with a line feed."""
        values: list[int] = []
        for each in range(number, number + self.events):
            half = each & _FREE_OF_VARIANT | _VARIANT
            values += half >> _NODE_BITS, half & _NODE, time_ms, correlation_id, acl_offset, latency_us
        return self.template % tuple(values)


@dataclass(frozen=True, slots=True)
class AuditEvents:
    """Makes the events of one process. One thread at a time may use it."""

    node_id: int
    random_half: int
    """64 random bits of this process, so that event ids of two runs never collide."""
    cluster_id: str | None = None
    _ids_begin: str = field(init=False, repr=False, compare=False)
    """The text of the random half, with which all ids of this process begin."""
    _writer: JsonLines = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        half = f"{self.random_half & _FREE_OF_VERSION | _VERSION:016x}"
        object.__setattr__(self, "_ids_begin", f"{half[:8]}-{half[8:12]}-{half[12:]}-")
        object.__setattr__(self, "_writer", JsonLines(self.node_id, self.cluster_id))

    @classmethod
    def of_node(cls, node_id: int, entropy: Entropy, cluster_id: str | None = None) -> "AuditEvents":
        """Return the instance for this run of a node."""
        return cls(node_id, int.from_bytes(entropy.token_bytes(8), "big"), cluster_id)

    def event_id(self, number: int) -> UUID:
        """Return the id of the event with this number; numbers count the events of the process."""
        return UUID(self.event_id_text(number))

    def json_lines(self, request: RequestEvents) -> Iterator[str]:
        """Yield the JSON line of each event of a request, without a line feed."""
        number, time_ms, context, decided, acl_offset, change_offset, latency_us = request
        ids = map(self.event_id_text, count(number))
        name, of_request = api_name(context.request_type), (time_ms, acl_offset, change_offset, latency_us)
        return self._writer.lines(context, name, decided, ids, *of_request)

    def lines(self, request: RequestEvents) -> bytes:
        """Return the events of a request as JSON lines, each with a line feed."""
        return "".join(f"{line}\n" for line in self.json_lines(request)).encode()

    def security_line(self, number: int, event: SecurityEvent) -> bytes:
        """Return the JSON line of a security event, with a line feed."""
        event_id = self.event_id_text(number)
        line = event.to_json(event_id=event_id, node_id=self.node_id, cluster_id=self.cluster_id)
        return f"{line}\n".encode()

    def event_id_text(self, number: int) -> str:
        """Return the id as text; faster than formatting a `UUID`."""
        half = f"{number & _FREE_OF_VARIANT | _VARIANT:016x}"
        return f"{self._ids_begin}{half[:4]}-{half[4:]}"

    def repeated(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> RepeatedRequest:
        """Return the maker of events for requests that repeat this one."""
        name, event_id = api_name(context.request_type), f"{self._ids_begin}%04x-%012x"
        return RepeatedRequest(self._writer.template(context, name, decided, event_id), len(decided))


def text_lines(lines: bytes) -> list[str]:
    """Return JSON lines, each with a line feed, as texts without line feeds."""
    return lines.decode().split("\n")[:-1]
