"""Tells the audit log and the metrics what the sessions decide and answer."""

from collections.abc import Callable
from dataclasses import dataclass

from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.audit_log import AuditLog
from kustos.gateway.metrics import GatewayMetrics
from kustos.protocol import Decided


@dataclass(frozen=True, slots=True)
class GatewayObserver:
    """An `Observer` of sessions. `acl_offset` gives the metadata offset whose ACLs decide now."""

    audit: AuditLog
    metrics: GatewayMetrics
    acl_offset: Callable[[], int]

    @property
    def is_full(self) -> bool:
        """Whether the audit log takes no more for now; nothing is decided then."""
        return self.audit.is_full

    def decided(self, context: AuthorizableRequestContext, decided: list[Decided]) -> None:
        """Keep the decisions of a request."""
        self.audit.record(context, decided, self.acl_offset())
        self.metrics.decided(context.request_type, decided)

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """Count an answered request."""
        self.metrics.answered(api_key, seconds, upstream_seconds, held_seconds)
