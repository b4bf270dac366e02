"""Decisions to be audited, and a sink that a test controls."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Decision,
    Rule,
    RuleKind,
    SecurityEvent,
    SecurityEventType,
    SecurityResult,
)
from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import AuditEvents, RequestEvents, text_lines
from kustos.protocol import Decided

ALLOWED = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.SUPER_USER))
DENIED = Decision(AuthorizationResult.DENIED, Rule(RuleKind.DEFAULT_DENY))
EVENTS = AuditEvents(node_id=3, random_half=2**64 - 1)
CONTEXT = AuthorizableRequestContext(
    KafkaPrincipal("User", "alice"),
    "127.0.0.1",
    listener_name="CLIENTS",
    security_protocol="SASL_PLAINTEXT",
    client_id="app",
    request_type=3,
    request_version=12,
    correlation_id=9,
)


def context_of(name: str) -> AuthorizableRequestContext:
    return AuthorizableRequestContext(KafkaPrincipal("User", name), "127.0.0.1", request_type=3)


def decided(name: str, decision: Decision = ALLOWED, **flags: bool) -> Decided:
    action = Action(ResourceType.TOPIC, name, AclOperation.DESCRIBE, **flags)
    return Decided(action, decision, listing=False, name=name)


def request(number: int, *names: str, time_ms: int = 1_795_235_215_815) -> RequestEvents:
    return RequestEvents(number, time_ms, CONTEXT, tuple(decided(name) for name in names), 77)


def lines_of(*requests: RequestEvents) -> bytes:
    """Return the events of requests as a sink gets them."""
    return b"".join(map(EVENTS.lines, requests))


@dataclass
class ControlledSink:
    """Writes once the test allows it, and fails while `refusal` is set."""

    name: str = "controlled"
    shortened_events: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    refusal: Exception | None = None
    refusals: int = 0
    closed: bool = False
    may_write: asyncio.Event = field(default_factory=asyncio.Event)
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The events of decisions."""
        return [each for each in self.events if "event_type" not in each]

    @property
    def names(self) -> list[str]:
        """The resource names of decisions."""
        return [each["resource_name"] for each in self.decisions]

    @property
    def security(self) -> list[SimpleNamespace]:
        """The security events."""
        return [SimpleNamespace(**each) for each in self.events if "event_type" in each]

    async def open(self) -> None:
        """Nothing to open."""

    async def write(self, lines: bytes) -> None:
        self.tried.set()
        await self.may_write.wait()
        self.answered.set()
        if self.refusal is not None:
            self.refusals += 1
            raise self.refusal
        self.events += map(json.loads, text_lines(lines))

    async def close(self) -> None:
        self.closed = True


def willing(name: str = "controlled") -> ControlledSink:
    sink = ControlledSink(name)
    sink.may_write.set()
    return sink


def refusing(name: str = "controlled") -> ControlledSink:
    sink = willing(name)
    sink.refusal = AuditSinkError("the disk is full")
    return sink


async def until(answered: asyncio.Event, condition: Callable[[], bool]) -> None:
    """Wait for a condition of a log whose sink answers; the sink sets `answered`.

    The log goes on in the same step in which the sink's `write` ends, so who waits for the event wakes
    after that.
    """
    async with asyncio.timeout(60):
        while not condition():
            answered.clear()
            await answered.wait()


def failure(
    name: str | None = "alice", host: str = "10.0.0.1", at_ms: int = 1, reason: str = "wrong"
) -> SecurityEvent:
    """Return the event of a failed login."""
    return SecurityEvent(
        event_type=SecurityEventType.LOGIN,
        result=SecurityResult.FAILURE,
        time_ms=at_ms,
        first_time_ms=at_ms,
        listener_name="CLIENTS",
        security_protocol="SASL_PLAINTEXT",
        host=host,
        mechanism="PLAIN",
        failure=reason,
        claimed_name=name,
    )
