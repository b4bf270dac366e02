"""The workers as followers of the writer's log: they receive its batches, and changes wait for them.

The central rule: a change is answered when every worker that serves clients decides by it, or no longer
decides anything. A worker that does not confirm the change in time is fenced, and the answer waits until the
fence is certain.
"""

import asyncio
from functools import partial
from typing import Final

from kustos.client import one_shot
from kustos.gateway.upstream.in_flight import RequestsInFlightError
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.handle import WorkerHandle, WorkerPhase, all_in_force
from kustos.gateway.workers.messages import (
    Current,
    Levels,
    LogBatch,
    LoginFailed,
    QuorumLost,
    Reload,
    SnapshotBatch,
    WorkerStatus,
    encode,
)
from kustos.metadata.image import MetadataDelta, MetadataImage
from kustos.metadata.log import snapshot_pieces


class WorkerFollowers:
    """The workers of a node; a `MetadataPublisher`, and the `Followers` of its writer."""

    def __init__(self, size: int, apply_timeout_ms: int) -> None:
        self._size: Final = size
        self._timeout_s: Final = apply_timeout_ms / 1000
        self._loop: Final = asyncio.get_running_loop()
        self.workers: Final[dict[int, WorkerHandle]] = {}
        self.position = -1
        """The offset up to which the log was sent to the workers: no acknowledged change has a higher
        offset."""
        self._standing: Final[dict[type[Reload | Levels | QuorumLost | Current], bytes]] = {}
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self.is_stopping = False
        """Whether workers that end are no longer restarted."""

    @property
    def serving(self) -> int:
        """The number of workers that serve."""
        return sum(worker.phase is WorkerPhase.SERVING for worker in self.workers.values())

    @property
    def is_complete(self) -> bool:
        """Whether all workers serve and will continue to."""
        return not self.is_stopping and self.serving == self._size

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Send every worker a new image; a worker that connects later gets it then."""
        self._loop.call_soon_threadsafe(self._send_snapshot, image)

    def _send_snapshot(self, image: MetadataImage) -> None:
        self.position = image.offset
        for worker in self.workers.values():
            if worker.channel is not None:
                self._begin_image(worker, worker.channel, image)

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Send every worker the batches of a delta; called on the writer's thread."""
        frames = [encode(LogBatch(each)) for each in delta.batches]
        self._loop.call_soon_threadsafe(self._send_batches, delta.last_offset, frames)

    def _send_batches(self, offset: int, frames: list[bytes]) -> None:
        self.position = offset
        for worker in self.workers.values():
            worker.take_batches(offset, frames)

    def welcome(self, worker: WorkerHandle, channel: Channel, image: MetadataImage) -> None:
        """Begin to send a worker the log: this image, then the batches after it."""
        worker.joined(channel)
        self._begin_image(worker, channel, image)
        for frame in self._standing.values():
            worker.send_in_turn(frame)

    def _begin_image(self, worker: WorkerHandle, channel: Channel, image: MetadataImage) -> None:
        if worker.begin_image(image):
            sending = _send_image(worker, channel, image)
            task = one_shot("worker-image", sending, partial(_lacks_image, worker))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def in_force(self, offset: int) -> None:
        """Return when every serving worker decides by the log up to this offset, or is harmless."""
        owed: dict[asyncio.Future[None], WorkerHandle] = {}
        for worker in self.workers.values():
            if (future := worker.in_force(offset)) is not None:
                owed[future] = worker
        if owed:
            reason = f"it makes no progress towards offset {offset}"
            await all_in_force(owed, self.workers.values, self._timeout_s, reason)

    async def drain(self, but: WorkerHandle | None = None) -> None:
        """Return when no broker has a request of a worker that the ACLs would deny now.

        `but`: the worker that answers the client, and drains its own requests before it does. Raise
        `RequestsInFlightError` if that is not certain in time.
        """
        workers = [worker for worker in self.workers.values() if worker is not but]
        if not all(await asyncio.gather(*(worker.drain() for worker in workers))):
            raise RequestsInFlightError

    async def looks(self, *, wants_metrics: bool) -> list[tuple[WorkerHandle, WorkerStatus | None]]:
        """Return the state of each worker; None for a worker that does not serve or does not reply."""
        workers = list(self.workers.values())
        seen = await asyncio.gather(
            *(each.look(wants_metrics=wants_metrics, timeout_s=self._timeout_s) for each in workers)
        )
        return list(zip(workers, seen, strict=True))

    def broadcast(self, message: Reload | Levels | QuorumLost | Current) -> None:
        """Send this message to every worker; a later worker gets the last one of its kind after its image."""
        frame = self._standing[type(message)] = encode(message)
        for worker in self.workers.values():
            worker.send_in_turn(frame)

    def current(self, as_of_ms: int) -> None:
        """Notify every worker, after earlier messages, that it has everything committed by this time."""
        self.broadcast(Current(as_of_ms))

    def quorum_lost(self) -> None:
        """Notify every worker, also later ones, that the metadata can never become current again."""
        self.broadcast(QuorumLost())

    def broadcast_failed_login(self, host: str, sender: WorkerHandle | None = None) -> None:
        """Make the other serving workers count a failed login; a worker that loads must not be delayed."""
        frame = encode(LoginFailed(host))
        for worker in self.workers.values():
            if worker is not sender and worker.phase is WorkerPhase.SERVING and worker.channel is not None:
                worker.channel.send_frame(frame)

    async def close(self) -> None:
        """Send no more images."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _send_image(worker: WorkerHandle, channel: Channel, image: MetadataImage) -> None:
    """Send the image as a snapshot, batch by batch, then the batches that arrived meanwhile."""
    following: MetadataImage | None = image
    while following is not None:
        end_offset, epoch = following.offset + 1, following.epoch
        pieces = snapshot_pieces(following.records(), epoch=epoch, timestamp_ms=0)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            channel.send(SnapshotBatch(end_offset, epoch, piece))
            await channel.drain()
        following = worker.image_sent()


def _lacks_image(worker: WorkerHandle, _: BaseException) -> None:
    """End a worker that would otherwise wait forever for the rest of its image."""
    worker.fence("it did not get the metadata")
