"""One worker as the writer process sees it: its phase, the confirmations that it owes, and its fence.

```
STARTING ─connected─▸ LOADING ─Applied─▸ LIVE ─Serving─▸ SERVING
    └──────────────────────┴───────────────┴──────────────┴─▸ HARMLESS ─exit─▸ GONE
```

Changes wait for a worker from LIVE on, before its listeners open, until it is HARMLESS: it reported that it
no longer decides anything, or its process has ended. A fence requests the report and enforces the end.
"""

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, unique
from functools import partial
from itertools import count
from typing import Any, Final

import structlog

from kustos.client import supervised
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.messages import (
    FRAME_MAX_BYTES,
    Drain,
    Drained,
    Fence,
    Look,
    WorkerStatus,
)
from kustos.metadata.image import MetadataImage


class WorkerProcess:
    """A child process. `exited` gets its exit code (negative: the signal) when it has ended.

    The kernel reports an exit only after it has closed the files and sockets of the process: bytes of a
    client that were not read by then are never read.
    """

    def __init__(self, command: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        self.exited: Final[asyncio.Future[int]] = loop.create_future()
        # a fixed command: this interpreter, a module, numbers and a directory
        self._process: Final = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603
        try:
            self._descriptor: Final = os.pidfd_open(self._process.pid)
        except OSError:
            # a process that is not watched must not live
            self._process.kill()
            self._process.wait()
            raise
        self._loop: Final = loop
        loop.add_reader(self._descriptor, self._reap)

    @property
    def pid(self) -> int:
        """The process id; not reused before `exited` is done."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the process, even if it is stopped."""
        if not self.exited.done():
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def _reap(self) -> None:
        self._loop.remove_reader(self._descriptor)
        code = self._process.wait()
        if not self.exited.done():
            self.exited.set_result(code)
        os.close(self._descriptor)


LOG: Final = structlog.get_logger("kustos.gateway")

FENCE_GRACE_S: Final = 0.25
"""How long a fenced worker may take to confirm that it denies; a healthy one needs a millisecond."""

EXIT_GRACE_S: Final = 5.0
"""How long a fenced worker that no longer decides may take to write its audit events before it is killed."""

READ_UP_S: Final = 0.02
"""Some event loop iterations; the loop checks its clock before its sockets."""

PENDING_MAX_BYTES: Final = FRAME_MAX_BYTES
"""The maximum number of bytes that wait until a worker has its image; a slower worker is fenced. The channel
takes twice as much at once."""


@unique
class WorkerPhase(Enum):
    """The phases of a worker."""

    STARTING = "starting"
    LOADING = "loading"
    LIVE = "live"
    SERVING = "serving"
    HARMLESS = "harmless"
    GONE = "gone"


STARTS: Final = frozenset({WorkerPhase.STARTING, WorkerPhase.LOADING})
WAITED_FOR: Final = frozenset({WorkerPhase.LIVE, WorkerPhase.SERVING})


class WorkerHandle:
    """A worker of the pool; created with its process, inside the event loop."""

    def __init__(self, index: int, process: WorkerProcess) -> None:
        self.index: Final = index
        self.process: Final = process
        self.phase = WorkerPhase.STARTING
        self.channel: Channel | None = None
        self.applied = -1
        self.serving: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self.harmless: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self.started_s: Final = asyncio.get_running_loop().time()
        self.progressed_s = self.started_s
        """The time of the last known progress."""
        self._steps = 0
        self._sent_up_to = -1
        self._pending: deque[bytes | MetadataImage] | None = None
        self._pending_bytes = 0
        self._owed: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._looks: dict[int, asyncio.Future[WorkerStatus | None]] = {}
        self._drains: dict[int, asyncio.Future[bool]] = {}
        self._numbers: Final = count()
        self._fencing: asyncio.Task[None] | None = None

    @property
    def was_fenced(self) -> bool:
        """Whether it was fenced, or is being fenced."""
        return self._fencing is not None

    def joined(self, channel: Channel) -> None:
        """Attach the worker's channel."""
        self.channel = channel
        self.phase = WorkerPhase.LOADING

    def begin_image(self, image: MetadataImage) -> bool:
        """Hold back later frames until this image is sent; return False if an older one is still being sent.

        In that case, this image follows the older one.
        """
        self._sent_up_to = image.offset
        if self._pending is not None:
            self._pending.append(image)
            return False
        self._pending = deque()
        return True

    def image_sent(self) -> MetadataImage | None:
        """Send the frames held back for the image; return the next image, if any: later frames follow it."""
        while self._pending:
            waiting = self._pending.popleft()
            if isinstance(waiting, MetadataImage):
                return waiting
            self._pending_bytes -= len(waiting)
            if self.channel is not None:
                self.channel.send_frame(waiting)
        self._pending = None
        return None

    def take_batches(self, offset: int, frames: Iterable[bytes]) -> None:
        """Send the worker batches of the log up to this offset, unless its image contains them."""
        if offset > self._sent_up_to:
            for frame in frames:
                self.send_in_turn(frame)

    def send_in_turn(self, frame: bytes) -> None:
        """Send the worker a frame after its image; drop the frame if the worker is not connected yet."""
        if self.channel is None:
            return
        if self._pending is None:
            self.channel.send_frame(frame)
            return
        self._pending_bytes += len(frame)
        if self._pending_bytes > PENDING_MAX_BYTES:
            self.fence("it takes too long to load")
        else:
            self._pending.append(frame)

    def reached(self, offset: int) -> None:
        """Record that the worker decides by the log up to this offset."""
        if offset > self.applied:
            self.applied = offset
            self._progressed()
        if self.phase is WorkerPhase.LOADING:
            self.phase = WorkerPhase.LIVE
        while self._owed and self._owed[0][0] <= self.applied:
            _done(self._owed.popleft()[1])

    def stepped(self, steps: int) -> None:
        """Record how many steps of the log the worker has processed since its start.

        A worker that loads may work for long between two steps: there, each report counts as progress.
        """
        if steps > self._steps or self.phase is WorkerPhase.LOADING:
            self._steps = steps
            self._progressed()

    def _progressed(self) -> None:
        self.progressed_s = asyncio.get_running_loop().time()

    def serves(self) -> None:
        """Record that the worker's listeners are open."""
        if self.phase is WorkerPhase.LIVE:
            self.phase = WorkerPhase.SERVING
            _done(self.serving)

    def in_force(self, offset: int) -> asyncio.Future[None] | None:
        """Return a future for when the worker decides by this offset or not at all; None if it does now."""
        if self.phase not in WAITED_FOR or self.applied >= offset:
            return None
        if self._owed and self._owed[-1][0] >= offset:
            # a lower offset shares the future of the next sufficient one; offsets come in order
            return self._owed[-1][1]
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owed.append((offset, future))
        return future

    async def look(self, *, wants_metrics: bool, timeout_s: float) -> WorkerStatus | None:
        """Return the worker's state; None if it does not reply in time."""
        if self.channel is None or self.phase not in WAITED_FOR:
            return None
        number = next(self._numbers)
        answer: asyncio.Future[WorkerStatus | None] = asyncio.get_running_loop().create_future()
        self._looks[number] = answer
        try:
            self.channel.send(Look(number, wants_metrics))
            return None if await late_of((answer,), timeout_s) else answer.result()
        finally:
            del self._looks[number]

    def seen(self, seen: WorkerStatus) -> None:
        """Store the worker's state."""
        _done(self._looks.get(seen.id), seen)

    async def drain(self) -> bool:
        """Return whether brokers are done with the worker's requests that the ACLs would deny now.

        The worker applies its own time limit; if it ends during the drain, all its connections end with it.
        """
        if self.channel is None or self.phase not in WAITED_FOR:
            return True
        number = next(self._numbers)
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._drains[number] = answer
        try:
            self.channel.send(Drain(number))
            return await answer
        finally:
            del self._drains[number]

    def drained(self, drained: Drained) -> None:
        """Take the result of a `drain`."""
        _done(self._drains.get(drained.id), drained.is_drained)

    def fence(self, reason: str) -> None:
        """Make the worker harmless; `harmless` is done when that is certain. Further calls have no effect."""
        if self._fencing is None and not self.process.exited.done():
            self._fencing = supervised("worker-fence", partial(self._fence, reason))
            LOG.error("a worker is fenced", worker=self.index, pid=self.process.pid, reason=reason)

    async def _fence(self, reason: str) -> None:
        if self.process.exited.done():
            return
        try:
            if self.channel is not None:
                self.channel.send(Fence(reason))
                await asyncio.wait((self.harmless,), timeout=FENCE_GRACE_S)
            if self.harmless.done() or self.phase not in WAITED_FOR:
                # no decision is at stake, and a worker that cannot start is about to report the reason
                await asyncio.wait((self.process.exited,), timeout=EXIT_GRACE_S)
        finally:
            # the signal ends a worker even if it is stopped or hangs, and whatever failed before
            self.process.kill()

    def became_harmless(self) -> None:
        """Record that the worker no longer decides anything."""
        if self.phase is not WorkerPhase.GONE:
            self.phase = WorkerPhase.HARMLESS
        _done(self.harmless)
        while self._owed:
            _done(self._owed.popleft()[1])
        for answer in self._looks.values():
            _done(answer, None)
        for drain in self._drains.values():
            _done(drain, True)

    def gone(self) -> None:
        """Record that the worker's process has ended."""
        self.became_harmless()
        self.phase = WorkerPhase.GONE
        if self.channel is not None:
            self.channel.close("its process has ended")


async def late_of(futures: Iterable[asyncio.Future[Any]], timeout_s: float) -> set[asyncio.Future[Any]]:
    """Return the futures that are not done in time.

    If this process itself was delayed, it first reads the messages that arrived meanwhile.
    """
    _, late = await asyncio.wait(futures, timeout=timeout_s)
    if late:
        _, late = await asyncio.wait(late, timeout=READ_UP_S)
    return late


def _done(future: asyncio.Future[Any] | None, result: object = None) -> None:
    if future is not None and not future.done():
        future.set_result(result)


LOOK_AGAIN_S: Final = 0.1
"""How soon to check a late worker again while no other one serves."""


def is_spare(worker: WorkerHandle, workers: Iterable[WorkerHandle]) -> bool:
    """Return whether other workers serve clients without this one."""
    return any(
        each is not worker and each.phase is WorkerPhase.SERVING and not each.was_fenced for each in workers
    )


async def all_in_force(
    owed: Mapping[asyncio.Future[None], WorkerHandle],
    workers: Callable[[], Iterable[WorkerHandle]],
    timeout_s: float,
    reason: str,
) -> None:
    """Return when all futures are done; fence spare workers without progress for `timeout_s`."""
    loop = asyncio.get_running_loop()
    begun_s, waiting, wait_s = loop.time(), dict(owed), timeout_s
    while waiting:
        late = await late_of(waiting, wait_s)
        waiting = {future: worker for future, worker in waiting.items() if future in late}
        wait_s = timeout_s
        for worker in waiting.values():
            if worker.was_fenced:
                # the future is done once the worker is harmless for certain, however long that takes
                continue
            left_s = max(begun_s, worker.progressed_s) + timeout_s - loop.time()
            if left_s > 0:
                wait_s = min(wait_s, left_s)
            elif is_spare(worker, workers()):
                worker.fence(reason)
            else:
                wait_s = min(wait_s, LOOK_AGAIN_S)
