"""The metadata in a worker: the writer's log, up to the last applied batch.

A worker decides by its authorizer's index and makes no changes itself, so it holds each ACL once: the image
has the ACLs of a snapshot only until the publishers have them.
"""

import threading
from contextlib import ExitStack
from typing import Final

from kustos.gateway.workers.errors import ChannelError
from kustos.gateway.workers.messages import LogBatch, SnapshotBatch
from kustos.metadata.control import TokenRules
from kustos.metadata.image import MetadataImage, MetadataPublisher
from kustos.metadata.log import MetaProperties, SnapshotId
from kustos.metadata.quorum import Committed, CommittedImage, FetchedBatch, SnapshotLoad
from kustos.metadata.records import SnapshotFooter, controls_of
from kustos.runtime import garbage_collection_paused
from kustos.wire import read_batch, read_raw_batch


class WorkerStore:
    """The image that the writer sent, and its publishers. Unusable after an error.

    Its batches come in order, from any thread, one at a time.
    """

    def __init__(self, properties: MetaProperties, token_rules: TokenRules) -> None:
        self.properties: Final = properties
        self.token_rules: Final = token_rules
        self._committed: Final = CommittedImage()
        self._load: SnapshotLoad | None = None
        self._collector_pause: Final = ExitStack()
        self._publishers: Final[list[MetadataPublisher]] = []
        self._snapshot_batches = 0
        self._has_all_publishers = False
        self._lock: Final = threading.Lock()
        """Held while the image changes: `complete` comes at any time."""

    @property
    def image(self) -> MetadataImage:
        """The state after the last applied batch; without ACLs once all publishers have them."""
        return self._committed.image

    @property
    def last_offset(self) -> int:
        """The offset of the last applied record."""
        return self.image.offset

    @property
    def steps(self) -> int:
        """The number of log records and snapshot batches processed so far; from any thread."""
        return self._committed.steps + self._snapshot_batches

    def add_publisher(self, publisher: MetadataPublisher) -> None:
        """Publish the current image now and every later delta to the publisher.

        Raise RuntimeError after `complete`: the image has no ACLs any more.
        """
        if self._has_all_publishers:
            raise RuntimeError("a publisher came after the ACLs were given away")
        publisher.publish_snapshot(self.image)
        self._publishers.append(publisher)

    def complete(self) -> None:
        """Release the ACLs of the image, and of each later snapshot: all publishers have been added.

        From any thread; blocks while a batch is applied.
        """
        with self._lock:
            self._has_all_publishers = True
            self._committed.forget_acls()

    def take_snapshot(self, piece: SnapshotBatch) -> bool:
        """Take the next batch of a snapshot; return whether it was the last one, and is in the image.

        Raise `MetadataError` or `CorruptBatchError` for an invalid batch.
        """
        snapshot_id = SnapshotId(piece.end_offset, piece.epoch)
        if self._load is None:
            self._load = SnapshotLoad(snapshot_id.file_name)
            # until the image is complete
            self._collector_pause.enter_context(garbage_collection_paused())
        raw = read_raw_batch(piece.payload)
        self._load.add(raw)
        self._snapshot_batches += 1
        if not raw.is_control or SnapshotFooter() not in controls_of(raw.decode()):
            return False
        with self._lock:
            image = self._committed.take_over(self._load, snapshot_id)
            self._load = None
            self._collector_pause.close()
            for publisher in self._publishers:
                publisher.publish_snapshot(image)
            if self._has_all_publishers:
                self._committed.forget_acls()
        return True

    def take_batch(self, batch: LogBatch) -> None:
        """Apply a batch of the log; raise `MetadataError` or `CorruptBatchError` if it cannot be applied."""
        if self._load is not None:
            raise ChannelError("a batch of the log came within a snapshot")
        read, _ = read_batch(batch.payload)
        committed = Committed(
            (FetchedBatch(read, batch.payload),),
            from_offset=self.last_offset + 1,
            end_offset=read.last_offset + 1,
            epoch=read.partition_leader_epoch,
        )
        with self._lock:
            delta = self._committed.apply(committed)
        if delta is not None:
            for publisher in self._publishers:
                publisher.publish_delta(delta)

    def close(self) -> None:
        """Resume garbage collection, if a snapshot was never completed."""
        self._collector_pause.close()
