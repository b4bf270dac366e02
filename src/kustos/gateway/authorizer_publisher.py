"""From the metadata log to the authorizer: a whole set of ACLs at first, then change by change."""

import asyncio
import gc
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import structlog

from kustos.authorizer import AuthorizerError, StandardAuthorizerPlugin
from kustos.authorizer.replacing import dismantle, prepared, put_in_force
from kustos.metadata.errors import MetadataError
from kustos.metadata.image import AclAdded, AclRemoved, MetadataDelta, MetadataImage
from kustos.runtime import collector_at_rest, short_turns

LOG: Final = structlog.get_logger("kustos.gateway")

LOADED_AT_ONCE_MAX: Final = 4_096
"""ACLs that the event loop itself takes in, in some 20 ms; more are prepared on another thread."""

Item = TypeVar("Item")


class LoadInterruptedError(MetadataError):
    """The node ends before the ACLs are loaded, or newer ones came."""


class _Load:
    """One set of ACLs on its way."""

    def __init__(self, image: MetadataImage) -> None:
        self.image: Final = image
        self.waiting: Final[list[MetadataDelta]] = []
        self.interrupted = False
        self.ended: Final = threading.Event()

    def until_interrupted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; raise `LoadInterruptedError` once nobody wants them any more."""
        for item in items:
            if self.interrupted:
                raise LoadInterruptedError("other ACLs came, or the node ends")
            yield item

    def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for the end, unless that would be the event loop itself, which has to bring it."""
        try:
            waits = asyncio.get_running_loop() is not loop
        except RuntimeError:
            waits = True
        if waits:
            self.ended.wait()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep the garbage collector away from what grows, and afterwards from what stays."""
    with collector_at_rest(), short_turns():
        try:
            yield
        finally:
            # before it wakes: it would look at millions of objects in one breath, and find no garbage
            gc.freeze()


class AuthorizerPublisher:
    """Keeps the authorizer in step with the log.

    It is called on the writer's thread and hands each delta to the event loop whole, where the
    authorizer lives: no decision sees a part of it. The answer to the request that made the change is
    handed to the loop after it, so what was acknowledged is in force.

    Many ACLs are prepared aside while the old ones decide (nobody, at the start). Deltas that come
    meanwhile wait for them, and with them whoever published one.
    """

    def __init__(self, plugin: StandardAuthorizerPlugin, loop: asyncio.AbstractEventLoop) -> None:
        self._plugin: Final = plugin
        self._authorizer: Final = plugin.standard
        self._loop: Final = loop
        self._load: _Load | None = None
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self.offset = -1

    @property
    def is_settled(self) -> bool:
        """Whether no ACLs are on their way and none of the old ones are left."""
        return self._load is None and not self._tasks

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Replace every ACL, many of them some time later; where that cannot be, who waits is told so."""
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
        task = self._loop.create_task(self._replace(load))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace(self, load: "_Load") -> None:
        """Prepare the ACLs on another thread, put them in force, free the old ones on that thread."""
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
            return
        except Exception as error:  # noqa: BLE001 - any fault must deny: the log's ACLs are not in force
            self._load = None
            self._lose_step(error, load.image.offset)
            self._plugin.complete_initial_load(error)
            return
        finally:
            load.interrupted = True
            load.ended.set()
        with short_turns():
            await asyncio.to_thread(dismantle, fresh)

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Apply the changes, in order, on the event loop; while ACLs are loaded wait until that was done."""
        load = self._load
        self._loop.call_soon_threadsafe(self._apply_in_turn, delta)
        if load is not None:
            load.wait(self._loop)

    def _apply_in_turn(self, delta: MetadataDelta) -> None:
        if self._load is None:
            self._apply(delta)
        else:
            self._load.waiting.append(delta)

    def _apply(self, delta: MetadataDelta) -> None:
        if delta.last_offset <= self.offset:
            # a newer set of ACLs overtook it, and has it in it
            return
        try:
            for change in delta.changes:
                match change:
                    case AclAdded(acl_id, binding):
                        self._authorizer.add_acl(acl_id, binding)
                    case AclRemoved(acl_id, _):
                        self._authorizer.remove_acl(acl_id)
        except Exception as error:  # noqa: BLE001 - the boundary where any fault must deny
            self._lose_step(error, delta.last_offset)
            return
        self.offset = delta.last_offset

    def _lose_step(self, error: Exception, offset: int) -> None:
        """Decide nothing any more, for what it would decide by is no longer what the log says."""
        self._authorizer.is_ready = False
        self._authorizer.version += 1
        known = isinstance(error, AuthorizerError)
        LOG.critical(
            "the authorizer lost step with the metadata log and denies everything, restart this node",
            reason=str(error),
            offset=offset,
            exc_info=None if known else error,
        )
