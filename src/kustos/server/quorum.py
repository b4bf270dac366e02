"""Assembles cluster mode: the followed store, the gate, the forwarding of changes, and the time when
listeners open."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Final

import structlog

from kustos.client.quorum import ControllerForwarder, QuorumConnection, QuorumFollower
from kustos.gateway.metrics import QuorumFigures
from kustos.gateway.quorum import FollowedQuorum, StalenessGate
from kustos.gateway.store import ALONE, DecidedOffset, Followers
from kustos.metadata import MetadataError
from kustos.metadata.quorum import FollowedStore
from kustos.runtime import FileSystemStorage, SystemClock, SystemEntropy
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.quorum import QuorumSettings

LOG: Final = structlog.get_logger("kustos.server")


class QuorumSide:
    """A node's parts for cluster mode. Created inside the event loop by `open`.

    `decided`: how far the node's decisions follow; `followers`: the node's other processes.
    """

    def __init__(
        self,
        settings: KustosSettings,
        quorum: QuorumSettings,
        store: FollowedStore,
        decided: DecidedOffset,
        followers: Followers,
    ) -> None:
        entropy = SystemEntropy()
        self.store: Final = store
        self.gate: Final = StalenessGate(quorum.max_staleness_ms, asyncio.get_running_loop())
        self.follower: Final = QuorumFollower(store, quorum.client, entropy, self._caught_up)
        self.forwarder: Final = ControllerForwarder(
            store,
            self.follower,
            QuorumConnection(quorum.client, entropy),
            entropy,
            quorum.change_timeout_ms,
            self._is_in_force,
        )
        self.source: Final = FollowedQuorum(store, self.forwarder, self.stop, followers)
        self._followers: Final = followers
        self._decided: Final = decided
        self._early: Final = settings.early_start_listeners
        self._listeners: Final = tuple(listener.name for listener in settings.listeners)
        self._begun: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._has_stopped = False

    @classmethod
    def open(
        cls,
        settings: KustosSettings,
        quorum: QuorumSettings,
        decided: DecidedOffset,
        followers: Followers = ALONE,
    ) -> "QuorumSide":
        """Return the instance with what an earlier run left on disk; raise `MetadataError` or OSError."""
        store = FollowedStore.open(
            settings.metadata_directory,
            FileSystemStorage(),
            SystemClock(),
            settings.token_rules,
            settings.node_id,
        )
        return cls(settings, quorum, store, decided, followers)

    def start(self, ready: Mapping[str, Awaitable[None]] | None) -> dict[str, Awaitable[None]]:
        """Begin to follow; return what each listener waits for: the high watermark, except for early ones."""
        self._task = asyncio.get_running_loop().create_task(self._follow())
        authorizer_ready = {name: asyncio.ensure_future(each) for name, each in (ready or {}).items()}
        waits: dict[str, Awaitable[None]] = dict(authorizer_ready)
        for name in self._listeners:
            if name not in self._early:
                both = asyncio.ensure_future(_both(self._begun, authorizer_ready.get(name)))
                both.add_done_callback(_retrieved)
                waits[name] = both
        for each in authorizer_ready.values():
            each.add_done_callback(_retrieved)
        return waits

    async def _follow(self) -> None:
        try:
            await self.follower.run()
        except Exception as error:
            # the boundary where a log that cannot be followed, or a bug of ours, must deny
            self.gate.fail()
            self._followers.quorum_lost()
            known = isinstance(error, MetadataError)
            LOG.critical(
                "the quorum cannot be followed any more, everything but super users is denied",
                reason=f"{error}" if known else f"{type(error).__name__}: {error}",
                exc_info=None if known else error,
            )
            if not self._begun.done():
                self._begun.set_exception(
                    error if known else MetadataError(f"the quorum cannot be followed: {error}")
                )
                _retrieved(self._begun)

    def _is_in_force(self) -> bool:
        """Whether the authorizer has everything that was applied."""
        offset = self._decided.offset
        return offset is None or offset >= self.store.last_offset

    def _caught_up(self, requested_ms: int) -> None:
        # many ACLs are prepared off the event loop: until they are in force, the old ones decide
        if self._is_in_force():
            self.gate.fresh(requested_ms)
            self._followers.current(requested_ms)
            if not self._begun.done():
                self._begun.set_result(None)

    async def begun(self) -> None:
        """Return once this node has caught up with the quorum; raise `MetadataError` if it never will."""
        await asyncio.shield(self._begun)

    def details(self) -> dict[str, object]:
        """Return how old the metadata may be, and its source."""
        leader = self.store.machine.leader
        return {
            "metadata_staleness_ms": self.gate.staleness_ms,
            "quorum_leader": None if leader is None else str(leader),
            "quorum_epoch": self.store.machine.epoch,
        }

    def figures(self) -> QuorumFigures:
        """Return the present figures of the quorum."""
        machine = self.store.machine
        return QuorumFigures(
            self.gate.staleness_ms, not self.gate.is_open, machine.epoch, machine.high_watermark
        )

    async def stop(self) -> None:
        """Stop following and close everything; further calls have no effect."""
        if self._has_stopped:
            return
        self._has_stopped = True
        self.gate.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.forwarder.close()
        try:
            await self.follower.close()
        finally:
            self.store.close()


async def _both(first: asyncio.Future[None], second: asyncio.Future[None] | None) -> None:
    await asyncio.gather(*(asyncio.shield(each) for each in (first, second) if each is not None))


def _retrieved(future: asyncio.Future[None]) -> None:
    """Retrieve an exception, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()
