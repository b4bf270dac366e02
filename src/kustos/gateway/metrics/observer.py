"""Reports the decisions and answers of sessions to the audit log and the metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from kustos.authorizer import AuthorizableRequestContext, AuthorizerError, SecurityEventType
from kustos.authorizer.audit import NO_OFFSET
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.tallies import DecisionSums
from kustos.gateway.session.logins import LOG_IS_FULL, Login
from kustos.gateway.shadow import CandidateTrial
from kustos.protocol import AUTHORIZATION_OFF, Decided, Recorder, WrittenAt
from kustos.wire import ApiKey

CHANGES_OF_ACLS: Final = frozenset({ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS})


class UnauditedError(AuthorizerError):
    """A decision cannot be recorded now, so it must not be made."""


class AclPosition(Protocol):
    """The position in the metadata log of the ACLs that decide."""

    @property
    def offset(self) -> int:
        """The offset; `NO_OFFSET` if the decisions do not come from the log."""


@dataclass(frozen=True, slots=True)
class FixedPosition:
    """A position that never changes."""

    offset: int = NO_OFFSET


class GatewayObserver:
    """An `Observer` of sessions. `position` is the position of the ACLs that decide now.

    If `changes_own_log` is set, the event of an ACL change waits until the offset of the change is known.
    `trial` adds the decisions of candidate ACLs.
    """

    def __init__(
        self,
        audit: AuditLog,
        metrics: GatewayMetrics,
        position: AclPosition,
        changes_own_log: bool = False,
        trial: CandidateTrial | None = None,
    ) -> None:
        self.audit: Final = audit
        self.metrics: Final = metrics
        self.position: Final = position
        self.trial: Final = trial or CandidateTrial()
        self.answered: Final = metrics.answered
        self._changes_own_log: Final = changes_own_log

    @property
    def is_full(self) -> bool:
        """Whether the audit log is full, so that nothing may be decided (mode `block`)."""
        return not self.audit.denies and self.audit.is_full

    def refusal(self) -> AuthorizerError | None:
        """Return the error of a refused request, and count it; None if it may be decided (mode `deny`)."""
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
        acl_offset = NO_OFFSET if decided[0].decision is AUTHORIZATION_OFF else self.position.offset
        if self._changes_own_log and context.request_type in CHANGES_OF_ACLS and _allowed(decided):
            written_at = self.audit.hold(context, decided, acl_offset, latency_us)
        else:
            self.audit.record(context, decided, acl_offset, latency_us)
        self.metrics.decided(context.request_type, decided)
        return written_at

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Recorder:
        """Return the recorder of the same decisions, one or more, for repetitions."""
        return RepeatedRecorder(self, context, decided)

    def login_ended(self, login: Login) -> bool:
        """Record a login; return whether it may take effect: every successful login must be audited."""
        if not self.audit.writers:
            # nothing is written, so nothing is counted
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
        """Record that a session ends because its credentials have expired."""
        self.metrics.session_expired(login.listener_name)
        event = login.event(self.audit.now_ms)
        self.audit.security.admit(replace(event, event_type=SecurityEventType.SESSION_EXPIRY))


class RepeatedRecorder:
    """Records and counts the decisions of one request for each request that repeats it."""

    __slots__ = ("_audit", "_context", "_decided", "_position", "_record", "_trial", "count")

    def __init__(
        self, observer: GatewayObserver, context: AuthorizableRequestContext, decided: Sequence[Decided]
    ) -> None:
        self._audit: Final = observer.audit
        self._trial: Final = observer.trial
        self._position: Final = (
            FixedPosition() if decided[0].decision is AUTHORIZATION_OFF else observer.position
        )
        self._context: Final = context
        self._decided: Final = decided
        self._record: Final = observer.audit.recorder(context, decided)
        tally = observer.metrics.tally(context.request_type)
        self.count: Final[Callable[[], None]] = partial(tally.add, DecisionSums.of(decided), repeated=1)

    def record(self, correlation_id: int, latency_us: int) -> bool:
        """Record the decisions; return False if the request must be opened: the log is full (mode `deny`).

        `latency_us`: microseconds since the request was read. Raises the errors of `GatewayObserver.decided`.
        """
        if self._audit.denies and self._audit.is_full:
            return False
        if self._trial.state is None:
            self._record(correlation_id, self._position.offset, latency_us)
        else:
            context = replace(self._context, correlation_id=correlation_id)
            compared = self._trial.compare(context, list(self._decided))
            self._audit.record(context, compared, self._position.offset, latency_us)
        return True


def _allowed(decided: list[Decided]) -> bool:
    """Return whether all decisions allow, so that a change follows."""
    return all(item.decision.allowed for item in decided)
