"""Reports what sessions decide and answer to the audit log and the metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kustos.authorizer import AuthorizableRequestContext, AuthorizerError, SecurityEventType
from kustos.authorizer.audit import NO_OFFSET
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.tallies import NO_DECISIONS, DecisionSums
from kustos.gateway.session.logins import LOG_IS_FULL, Login
from kustos.gateway.shadow import CandidateTrial
from kustos.protocol import NOBODY_ASKED, Decided, Record, WrittenAt
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

    @property
    def refuses(self) -> bool:
        """Whether `refusal` has a reason."""
        return self.audit.denies and self.audit.is_full

    def refusal(self) -> AuthorizerError | None:
        """Return why a new request must be refused, and count it; None if it need not."""
        if not self.refuses:
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

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Record:
        """Return a callback that records the same decisions for a repetition.

        It returns the callback that counts them, for when the request was sent.
        """
        record, sums = self.audit.recorder(context, decided), DecisionSums.of(decided)
        api_key, metrics, trial = context.request_type, self.metrics, self.trial
        count = partial(metrics.add, api_key, sums, repeated=1)

        def again(correlation_id: int, latency_us: int) -> Callable[[], None]:
            if trial.state is None:
                record(correlation_id, self._acl_offset_of(decided), latency_us)
                return count
            self.decided(replace(context, correlation_id=correlation_id), list(decided), latency_us)
            return partial(metrics.add, api_key, NO_DECISIONS, repeated=1)

        return again

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
