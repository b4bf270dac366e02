"""JSON lines of audit events, put together from parts that many events share.

The line is to the letter that of `AuditEvent.to_json`, several times faster: what a request's decisions
have in common is written once for them, and what a decision says once for as long as the authorizer
gives the same one. Formatting shares the interpreter with the event loop, so this is latency for clients.
"""

import json
from collections.abc import Iterator
from json.encoder import encode_basestring as quoted
from typing import Final

from kustos.authorizer import AUDIT_SCHEMA_VERSION, AuthorizableRequestContext, Decision
from kustos.authorizer.audit import Access, AuditRule
from kustos.protocol.exchange import Decided
from kustos.wire.api_keys import api_name

DECISIONS_MAX: Final = 4096
"""Decisions whose text is kept, about 2 MB; there are as many as ACLs in use, and the default ones."""

_TRUTH: Final = {True: "true", False: "false"}
_RULE_FIELDS: Final = (
    "kind",
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


class JsonLines:
    """Keeps the texts of decisions. One thread at a time may use it."""

    __slots__ = ("_decisions", "_head")

    def __init__(self, node_id: int) -> None:
        self._head: Final = f'"node_id":{node_id}'
        # by identity, as comparing by value costs more than writing; the object is kept so that its
        # identity stays its own
        self._decisions: dict[int, tuple[Decision, str]] = {}

    def lines(
        self,
        context: AuthorizableRequestContext,
        decided: tuple[Decided, ...],
        event_ids: Iterator[str],
        time_ms: int,
        acl_offset: int,
        change_offset: int | None = None,
    ) -> Iterator[str]:
        """Yield the line of each decision, without a line feed."""
        shared = f'"time_ms":{time_ms},{self._head},{_context(context)}'
        changed = "null" if change_offset is None else change_offset
        offsets = f'"acl_offset":{acl_offset},"change_offset":{changed}'
        for event_id, item in zip(event_ids, decided, strict=False):
            action = item.action
            name = "null" if item.name is None else quoted(action.resource_name)
            access = Access.LISTING if item.listing else Access.ACCESS
            yield (
                f'{{"schema_version":{AUDIT_SCHEMA_VERSION},"event_id":"{event_id}",{shared},'
                f'"resource_type":"{action.resource_type.name}","resource_name":{name},'
                f'"operation":"{action.operation.name}",{self._decision(item.decision)},'
                f'"reference_count":{action.reference_count},'
                f'"log_if_allowed":{_TRUTH[action.log_if_allowed]},'
                f'"log_if_denied":{_TRUTH[action.log_if_denied]},'
                f'"access":"{access.value}",{offsets}}}'
            )

    def _decision(self, decision: Decision) -> str:
        known = self._decisions.get(id(decision))
        if known is not None:
            return known[1]
        rule = AuditRule.of(decision)
        fields = {name: getattr(rule, name) for name in _RULE_FIELDS}
        text = (
            f'"decision":"{decision.result.value}",'
            f'"rule":{json.dumps(fields, ensure_ascii=False, separators=(",", ":"))}'
        )
        if len(self._decisions) >= DECISIONS_MAX:
            self._decisions.clear()
        self._decisions[id(decision)] = (decision, text)
        return text


def _context(context: AuthorizableRequestContext) -> str:
    principal = context.principal
    client_id = "null" if context.client_id is None else quoted(context.client_id)
    forwarded_by = "null" if context.forwarded_by is None else quoted(str(context.forwarded_by))
    return (
        f'"listener_name":{quoted(context.listener_name)},'
        f'"security_protocol":{quoted(context.security_protocol)},'
        f'"principal_type":{quoted(principal.principal_type)},"principal_name":{quoted(principal.name)},'
        f'"token_authenticated":{_TRUTH[principal.token_authenticated]},"host":{quoted(context.host)},'
        f'"api_key":{int(context.request_type)},"api_name":{quoted(api_name(context.request_type))},'
        f'"api_version":{context.request_version},"client_id":{client_id},'
        f'"correlation_id":{context.correlation_id},"forwarded_by":{forwarded_by}'
    )
