"""The requests of one connection that may come again, and one that did."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from kustos.acl import AclOperation, ResourceType
from kustos.authorizer import Decision
from kustos.protocol.exchange import Decided, Decider, Exchange, are_still_allowed
from kustos.protocol.opened import Opened
from kustos.protocol.repeated.exact import ExactExchange, watch
from kustos.protocol.repeated.produce import ProduceShape
from kustos.wire import ApiKey, WireError, without_correlation_id

PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")

SHAPES_MAX: Final = 4
"""Shapes kept for a connection: a producer with several partitions names them in turning order."""

EXACT_MAX: Final = 2
"""Other requests kept for a connection: a consumer repeats a heartbeat at its coordinator, and a Metadata."""

EXACT_REQUEST_BYTES_MAX: Final = 1024
"""The largest of these: it bounds what is hashed to look for it."""

DECISIONS_MAX: Final = 16
"""The most decisions of a request that is kept: each has a line of the audit log with it, some 2 KB."""

TRIES: Final = 8
TRY_AGAIN_AFTER: Final = 100
"""After so many requests of an API that never came again, a connection keeps one of a hundred: keeping costs
as much as a repetition saves."""

Repeatable: TypeAlias = ProduceShape | ExactExchange


@dataclass(slots=True)
class Repetition:
    """A request that repeats one that passed, by the same ACLs."""

    known: Repeatable
    frame: bytes = field(repr=False)
    decider: Decider
    correlation_id: int
    """The number that the client gave it."""

    def is_still_allowed(self) -> bool:
        """Return whether every decision that lets it pass would still allow it."""
        return are_still_allowed(self.known.granted, self.decider, self.known.version)


@dataclass(slots=True)
class RepeatedRequests:
    """The requests of one connection that may come again."""

    shapes: deque[ProduceShape] = field(default_factory=lambda: deque(maxlen=SHAPES_MAX))
    """Those of Produce, the newest first."""
    exact: dict[bytes, ExactExchange] = field(default_factory=dict, repr=False)
    """Others, by their bytes without the correlation id, the one used last at the end."""
    _in_vain: dict[int, int] = field(default_factory=dict)
    """How many requests of an API were not repeated since the last that was."""

    def find(self, frame: bytes, version: int | None) -> Repeatable | None:
        """Return what a frame repeats; `version` is the decider's now."""
        if frame.startswith(PRODUCE):
            shape = self._find_shape(frame, version)
            return None if shape is None or shape.answers is None else shape
        if not self.exact or len(frame) > EXACT_REQUEST_BYTES_MAX:
            return None
        key = without_correlation_id(frame)
        exact = self.exact.pop(key, None)
        if exact is None or exact.version != version:
            return None
        self.exact[key] = exact
        return exact

    def _find_shape(self, frame: bytes, version: int | None) -> ProduceShape | None:
        for shape in self.shapes:
            if shape.version == version:
                try:
                    if shape.matches(frame):
                        return shape
                except WireError:
                    # the usual way says what is wrong
                    return None
        return None

    def keep_shape(self, frame: bytes, exchange: Exchange) -> ProduceShape | None:
        """Return the shape of a Produce that passed as it came, with all that was decided about it.

        None if it is not kept.
        """
        known = self._find_shape(frame, exchange.since_version)
        if known is not None:
            return known
        if len(exchange.granted) > DECISIONS_MAX or not self._count_in_vain(ApiKey.PRODUCE):
            return None
        shape = ProduceShape.of(frame, exchange)
        if shape is not None:
            self.shapes.appendleft(shape)
        return shape

    def watch(self, opened: Opened) -> None:
        """Keep the exchange of a request that begins, unless it is large or seldom repeated."""
        frame = opened.frame
        if len(frame) <= EXACT_REQUEST_BYTES_MAX and self._count_in_vain(opened.row.api_key):
            # of a copy, as a handler that holds the request it belongs to is a reference cycle
            opened.handler = watch(replace(opened), partial(self._keep, without_correlation_id(frame)))

    def _keep(self, key: bytes, exchange: ExactExchange) -> None:
        self.exact.pop(key, None)
        if len(exchange.decided) <= DECISIONS_MAX:
            if len(self.exact) == EXACT_MAX:
                del self.exact[next(iter(self.exact))]
            self.exact[key] = exchange

    def _count_in_vain(self, api_key: int) -> bool:
        """Count a request that repeats none, or got another answer; return whether to keep it."""
        tries = self._in_vain[api_key] = self._in_vain.get(api_key, 0) + 1
        return tries <= TRIES or not tries % TRY_AGAIN_AFTER

    def worked(self, api_key: int) -> None:
        """Note that a request of this API was repeated, and its answer passed on."""
        self._in_vain.pop(api_key, None)

    def drop(self, repetition: Repetition) -> None:
        """Forget a request that upstream answers otherwise now. The shape of a Produce learns from that."""
        if isinstance(repetition.known, ExactExchange):
            self.exact.pop(without_correlation_id(repetition.frame), None)

    def forget(self) -> None:
        """Forget everything, since the requester changed."""
        self.shapes.clear()
        self.exact.clear()


class RecalledDecider:
    """Gives the decisions about an earlier request once more, in order, for one that repeats it."""

    def __init__(self, known: Repeatable) -> None:
        self.version: Final = known.version
        self._decided: Final[Iterator[Decided]] = iter(known.decided)

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return what was decided; raise `RuntimeError` if that was another question."""
        return self._recall(operation, resource_type, name)

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return what was decided; raise `RuntimeError` if that was another question."""
        return self._recall(operation, resource_type, None)

    def _recall(self, operation: AclOperation, resource_type: ResourceType, name: str | None) -> Decision:
        decided = next(self._decided, None)
        if decided is None or (
            (decided.action.operation, decided.action.resource_type, decided.name)
            != (operation, resource_type, name)
        ):
            raise RuntimeError("a repeated request asks what the first one did not ask")
        return decided.decision
