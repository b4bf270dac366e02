"""How old the metadata of a quorum may be for decisions: a gate that closes by itself.

A node that lost its quorum goes on deciding by its last committed state for a while, then denies: a
permission that was taken away elsewhere must not live here for ever. The age counts from the moment at
which the leader was asked whose answer left nothing to apply, so it is never told too small. Super users
pass a closed gate, as they pass an authorizer that is not ready: they are settings, not metadata.
"""

import asyncio
import math
from typing import Final

import structlog

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerNotReadyError, Decision, StandardAuthorizer
from kustos.protocol import Decider

LOG: Final = structlog.get_logger("kustos.gateway")

WARNED_AT: Final = 0.5
"""The part of the allowed age at which the log says so."""


class StalenessGate:
    """Open while the metadata is younger than `max_staleness_ms`. Made for one event loop."""

    def __init__(self, max_staleness_ms: int, loop: asyncio.AbstractEventLoop) -> None:
        self._max_s: Final = max_staleness_ms / 1000
        self._loop: Final = loop
        self._as_of_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_failed = False
        self._has_warned = False
        self._open_until_s = -math.inf

    @property
    def is_open(self) -> bool:
        """Whether the metadata may be decided by; asked at each decision, for timers of a frozen node lag."""
        return self._loop.time() < self._open_until_s

    @property
    def staleness_ms(self) -> int | None:
        """How old the metadata may be at most; None: it was never current."""
        return None if self._as_of_s is None else max(0, round(self._age_s(self._as_of_s) * 1000))

    def _age_s(self, as_of_s: float) -> float:
        return self._loop.time() - as_of_s

    def fresh(self, as_of_s: float) -> None:
        """Take note that everything committed at this time of the loop is in force."""
        if self._has_failed:
            return
        self._as_of_s = as_of_s
        self._open_until_s = as_of_s + self._max_s
        if self._has_warned and self.is_open:
            LOG.info("the metadata is current again")
            self._has_warned = False
        if self._timer is None:
            self._look()

    def fail(self) -> None:
        """Close for good: what is known can never become current again."""
        self._has_failed = True
        self._open_until_s = -math.inf
        self.stop()

    def stop(self) -> None:
        """Let go of the timer."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _look(self) -> None:
        self._timer = None
        as_of_s = self._as_of_s
        if as_of_s is None:
            return
        age_s = self._age_s(as_of_s)
        if not self.is_open:
            self._has_warned = True
            LOG.error(
                "the metadata is too old, everything but super users is denied until the quorum is back",
                staleness_ms=self.staleness_ms,
                max_staleness_ms=round(self._max_s * 1000),
            )
            return
        is_old = age_s >= self._max_s * WARNED_AT
        if is_old and not self._has_warned:
            self._has_warned = True
            LOG.warning(
                "the quorum is away, decisions rest on old metadata",
                staleness_ms=self.staleness_ms,
                denied_at_ms=round(self._max_s * 1000),
            )
        self._timer = self._loop.call_at(as_of_s + self._max_s * (1 if is_old else WARNED_AT), self._look)

    def guarded(self, authorizer: StandardAuthorizer, principal: KafkaPrincipal, host: str) -> Decider:
        """Return the decider of one connection, which decides while the gate is open."""
        return GuardedDecider(self, authorizer, principal, host)


class GuardedDecider:
    """A session of StandardAuthorizer behind a gate."""

    __slots__ = ("_authorizer", "_gate", "_principal", "_session")

    def __init__(
        self, gate: StalenessGate, authorizer: StandardAuthorizer, principal: KafkaPrincipal, host: str
    ) -> None:
        self._gate = gate
        self._authorizer = authorizer
        self._principal = str(principal)
        self._session = authorizer.session(principal, host)

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return the decision; raise `AuthorizerNotReadyError` where the metadata is too old for one."""
        if not self._gate.is_open:
            self._require_super_user()
        return self._session.decide(operation, resource_type, name)

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return whether some resource of the type is allowed; raises what `decide` raises."""
        if not self._gate.is_open:
            self._require_super_user()
        return self._session.decide_by_resource_type(operation, resource_type)

    def _require_super_user(self) -> None:
        if self._principal not in self._authorizer.super_users:
            raise AuthorizerNotReadyError("the metadata is too old to decide by, the quorum is away")
