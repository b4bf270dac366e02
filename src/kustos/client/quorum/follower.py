"""Follows a KRaft quorum: it connects the follower state machine to the controllers.

It sends one request at a time over one connection, to the leader if it is known, else to the bootstrap
servers in turn. Effects run on a separate thread, so neither the disk nor a large snapshot blocks the event
loop. It retries after a randomized wait that grows to a second; a permanent failure ends the follower.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from kustos.client.connection import KafkaConnection
from kustos.client.errors import ClientError, error_name
from kustos.client.sasl import connect
from kustos.client.settings import ClientSettings, NodeAddress
from kustos.metadata.quorum import (
    FETCH_VERSIONS,
    Address,
    CaughtUp,
    CommittedLostError,
    FollowedStore,
    ForeignAnswerError,
)
from kustos.runtime import Clock, Entropy, SystemClock
from kustos.wire import ApiKey

LOG: Final = structlog.get_logger("kustos.client")

RETRY_FIRST_MS: Final = 50
RETRY_MAX_MS: Final = 1_000
"""The longest wait: elections take seconds, and one request per second is no load for three controllers."""

FREE_SETBACKS: Final = 1
"""The first retry, after a redirect to the leader or its loss, follows at once; further retries wait."""

IDLE_TURN_MS: Final = 20
"""A leader without new records delays its answer for half a second. If it does not, it gets at most 50
requests per second."""

FETCH_SNAPSHOT_VERSION: Final = 1


def retry_wait_ms(tries: int, entropy: Entropy) -> float:
    """Return the wait after `tries` failed attempts: it doubles each time, up to a limit.

    The result is random between half of that and all of it, so nodes that lost the same leader do not retry
    at the same time.
    """
    share = int.from_bytes(entropy.token_bytes(2)) / 65_535
    limit: int = min(RETRY_MAX_MS, RETRY_FIRST_MS << min(tries, 16))
    return limit * (0.5 + share / 2)


class QuorumConnection:
    """A connection to one controller, reopened when it is lost or another controller is wanted."""

    def __init__(self, settings: ClientSettings, entropy: Entropy) -> None:
        self._settings: Final = settings
        self._connection: KafkaConnection | None = None
        self._address: NodeAddress | None = None
        # so that not all nodes start with the same controller
        self._turn = int.from_bytes(entropy.token_bytes(2))

    async def to(self, target: Address | None) -> tuple[KafkaConnection, Address]:
        """Return a connection to `target`, or to the next bootstrap server if None. Raise `ClientError`."""
        if target is None:
            servers = self._settings.bootstrap_servers
            self._turn += 1
            wanted = servers[self._turn % len(servers)]
        else:
            wanted = NodeAddress(target.host, target.port)
        if self._connection is None or not self._connection.is_open or self._address != wanted:
            self.drop()
            self._connection = await connect(wanted, self._settings)
            self._address = wanted
        return self._connection, Address(wanted.host, wanted.port)

    def drop(self) -> None:
        """Close it, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class QuorumFollower:
    """Applies the records of the quorum to a store while `run` runs.

    `caught_up` is called on the event loop when all committed records are applied, with the time in
    milliseconds at which the last request was sent.
    """

    def __init__(
        self,
        store: FollowedStore,
        settings: ClientSettings,
        entropy: Entropy,
        caught_up: Callable[[int], None],
        clock: Clock | None = None,
    ) -> None:
        self._store: Final = store
        self._entropy: Final = entropy
        self._caught_up: Final = caught_up
        self._now_ms: Final = (clock or SystemClock()).monotonic_ms
        self._fetch_timeout_ms: Final = settings.limits.request_timeout_ms
        self._connection: Final = QuorumConnection(settings, entropy)
        self._thread: Final = ThreadPoolExecutor(1, "kustos-quorum-follower")
        self._waiting: set[tuple[int, asyncio.Future[None]]] = set()
        self._reason: str | None = None
        self.applied_end = -1

    async def run(self) -> None:
        """Follow for ever; raise `QuorumError` or another `MetadataError` on a fatal failure."""
        while True:
            try:
                await self._turn()
            except (ClientError, ForeignAnswerError) as error:
                self._connection.drop()
                self._store.machine.lost()
                self._warn_once(str(error))
            except CommittedLostError as error:
                if self._store.has_caught_up:
                    raise
                LOG.warning("what an earlier run left is discarded and fetched again", reason=str(error))
                self._store.begin_anew()
                await asyncio.sleep(RETRY_MAX_MS / 1000)
            machine = self._store.machine
            if machine.setbacks > FREE_SETBACKS:
                if machine.last_error:
                    self._warn_once(f"a controller answered {error_name(machine.last_error)}")
                await asyncio.sleep(retry_wait_ms(machine.setbacks - FREE_SETBACKS, self._entropy) / 1000)

    async def _turn(self) -> None:
        """Send one request and perform the effects of its answer."""
        machine = self._store.machine
        loop = asyncio.get_running_loop()
        connection, address = await self._connection.to(machine.leader)
        version = connection.choose_version(ApiKey.FETCH, FETCH_VERSIONS[1], FETCH_VERSIONS[0])
        is_copying = machine.asks_for_snapshot
        question = machine.question(version)
        requested_ms = self._now_ms()
        answer = await connection.send(
            question.api_key,
            FETCH_SNAPSHOT_VERSION if is_copying else version,
            question.message,
            timeout_ms=self._fetch_timeout_ms,
        )
        effects = machine.receive(answer, address)
        if effects:
            await loop.run_in_executor(self._thread, self._store.perform, effects)
            if any(isinstance(each, CaughtUp) for each in effects):
                self._reach(machine.applied_end)
                if self._reason is not None:
                    LOG.info("following the quorum again", leader=str(address), epoch=machine.epoch)
                    self._reason = None
                self._caught_up(requested_ms)
        if not is_copying and all(isinstance(each, CaughtUp) for each in effects):
            await asyncio.sleep(max(0, requested_ms + IDLE_TURN_MS - self._now_ms()) / 1000)

    def _reach(self, applied_end: int) -> None:
        self.applied_end = applied_end
        for waiting in tuple(self._waiting):
            offset, future = waiting
            if offset <= applied_end and not future.done():
                future.set_result(None)

    async def applied(self, end_offset: int) -> None:
        """Return when all records below this offset are applied."""
        if self.applied_end >= end_offset:
            return
        waiting = (end_offset, asyncio.get_running_loop().create_future())
        self._waiting.add(waiting)
        try:
            await waiting[1]
        finally:
            self._waiting.discard(waiting)

    def _warn_once(self, reason: str) -> None:
        """Log a reason once, even if it recurs."""
        if reason != self._reason:
            LOG.warning("the quorum is not followed for now", reason=reason)
        self._reason = reason

    async def close(self) -> None:
        """Close the connection and end the thread; `run` must have ended."""
        self._connection.drop()
        for _, future in tuple(self._waiting):
            future.cancel()
        # work on the thread may need the event loop to finish
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
