"""The specification of a decision's event, field by field, for the compiled line writer."""

import json
from typing import Any
from uuid import UUID

from kustos.authorizer import AUDIT_SCHEMA_VERSION, AuthorizableRequestContext, Decision
from kustos.authorizer.audit import audited_name, visible
from kustos.protocol import Decided
from kustos.wire import api_name


def rule_of(decision: Decision) -> dict[str, Any]:
    """Return the `rule` of an event."""
    binding = decision.rule.binding
    return {
        "kind": decision.rule.kind.value,
        "resource_type": None if binding is None else binding.pattern.resource_type.name,
        "resource_name": None if binding is None else binding.pattern.name,
        "pattern_type": None if binding is None else binding.pattern.pattern_type.name,
        "principal": None if binding is None else binding.entry.principal,
        "host": None if binding is None else binding.entry.host,
        "operation": None if binding is None else binding.entry.operation.name,
        "permission_type": None if binding is None else binding.entry.permission_type.name,
    }


def event_of(
    context: AuthorizableRequestContext,
    decided: Decided,
    *,
    event_id: UUID,
    time_ms: int,
    node_id: int,
    cluster_id: str | None = None,
    acl_offset: int = -1,
    change_offset: int | None = None,
    latency_us: int | None = None,
) -> dict[str, Any]:
    """Return an event as the object of its line."""
    action, principal = decided.action, context.principal
    return {
        "schema_version": AUDIT_SCHEMA_VERSION,
        "event_id": str(event_id),
        "time_ms": time_ms,
        "node_id": node_id,
        "cluster_id": cluster_id,
        "listener_name": context.listener_name,
        "security_protocol": context.security_protocol,
        "principal_type": principal.principal_type,
        "principal_name": principal.name,
        "token_authenticated": principal.token_authenticated,
        "host": context.host,
        "api_key": int(context.request_type),
        "api_name": api_name(context.request_type),
        "api_version": context.request_version,
        "client_id": context.client_id,
        "correlation_id": context.correlation_id,
        "forwarded_by": None if context.forwarded_by is None else str(context.forwarded_by),
        "resource_type": action.resource_type.name,
        "resource_name": None if decided.name is None else audited_name(action.resource_name),
        "operation": action.operation.name,
        "decision": decided.decision.result.value,
        "rule": rule_of(decided.decision),
        "reference_count": action.reference_count,
        "log_if_allowed": action.log_if_allowed,
        "log_if_denied": action.log_if_denied,
        "access": "LISTING" if decided.listing else "ACCESS",
        "acl_offset": acl_offset,
        "change_offset": change_offset,
        "latency_us": latency_us,
        "distinct_names": decided.distinct_names,
        "decision_count": decided.decision_count,
        **shadow_fields(decided),
    }


def shadow_fields(decided: Decided) -> dict[str, Any]:
    """Return the fields of shadow decisions, empty without any."""
    shadow, candidate = decided.shadow, decided.candidate
    if shadow is None and candidate is None:
        return {}
    return {
        "shadow_decision": None if shadow is None else shadow.result,
        "shadow_rule": None if shadow is None else shadow.rule,
        "candidate_decision": None if candidate is None else candidate.result,
        "candidate_rule": None if candidate is None else candidate.rule,
        "candidate_id": None if candidate is None else candidate.acls_id,
    }


def line_of(event: dict[str, Any]) -> str:
    """Return the line of an event."""
    return visible(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
