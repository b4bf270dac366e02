"""The trial of candidate ACLs: compares each decision with the candidate's.

The trial gets the guard's final decisions before they reach the audit log: it cannot change an answer, and
its errors have no other effect. Each decision is counted as SAME, LOST (allowed now, the candidate denies),
GAINED (the reverse) or ERROR (no answer: not loaded, or a fault). So the counts are exact, and a missing
answer never counts as agreement. The cost is one more look-up in a compiled index for each decision, within
the same turns of the event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kustos.authorizer import AuthorizableRequestContext, CandidateAcls, ShadowDecision
from kustos.protocol import AUTHORIZATION_OFF, Decided
from kustos.runtime import stopwatch_ns

LOG: Final = structlog.get_logger("kustos.gateway")

NOT_LOADED: Final = ShadowDecision(None, "NotLoaded")

NOT_LOADED_COUNT: Final = -1
"""The number of ACLs shown without a candidate."""


@unique
class Outcome(Enum):
    """The outcome of the candidate for one decision."""

    SAME = "SAME"
    LOST = "LOST"
    GAINED = "GAINED"
    ERROR = "ERROR"


@unique
class Purpose(Enum):
    """The purpose of a decision: to refuse, to find the next check, or to filter a list."""

    ACCESS = "ACCESS"
    PROBE = "PROBE"
    LISTING = "LISTING"


@dataclass(frozen=True, slots=True)
class CandidateState:
    """The state of the candidate for operators; `failure` is the reason why it is not loaded."""

    source: str
    id: str | None = None
    acl_count: int = NOT_LOADED_COUNT
    failure: str | None = None

    def details(self) -> Mapping[str, object]:
        """Return the state for `/ready`."""
        loaded = self.id is not None
        return {"source": self.source, "loaded": loaded, "id": self.id, "acls": self.acl_count} | (
            {} if self.failure is None else {"failure": self.failure}
        )


class CandidateTrial:
    """The trial of one process. While `state` is None there is no candidate, and nothing is evaluated."""

    def __init__(self) -> None:
        self.state: CandidateState | None = None
        self.load_failures = 0
        self.evaluated_ns = 0
        """The total time of all evaluations."""
        self.counts: Final[Counter[tuple[Outcome, Purpose]]] = Counter()
        self._acls: CandidateAcls | None = None
        self._has_broken = False

    def put_on_trial(self, source: str, acls: CandidateAcls) -> None:
        """Evaluate these ACLs from now on."""
        self._acls, self._has_broken = acls, False
        self.state = CandidateState(source, acls.id, acls.acl_count)

    def lack(self, source: str, failure: str | None = None) -> None:
        """Give no answers from now on: the candidate is not loaded yet, or cannot be loaded (`failure`).

        An earlier candidate is dropped, because its answers would be mistaken for answers of the new one.
        """
        self.load_failures += failure is not None
        self._acls, self.state = None, CandidateState(source, failure=failure)

    def end(self) -> None:
        """Evaluate nothing from now on."""
        self._acls = self.state = None

    def compare(self, context: AuthorizableRequestContext, decided: list[Decided]) -> list[Decided]:
        """Return the decisions of a request, with the candidate's decision where it differs."""
        if self.state is None or decided[0].decision is AUTHORIZATION_OFF:
            return decided
        began_ns = stopwatch_ns()
        compared = [self._compared(context, item) for item in decided]
        self.evaluated_ns += stopwatch_ns() - began_ns
        return compared

    def _compared(self, context: AuthorizableRequestContext, item: Decided) -> Decided:
        enforced = item.decision if item.shadow is None else item.shadow.decision
        said = NOT_LOADED if self._acls is None else None
        if enforced is None:
            # the ACLs in mode `shadow` gave no answer to compare with, and their event shows this
            outcome = Outcome.ERROR
        else:
            if self._acls is not None:
                said = self._difference(self._acls, context, item, enforced.allowed)
            outcome = _outcome(said)
        purpose = (
            Purpose.LISTING if item.listing else Purpose.PROBE if item.is_first_check else Purpose.ACCESS
        )
        self.counts[outcome, purpose] += 1
        return item if said is None else item._replace(candidate=said)

    def _difference(
        self, acls: CandidateAcls, context: AuthorizableRequestContext, item: Decided, is_allowed: bool
    ) -> ShadowDecision | None:
        try:
            return acls.difference(context, item.action, item.name, is_allowed)
        except Exception as error:
            # a bug in a trial must not affect the request
            if not self._has_broken:
                self._has_broken = True
                LOG.exception("the candidate ACLs cannot be evaluated", candidate=acls.id)
            return ShadowDecision(None, type(error).__name__, acls.id)


def _outcome(said: ShadowDecision | None) -> Outcome:
    if said is None:
        return Outcome.SAME
    if said.decision is None:
        return Outcome.ERROR
    return Outcome.GAINED if said.decision.allowed else Outcome.LOST


class WatchedTrial(Collector):
    """The metrics of a trial; empty without a candidate. `trial` is called at each collection."""

    def __init__(self, trial: Callable[[], CandidateTrial]) -> None:
        self._trial: Final = trial

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        trial = self._trial()
        if trial.state is None and not trial.counts:
            return
        decisions = CounterMetricFamily(
            "kustos_candidate_decisions",
            "Decisions that the candidate ACLs were evaluated for, by outcome: LOST was allowed and would be "
            "denied, GAINED the reverse, ERROR has no answer. `access` is PROBE where a later check decides, "
            "LISTING where a list was filtered.",
            labels=("outcome", "access"),
        )
        for outcome in Outcome:
            for purpose in Purpose:
                decisions.add_metric((outcome.value, purpose.value), trial.counts[outcome, purpose])
        yield decisions
        yield CounterMetricFamily(
            "kustos_candidate_evaluation_seconds",
            "Time that the evaluations of candidate ACLs took.",
            trial.evaluated_ns / 1e9,
        )
        yield CounterMetricFamily(
            "kustos_candidate_load_failures",
            "Candidates that could not be loaded.",
            trial.load_failures,
        )
        yield GaugeMetricFamily(
            "kustos_candidate_acls",
            "ACLs of the candidate, -1 if it is not loaded: its decisions count as ERROR.",
            NOT_LOADED_COUNT if trial.state is None else trial.state.acl_count,
        )
