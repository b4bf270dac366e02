"""Limits the age of the metadata that decisions use: a gate that closes by itself.

A node that lost its quorum continues to decide by its last committed state for a limited time, then denies: a
permission that was revoked elsewhere must not remain valid here forever. The age counts from the request to
the leader whose answer left nothing to apply, so it is never reported too small. Super users pass a closed
gate, as they pass an authorizer that is not ready: they are settings, not metadata. Ages come from a clock
that keeps running while the machine is suspended, unlike the event loop's clock: a node that was suspended
for a day must not resume and decide by yesterday's ACLs.
"""

import asyncio
import math
from typing import Final

import structlog

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerNotReadyError, Decision, StandardAuthorizer
from kustos.gateway.store.source import FollowedMetadata
from kustos.metadata.image import EMPTY_IMAGE, MetadataImage
from kustos.protocol import Decider
from kustos.runtime import Clock, SystemClock

LOG: Final = structlog.get_logger("kustos.gateway")

WARNED_AT: Final = 0.5
"""The fraction of the allowed age at which the log warns."""


class StalenessGate:
    """Open while the metadata is younger than `max_staleness_ms`. Create it for one event loop."""

    def __init__(
        self, max_staleness_ms: int, loop: asyncio.AbstractEventLoop, clock: Clock | None = None
    ) -> None:
        self._max_ms: Final = max_staleness_ms
        self._loop: Final = loop
        self._now_ms: Final = (clock or SystemClock()).monotonic_ms
        self._as_of_ms: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_failed = False
        self._has_warned = False
        self._open_until_ms = -math.inf

    @property
    def is_open(self) -> bool:
        """Whether decisions may use the metadata; checked for each, because timers of a frozen node lag."""
        return self._now_ms() < self._open_until_ms

    @property
    def staleness_ms(self) -> int | None:
        """The upper bound of the metadata's age; None: it was never current."""
        return None if self._as_of_ms is None else max(0, self._now_ms() - self._as_of_ms)

    def fresh(self, as_of_ms: int) -> None:
        """Record that everything committed by this time of the clock is in force."""
        if self._has_failed:
            return
        self._as_of_ms = as_of_ms
        self._open_until_ms = as_of_ms + self._max_ms
        if self._has_warned and self.is_open:
            LOG.info("the metadata is current again")
            self._has_warned = False
        if self._timer is None:
            self._look()

    def fail(self) -> None:
        """Close permanently: the metadata can never become current again."""
        self._has_failed = True
        self._open_until_ms = -math.inf
        self.stop()

    def stop(self) -> None:
        """Cancel the timer."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _look(self) -> None:
        self._timer = None
        if self._as_of_ms is None:
            return
        age_ms = self._now_ms() - self._as_of_ms
        if not self.is_open:
            self._has_warned = True
            LOG.error(
                "the metadata is too old, everything but super users is denied until the quorum is back",
                staleness_ms=self.staleness_ms,
                max_staleness_ms=self._max_ms,
            )
            return
        is_old = age_ms >= self._max_ms * WARNED_AT
        if is_old and not self._has_warned:
            self._has_warned = True
            LOG.warning(
                "the quorum is unreachable, decisions use old metadata",
                staleness_ms=self.staleness_ms,
                denied_at_ms=self._max_ms,
            )
        wait_ms = self._max_ms * (1 if is_old else WARNED_AT) - age_ms
        self._timer = self._loop.call_later(wait_ms / 1000, self._look)

    def current_image(self, store: FollowedMetadata) -> MetadataImage:
        """Return the committed metadata, an empty image if it is too old."""
        return store.image if self.is_open else EMPTY_IMAGE

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

    @property
    def version(self) -> int | None:
        """The version of the ACLs in force, None while the gate is closed."""
        return self._session.version if self._gate.is_open else None

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return the decision; raise `AuthorizerNotReadyError` if the metadata is too old."""
        if not self._gate.is_open:
            self._require_super_user()
        return self._session.decide(operation, resource_type, name)

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return whether any resource of the type is allowed; raise the errors of `decide`."""
        if not self._gate.is_open:
            self._require_super_user()
        return self._session.decide_by_resource_type(operation, resource_type)

    def _require_super_user(self) -> None:
        if self._principal not in self._authorizer.super_users:
            raise AuthorizerNotReadyError("the metadata is too old to decide by, the quorum is away")
