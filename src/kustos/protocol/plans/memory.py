"""The plans that a connection keeps for requests that may be repeated."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from kustos.acl import AclOperation, ResourceType
from kustos.authorizer import Decision
from kustos.protocol.exchange import Decided
from kustos.protocol.opened import Opened
from kustos.protocol.plans.plan import Plan, planned
from kustos.protocol.plans.produce import ProduceShape
from kustos.wire import ApiKey, without_correlation_id

K = TypeVar("K")

PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")

SHAPES_MAX: Final = 4
"""Shapes of Produce kept for a connection: a producer names its partitions in rotating order."""

EXACT_MAX: Final = 2
"""Other requests kept for a connection: a consumer repeats a heartbeat to its coordinator, and a Metadata."""

EXACT_REQUEST_BYTES_MAX: Final = 1024
"""The largest such request; this bounds the bytes hashed by a lookup."""

TRIES: Final = 8
TRY_AGAIN_AFTER: Final = 100
"""After this many requests of an API without a repetition, a connection keeps only one plan per this many
requests: keeping a plan costs as much as a repetition saves."""


@dataclass(slots=True)
class KeptPlans:
    """The plans of one connection."""

    produce: dict[ProduceShape, Plan] = field(default_factory=dict, repr=False)
    """The plans of Produce, the newest last."""
    exact: dict[bytes, Plan] = field(default_factory=dict, repr=False)
    """The plans of other requests, by their bytes without the correlation id, the most recently used last."""
    in_vain: dict[int, int] = field(default_factory=dict)
    """API key → requests without a repetition since a plan last forwarded an answer."""

    def find(self, frame: bytes, version: int | None) -> Plan | None:
        """Return the plan of the request in a frame; `version`: the decider's current version."""
        if frame.startswith(PRODUCE):
            for shape, plan in self.produce.items():
                if plan.version == version and shape.matches(frame):
                    return plan
            return None
        if not self.exact or len(frame) > EXACT_REQUEST_BYTES_MAX:
            return None
        key = without_correlation_id(frame)
        exact = self.exact.pop(key, None)
        if exact is None or exact.version != version:
            return None
        self.exact[key] = exact
        return exact

    def watch(self, opened: Opened) -> None:
        """Keep the plan of a request when it completes, unless it is large or rarely repeated."""
        frame, api_key = opened.frame, opened.row.api_key
        if (api_key != ApiKey.PRODUCE and len(frame) > EXACT_REQUEST_BYTES_MAX) or not self._tries(api_key):
            return
        # a copy, since a handler that references its own request would be a reference cycle
        watched = replace(opened)
        if api_key == ApiKey.PRODUCE:
            opened.handler = planned(watched, partial(self._keep_produce, watched))
        else:
            opened.handler = planned(watched, partial(self._keep_exact, without_correlation_id(frame)))

    def _keep_produce(self, opened: Opened, plan: Plan) -> None:
        if (shape := ProduceShape.of(opened.frame, opened.exchange)) is not None:
            _put(self.produce, shape, plan, SHAPES_MAX)

    def _keep_exact(self, key: bytes, plan: Plan) -> None:
        _put(self.exact, key, plan, EXACT_MAX)

    def _tries(self, api_key: int) -> bool:
        """Count a request without a plan, or with another answer; return whether to keep its plan."""
        tries = self.in_vain[api_key] = self.in_vain.get(api_key, 0) + 1
        return tries <= TRIES or not tries % TRY_AGAIN_AFTER

    def drop(self, plan: Plan) -> None:
        """Forget a plan whose request now gets another answer from upstream."""
        self.produce = {shape: kept for shape, kept in self.produce.items() if kept is not plan}
        self.exact = {key: kept for key, kept in self.exact.items() if kept is not plan}

    def forget(self) -> None:
        """Forget everything, since the requester changed."""
        self.produce.clear()
        self.exact.clear()


def _put(plans: dict[K, Plan], key: K, plan: Plan, most: int) -> None:
    """Keep a plan as the newest; forget the oldest beyond `most`."""
    plans.pop(key, None)
    if len(plans) == most:
        del plans[next(iter(plans))]
    plans[key] = plan


class RecalledDecider:
    """Replays the decisions of a plan, in order, for a request that repeats it."""

    def __init__(self, plan: Plan) -> None:
        self.version: Final = plan.version
        self._decided: Final[Iterator[Decided]] = iter(plan.decided)

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
