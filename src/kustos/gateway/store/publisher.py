"""Publishes the metadata log to the authorizer: first the whole set of ACLs, then each change."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import structlog

from kustos.authorizer import (
    AuthorizerError,
    StandardAuthorizer,
    StandardAuthorizerPlugin,
    dismantle,
    prepared,
    put_in_force,
)
from kustos.client import one_shot
from kustos.gateway.store.large_work import LARGE_ITEMS_MIN
from kustos.metadata import MetadataError
from kustos.metadata.image import AclAdded, AclIdRemoved, AclRemoved, MetadataDelta, MetadataImage, free
from kustos.runtime import freeze_objects, garbage_collection_paused, short_switch_interval

LOG: Final = structlog.get_logger("kustos.gateway")

LOADED_AT_ONCE_MAX: Final = 4_096
"""The maximum number of ACLs that the event loop loads itself, in some 20 ms; another thread prepares larger
sets."""

Item = TypeVar("Item")


class LoadInterruptedError(MetadataError):
    """The node stopped before the ACLs were loaded, or newer ones arrived."""


class _Load:
    """One set of ACLs being loaded."""

    def __init__(self, image: MetadataImage) -> None:
        self.image: Final = image
        self.waiting: Final[list[MetadataDelta]] = []
        self.interrupted = False
        self.ended: Final = threading.Event()

    def until_interrupted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; raise `LoadInterruptedError` once the set is no longer wanted."""
        for item in items:
            if self.interrupted:
                raise LoadInterruptedError("other ACLs came, or the node ends")
            yield item


def _wait(event: threading.Event, loop: asyncio.AbstractEventLoop) -> None:
    """Wait for an event that the event loop sets, unless called on the event loop itself."""
    try:
        waits = asyncio.get_running_loop() is not loop
    except RuntimeError:
        waits = True
    if waits:
        event.wait()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Pause garbage collection while data grows, and afterwards freeze the data that stays."""
    with garbage_collection_paused(), short_switch_interval():
        try:
            yield
        finally:
            freeze_objects()


class DecidedOffset:
    """The offset up to which decisions follow the log; None: they do not depend on it.

    `reached` is called when the offset has changed, on the thread that changed it.
    """

    def __init__(self, reached: Callable[[], object] = lambda: None) -> None:
        self.offset: int | None = None
        self._reached: Final = reached

    def reach(self, offset: int) -> None:
        """Record that decisions follow the log up to this offset."""
        self.offset = offset
        self._reached()


class AuthorizerPublisher:
    """Keeps the authorizer in step with the log.

    The writer's thread calls it, and it passes each delta as a whole to the event loop, which runs the
    authorizer: no decision sees a part of a delta. The answer to the request that made the change is
    scheduled on the loop after the delta, so an acknowledged change is in force. The writer's thread waits
    for a large delta, so that the loop can serve other work before the next one.

    Another thread prepares large sets of ACLs while the old ones decide (at the start, there are none).
    Deltas that arrive meanwhile wait, and block their publisher.
    """

    def __init__(
        self,
        plugin: StandardAuthorizerPlugin,
        loop: asyncio.AbstractEventLoop,
        decided: DecidedOffset | None = None,
    ) -> None:
        self._plugin: Final = plugin
        self._authorizer: Final = plugin.standard
        self._loop: Final = loop
        self._load: _Load | None = None
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._decided: Final = decided or DecidedOffset()
        self.offset = -1

    @property
    def offset(self) -> int:
        """The offset up to which decisions follow the log."""
        return -1 if self._decided.offset is None else self._decided.offset

    @offset.setter
    def offset(self, offset: int) -> None:
        self._decided.reach(offset)

    @property
    def is_idle(self) -> bool:
        """Whether no ACLs are being loaded and no old ones remain in memory."""
        return self._load is None and not self._tasks

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Replace every ACL, large sets with a delay; waiting callers get any failure."""
        if self._load is not None:
            self._load.interrupted = True
        if len(image.acls) > LOADED_AT_ONCE_MAX:
            self._load = load = _Load(image)
            self._loop.call_soon_threadsafe(self._begin, load)
            return
        self._load = None
        try:
            self._authorizer.load_snapshot(image.acls.items())
        except Exception as error:
            self._plugin.complete_initial_load(error)
            raise
        self.offset = image.offset
        self._plugin.complete_initial_load()

    def _begin(self, load: "_Load") -> None:
        task = one_shot("acl-replacement", self._replace(load))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace(self, load: "_Load") -> None:
        """Put the ACLs in force, and free on another thread what is no longer needed, piece by piece."""
        # the image may be the last one that has the ACLs
        pieces = load.image.pieces()
        old = await self._put_in_force(load)
        del load
        with short_switch_interval():
            if old is not None:
                await asyncio.to_thread(dismantle, old)
            await asyncio.to_thread(free, pieces)

    async def _put_in_force(self, load: "_Load") -> StandardAuthorizer | None:
        """Prepare the ACLs on another thread and put them in force; return what is to be dismantled."""
        authorizer = self._authorizer
        try:
            with _undisturbed():
                while True:
                    acls = load.until_interrupted(load.image.acls.items())
                    fresh = await asyncio.to_thread(prepared, authorizer, acls)
                    if load.interrupted or put_in_force(authorizer, fresh):
                        break
            if not load.interrupted:
                self.offset = load.image.offset
                self._load = None
                self._plugin.complete_initial_load()
                for delta in load.waiting:
                    self._apply(delta)
        except LoadInterruptedError:
            return None
        except Exception as error:  # noqa: BLE001 - any error must deny: the log's ACLs are not in force
            self._load = None
            self._deny_all(error, load.image.offset)
            self._plugin.complete_initial_load(error)
            return None
        else:
            return fresh
        finally:
            load.interrupted = True
            load.ended.set()

    def close(self) -> None:
        """Deny for good, and stop loading ACLs; on the event loop."""
        self._authorizer.close()
        if self._load is not None:
            self._load.interrupted = True

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Apply the changes, in order, on the event loop; first wait until ACLs being loaded are in force."""
        load, taken = self._load, threading.Event()
        self._loop.call_soon_threadsafe(self._apply_in_turn, delta, taken)
        if load is not None:
            _wait(load.ended, self._loop)
        elif len(delta.changes) >= LARGE_ITEMS_MIN:
            _wait(taken, self._loop)

    def _apply_in_turn(self, delta: MetadataDelta, taken: threading.Event) -> None:
        try:
            if self._load is None:
                with garbage_collection_paused():
                    self._apply(delta)
            else:
                self._load.waiting.append(delta)
        finally:
            # the writer's thread must not wait forever
            taken.set()

    def _apply(self, delta: MetadataDelta) -> None:
        if delta.last_offset <= self.offset or not self._authorizer.is_ready:
            # a newer set of ACLs already contains it, or an earlier change failed: decisions do not follow
            # the log any more, and the offset must not say that they do
            return
        try:
            for change in delta.changes:
                match change:
                    case AclAdded(acl_id, binding):
                        self._authorizer.add_acl(acl_id, binding)
                    case AclRemoved(acl_id) | AclIdRemoved(acl_id):
                        self._authorizer.remove_acl(acl_id)
        except Exception as error:  # noqa: BLE001 - at this boundary, any error must deny
            self._deny_all(error, delta.last_offset)
            return
        self.offset = delta.last_offset

    def _deny_all(self, error: Exception, offset: int) -> None:
        """Deny everything from now on: the authorizer no longer agrees with the log."""
        self._authorizer.suspend()
        known = isinstance(error, AuthorizerError)
        LOG.critical(
            "the authorizer differs from the metadata log and denies everything, restart this node",
            reason=str(error),
            offset=offset,
            exc_info=None if known else error,
        )
