"""One worker, as the writer process knows it: where it stands, what it still owes, and how it is fenced.

```
STARTING ─connected─▸ LOADING ─Applied─▸ LIVE ─Serving─▸ SERVING
    └──────────────────────┴───────────────┴──────────────┴─▸ HARMLESS ─exit─▸ GONE
```

Changes wait for it from LIVE on, before its listeners open, until it is HARMLESS: it said itself that it
decides nothing any more, or its process is gone. A fence asks for the first and sees to the second.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from enum import Enum, unique
from itertools import count
from typing import Any, Final

import structlog

from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.messages import Fence, Look, Seen
from kustos.gateway.workers.process import WorkerProcess

LOG: Final = structlog.get_logger("kustos.gateway")

FENCE_GRACE_S: Final = 0.25
"""How long a fenced worker may take to say that it denies; one that is well does so within a millisecond."""

LAST_WORDS_S: Final = 5.0
"""How long a fenced worker that decides nothing may take to write down what it did, before it is killed."""

READ_UP_S: Final = 0.02
"""Some turns of the event loop, which looks at its clock before its sockets."""

PENDING_MAX: Final = 10_000
"""Batches of the log that wait until a new worker has its image; one that is slower is given up."""


@unique
class Phase(Enum):
    """Where a worker stands."""

    STARTING = "starting"
    LOADING = "loading"
    LIVE = "live"
    SERVING = "serving"
    HARMLESS = "harmless"
    GONE = "gone"


WAITED_FOR: Final = frozenset({Phase.LIVE, Phase.SERVING})


class Member:
    """A worker of the crew; made with its process, inside the event loop."""

    def __init__(self, index: int, process: WorkerProcess) -> None:
        self.index: Final = index
        self.process: Final = process
        self.phase = Phase.STARTING
        self.channel: Channel | None = None
        self.applied = -1
        self.serving: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self.harmless: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self.started_s: Final = asyncio.get_running_loop().time()
        self._sent_up_to = -1
        self._pending: deque[bytes] | None = None
        self._owed: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._looks: dict[int, asyncio.Future[Seen | None]] = {}
        self._numbers: Final = count()
        self._fencing: asyncio.Task[None] | None = None

    @property
    def was_fenced(self) -> bool:
        """Whether it was, or is being, made harmless."""
        return self._fencing is not None

    def joined(self, channel: Channel, offset: int) -> None:
        """Its channel is there, and the image that it gets is that of this offset."""
        self.channel = channel
        self.phase = Phase.LOADING
        self._sent_up_to = offset
        self._pending = deque()

    def loaded(self) -> None:
        """It was sent the whole image: now what came meanwhile, and everything else at once."""
        pending, self._pending = self._pending, None
        if self.channel is not None:
            for frame in pending or ():
                self.channel.send_frame(frame)

    def take_delta(self, offset: int, frame: bytes) -> None:
        """Send it a batch of the log that it has not in its image."""
        if offset > self._sent_up_to:
            self.send_in_turn(frame)

    def send_in_turn(self, frame: bytes) -> None:
        """Send it a frame, after its image; nothing before it has come."""
        if self.channel is None:
            return
        if self._pending is None:
            self.channel.send_frame(frame)
        elif len(self._pending) < PENDING_MAX:
            self._pending.append(frame)
        else:
            self.fence("it takes too long to load")

    def reached(self, offset: int) -> None:
        """It decides by the log up to there."""
        self.applied = max(self.applied, offset)
        if self.phase is Phase.LOADING:
            self.phase = Phase.LIVE
        while self._owed and self._owed[0][0] <= self.applied:
            _done(self._owed.popleft()[1])

    def serves(self) -> None:
        """Its listeners are open."""
        if self.phase is Phase.LIVE:
            self.phase = Phase.SERVING
            _done(self.serving)

    def in_force(self, offset: int) -> asyncio.Future[None] | None:
        """Return what comes when it decides by this offset, or decides nothing any more; None: it is so."""
        if self.phase not in WAITED_FOR or self.applied >= offset:
            return None
        if self._owed and self._owed[-1][0] >= offset:
            # those who wait for less are served with the next that is enough; offsets come in order
            return self._owed[-1][1]
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owed.append((offset, future))
        return future

    async def look(self, *, wants_metrics: bool, timeout_s: float) -> Seen | None:
        """Return how it is; None where it does not say in time."""
        if self.channel is None or self.phase not in WAITED_FOR:
            return None
        number = next(self._numbers)
        answer: asyncio.Future[Seen | None] = asyncio.get_running_loop().create_future()
        self._looks[number] = answer
        try:
            self.channel.send(Look(number, wants_metrics))
            return None if await late_of((answer,), timeout_s) else answer.result()
        finally:
            del self._looks[number]

    def seen(self, seen: Seen) -> None:
        """It said how it is."""
        _done(self._looks.get(seen.id), seen)

    def fence(self, reason: str) -> None:
        """Make it harmless, for certain; `harmless` tells when. Twice is once."""
        if self._fencing is None and not self.process.exited.done():
            LOG.error("a worker is fenced", worker=self.index, pid=self.process.pid, reason=reason)
            self._fencing = asyncio.get_running_loop().create_task(self._fence(reason))

    async def _fence(self, reason: str) -> None:
        if self.channel is not None:
            self.channel.send(Fence(reason))
            await asyncio.wait((self.harmless,), timeout=FENCE_GRACE_S)
        if self.harmless.done() or self.phase not in WAITED_FOR:
            # no decision is at stake, and one that cannot start is about to say why
            await asyncio.wait((self.process.exited,), timeout=LAST_WORDS_S)
        # it may be stopped, or hang: this reaches it all the same
        self.process.kill()

    def made_harmless(self) -> None:
        """It decides nothing any more."""
        if self.phase is not Phase.GONE:
            self.phase = Phase.HARMLESS
        _done(self.harmless)
        while self._owed:
            _done(self._owed.popleft()[1])
        for answer in self._looks.values():
            _done(answer, None)

    def gone(self) -> None:
        """Its process has ended."""
        self.made_harmless()
        self.phase = Phase.GONE
        if self.channel is not None:
            self.channel.close("its process has ended")


async def late_of(futures: Iterable[asyncio.Future[Any]], timeout_s: float) -> set[asyncio.Future[Any]]:
    """Return those that are not done in time.

    Where this process itself was held up, what came meanwhile is read before anybody is called late.
    """
    _, late = await asyncio.wait(futures, timeout=timeout_s)
    if late:
        _, late = await asyncio.wait(late, timeout=READ_UP_S)
    return late


def _done(future: asyncio.Future[Any] | None, result: object = None) -> None:
    if future is not None and not future.done():
        future.set_result(result)
