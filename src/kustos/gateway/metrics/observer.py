"""Reports what sessions decide and answer to the audit log and the metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kustos.authorizer import AuthorizableRequestContext, AuthorizerError, SecurityEventType
from kustos.authorizer.audit import NO_OFFSET
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.tallies import NO_DECISIONS, DecisionSums
from kustos.gateway.session.logins import LOG_IS_FULL, Login
from kustos.gateway.shadow import CandidateTrial
from kustos.protocol import NOBODY_ASKED, Decided, Recorder, WrittenAt
from kustos.wire import ApiKey

CHANGES_OF_ACLS: Final = frozenset({ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS})


class UnauditedError(AuthorizerError):
    """A decision could not be recorded now, so none is made."""


@dataclass(frozen=True, slots=True)
class GatewayObserver:
    """An `Observer` of sessions. `acl_offset` gives the metadata offset whose ACLs decide now.

    With `changes_own_log` the event of an ACL change waits until the offset of the change is known. `trial`
    adds to the decisions what candidate ACLs say.
    """

    audit: AuditLog
    metrics: GatewayMetrics
    acl_offset: Callable[[], int]
    changes_own_log: bool = False
    trial: CandidateTrial = field(default_factory=CandidateTrial)

    @property
    def is_full(self) -> bool:
        """Whether the audit log takes no more for now; nothing is decided then."""
        return not self.audit.denies and self.audit.is_full

    def refusal(self) -> AuthorizerError | None:
        """Return why a new request must be refused, and count it; None if it need not."""
        if not (self.audit.denies and self.audit.is_full):
            return None
        self.audit.refused_requests += 1
        return UnauditedError("the audit log is full")

    def decided(
        self, context: AuthorizableRequestContext, decided: list[Decided], latency_us: int
    ) -> WrittenAt | None:
        """Record the decisions of a request, one or more; return the callback for its change's offset."""
        written_at = None
        decided = self.trial.compare(context, decided)
        acl_offset = self._acl_offset_of(decided)
        if self.changes_own_log and context.request_type in CHANGES_OF_ACLS and _allowed(decided):
            written_at = self.audit.hold(context, decided, acl_offset, latency_us)
        else:
            self.audit.record(context, decided, acl_offset, latency_us)
        self.metrics.decided(context.request_type, decided)
        return written_at

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Recorder:
        """Return what records the same decisions for each request that repeats them."""
        return RepeatedDecisions(self, context, decided)

    def _acl_offset_of(self, decided: Sequence[Decided]) -> int:
        """Return the offset of the ACLs by which it was decided, `NO_OFFSET` if no authorizer was queried."""
        return NO_OFFSET if decided[0].decision is NOBODY_ASKED else self.acl_offset()

    def login_ended(self, login: Login) -> bool:
        """Record the event of a login; return whether it may take effect: no login goes unaudited."""
        if not self.audit.writers:
            # nothing is written, so nothing is counted either
            return True
        security, time_ms = self.audit.security, self.audit.now_ms
        if login.failure is None and self.audit.is_full:
            security.count(login._replace(failure=LOG_IS_FULL).event(time_ms))
            return False
        if login.failure is None:
            security.admit(login.event(time_ms))
        else:
            security.count(login.event(time_ms))
        return True

    def session_expired(self, login: Login) -> None:
        """Record that a session ended because its credentials had expired."""
        self.metrics.session_expired(login.listener_name)
        event = login.event(self.audit.now_ms)
        self.audit.security.admit(replace(event, event_type=SecurityEventType.SESSION_EXPIRY))

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """Count an answered request."""
        self.metrics.answered(api_key, seconds, upstream_seconds, held_seconds)


def _allowed(decided: list[Decided]) -> bool:
    """Return whether a change follows; a refused request has none to wait for."""
    return all(item.decision.allowed for item in decided)


class RepeatedDecisions:
    """A `Recorder` of the decisions of one plan."""

    def __init__(
        self, observer: GatewayObserver, context: AuthorizableRequestContext, decided: Sequence[Decided]
    ) -> None:
        self._observer: Final = observer
        self._context: Final = context
        self._decided: Final = decided
        self._record: Final = observer.audit.recorder(context, decided)
        self._sums: Final = DecisionSums.of(decided)
        self._counted = self._sums

    def record(self, correlation_id: int, latency_us: int) -> bool:
        """Record them before the request is sent; return False if the request must be opened instead."""
        observer = self._observer
        if observer.audit.denies and observer.audit.is_full:
            return False
        if observer.trial.state is None:
            self._counted = self._sums
            self._record(correlation_id, observer._acl_offset_of(self._decided), latency_us)
        else:
            self._counted = NO_DECISIONS
            context = replace(self._context, correlation_id=correlation_id)
            observer.decided(context, list(self._decided), latency_us)
        return True

    def count(self) -> None:
        """Count them once the request was sent."""
        self._observer.metrics.add(self._context.request_type, self._counted, repeated=1)
