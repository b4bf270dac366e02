"""Tells the audit log and the metrics what the sessions decide and answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.audit_log import AuditLog
from kustos.gateway.metrics import GatewayMetrics
from kustos.protocol import Decided
from kustos.protocol.exchange import WrittenAt
from kustos.wire.api_keys import ApiKey

CHANGES_OF_ACLS: Final = frozenset({ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS})


@dataclass(frozen=True, slots=True)
class GatewayObserver:
    """An `Observer` of sessions. `acl_offset` gives the metadata offset whose ACLs decide now.

    With `changes_own_log` whoever changes ACLs learns the offset of the change, and its event waits for it.
    """

    audit: AuditLog
    metrics: GatewayMetrics
    acl_offset: Callable[[], int]
    changes_own_log: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the audit log takes no more for now; nothing is decided then."""
        return self.audit.is_full

    def decided(self, context: AuthorizableRequestContext, decided: list[Decided]) -> WrittenAt | None:
        """Keep the decisions of a request; return who must be told where its change is, if anybody."""
        written_at = None
        if self.changes_own_log and context.request_type in CHANGES_OF_ACLS and _allowed(decided):
            written_at = self.audit.hold(context, decided, self.acl_offset())
        else:
            self.audit.record(context, decided, self.acl_offset())
        self.metrics.decided(context.request_type, decided)
        return written_at

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
    """Return whether a change follows; of a refused one there is nothing to wait for."""
    return all(item.decision.allowed for item in decided)
