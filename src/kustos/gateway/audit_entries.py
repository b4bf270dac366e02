"""What waits to be audited, and how it becomes events.

An entry is all that the decisions of one request share, kept as it was: on the event loop nothing is
formatted. Its events are made later, once for each sink, and must be equal for all: an event's id
follows from the entry's number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple
from uuid import UUID

from kustos.authorizer import AuthorizableRequestContext
from kustos.authorizer.audit import Access, AuditEvent
from kustos.gateway.audit_json_lines import JsonLines
from kustos.protocol.exchange import Decided
from kustos.runtime import Entropy
from kustos.wire.api_keys import api_name

_VERSION_AND_VARIANT: Final = (0x8 << 76) | (0b10 << 62)
_FREE_BITS: Final = ~((0xF << 76) | (0b11 << 62))
"""A UUID of version 8, whose content is its maker's own (RFC 9562): a random half, and a number."""


class AuditEntry(NamedTuple):
    """The decisions of one request, taken at `time_ms`; `number` is that of the first of them."""

    number: int
    time_ms: int
    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    acl_offset: int
    change_offset: int | None = None
    """Where the log has what the request changed, if it is known."""


@dataclass(frozen=True, slots=True)
class AuditEvents:
    """Makes events of entries: the same ones each time."""

    node_id: int
    random_half: int
    """64 random bits of this process, so that no two runs give the same id."""

    @classmethod
    def of_node(cls, node_id: int, entropy: Entropy) -> "AuditEvents":
        """Return the maker for this run of a node."""
        return cls(node_id, int.from_bytes(entropy.token_bytes(8), "big"))

    def event_id(self, number: int) -> UUID:
        """Return the id of the event with this number, counted since the process began."""
        return UUID(int=self._event_id(number))

    def _event_id(self, number: int) -> int:
        return ((self.random_half << 64 | number) & _FREE_BITS) | _VERSION_AND_VARIANT

    def events(self, entry: AuditEntry) -> Iterator[AuditEvent]:
        """Yield the event of each decision."""
        name = api_name(entry.context.request_type)
        for number, decided in enumerate(entry.decided, start=entry.number):
            yield AuditEvent.of(
                entry.context,
                decided.action,
                decided.decision,
                event_id=self.event_id(number),
                time_ms=entry.time_ms,
                node_id=self.node_id,
                api_name=name,
                acl_offset=entry.acl_offset,
                change_offset=entry.change_offset,
                access=Access.LISTING if decided.listing else Access.ACCESS,
                any_resource=decided.name is None,
            )

    def json_lines(self, entry: AuditEntry, writer: JsonLines | None = None) -> Iterator[str]:
        """Yield the JSON line of each decision, without a line feed.

        A sink hands in its own `writer`, which remembers texts from call to call.
        """
        writer = writer or JsonLines(self.node_id)
        ids = map(self._event_id_text, count(entry.number))
        offsets = entry.acl_offset, entry.change_offset
        return writer.lines(entry.context, entry.decided, ids, entry.time_ms, *offsets)

    def _event_id_text(self, number: int) -> str:
        digits = f"{self._event_id(number):032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
