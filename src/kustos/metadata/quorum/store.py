"""The metadata of a quorum on this node: the committed state, its publishers, the copy on disk.

It replaces the embedded store for all readers. Only the disk makes it wait: one thread calls `perform` with
the effects of the follower machine, in order. Nothing is published before the node has
caught up with the high watermark once, so no decision rests on a partial log.
"""

from pathlib import Path
from typing import Final

import structlog

from kustos.metadata.control import TokenRules
from kustos.metadata.errors import DirectoryError, MetadataError
from kustos.metadata.image import EMPTY_IMAGE, MetadataImage, MetadataPublisher
from kustos.metadata.log import LOCK_FILE, META_PROPERTIES, MetaProperties
from kustos.metadata.log.layout import no_metadata
from kustos.metadata.quorum.committed_image import CommittedImage
from kustos.metadata.quorum.copy import LocalCopy
from kustos.metadata.quorum.follower import FollowerMachine
from kustos.metadata.quorum.values import (
    Appended,
    CaughtUp,
    Committed,
    Effect,
    SnapshotFetched,
    Truncated,
)
from kustos.runtime import Clock, Storage, StorageLock

LOG: Final = structlog.get_logger("kustos.metadata")


class FollowedStore:
    """The committed state. Build it with `open`; the driver uses `machine`."""

    def __init__(
        self,
        properties: MetaProperties,
        copy: LocalCopy,
        lock: StorageLock,
        clock: Clock,
        token_rules: TokenRules,
    ) -> None:
        self.properties: Final = properties
        self.token_rules: Final = token_rules
        self.has_caught_up = False
        self._copy: Final = copy
        self._lock: Final = lock
        self._clock: Final = clock
        self._publishers: Final[list[MetadataPublisher]] = []
        self._committed = CommittedImage()
        self.machine: FollowerMachine
        self._take_over()

    def _take_over(self) -> None:
        """Continue where an earlier run ended."""
        copy = self._copy
        snapshot, kept, copy.snapshot, copy.kept = copy.snapshot, copy.kept, None, ()
        try:
            if snapshot is not None:
                self._committed.replace(snapshot)
        except MetadataError as error:
            LOG.warning("the local copy of the metadata is discarded and fetched again", reason=str(error))
            self.begin_anew()
            return
        base = None if snapshot is None else snapshot.snapshot_id
        self.machine = FollowerMachine(self.properties.cluster_id, base, kept)

    @classmethod
    def open(
        cls,
        directory: Path,
        storage: Storage,
        clock: Clock,
        token_rules: TokenRules | None = None,
        node_id: int | None = None,
    ) -> "FollowedStore":
        """Return the store of a formatted directory, with the state left by an earlier run.

        Raise `DirectoryError` if it is not formatted, belongs to a node other than `node_id` or holds its own
        log, `StorageLockedError` if another process has it.
        """
        path = directory / META_PROPERTIES
        if not storage.exists(path):
            remedy = (
                "run `kustos storage format` on it with the id of the cluster, or correct `metadata.log.dir`"
            )
            raise no_metadata(directory, storage, f"`{directory}` is not formatted", remedy)
        properties = MetaProperties.decode(storage.read(path), path)
        if node_id is not None and properties.node_id != node_id:
            raise DirectoryError(
                f"`{directory}` belongs to node {properties.node_id}, but `node.id` is {node_id}; name the "
                "node's own directory in `metadata.log.dir`"
            )
        lock = storage.lock(directory / LOCK_FILE)
        try:
            copy = LocalCopy.open(directory, storage)
            return cls(properties, copy, lock, clock, token_rules or TokenRules())
        except BaseException:
            lock.release()
            raise

    @property
    def image(self) -> MetadataImage:
        """The published committed state; empty before the node has caught up."""
        return self._committed.image if self.has_caught_up else EMPTY_IMAGE

    @property
    def last_offset(self) -> int:
        """The last applied offset; -1 before the node has caught up."""
        return self.image.offset

    def add_publisher(self, publisher: MetadataPublisher) -> None:
        """Pass the image to the publisher, now or once the node has caught up, and every later delta.

        Not while `perform` runs.
        """
        if self.has_caught_up:
            publisher.publish_snapshot(self.image)
        self._publishers.append(publisher)

    def perform(self, effects: tuple[Effect, ...]) -> None:
        """Perform effects in order; raise `MetadataError` if the log cannot be applied, which is final.

        When it returns, every publisher has the committed changes.
        """
        for effect in effects:
            match effect:
                case Appended(batches):
                    self._copy.append(batches)
                case Truncated(end_offset):
                    self._copy.truncate(end_offset)
                case Committed():
                    self._apply(effect)
                case SnapshotFetched():
                    self._replace(effect)
                case CaughtUp():
                    self._begin_publishing()

    def _apply(self, committed: Committed) -> None:
        delta = self._committed.apply(committed)
        self._copy.commit(committed.end_offset)
        if self.has_caught_up and delta is not None:
            for publisher in self._publishers:
                publisher.publish_delta(delta)
        if self._copy.wants_snapshot and not self._committed.in_transaction:
            self._copy.replace_by(self._committed.image, self._clock.wall_ms())

    def _replace(self, fetched: SnapshotFetched) -> None:
        image = self._committed.replace(fetched)
        LOG.info("took over a snapshot of the quorum", offset=image.offset, epoch=image.epoch)
        self._copy.replace(fetched)
        if self.has_caught_up:
            for publisher in self._publishers:
                publisher.publish_snapshot(image)

    def _begin_publishing(self) -> None:
        if self.has_caught_up:
            return
        self.has_caught_up = True
        image = self._committed.image
        LOG.info("caught up with the quorum", offset=image.offset, epoch=image.epoch, acls=len(image.acls))
        for publisher in self._publishers:
            publisher.publish_snapshot(image)

    def begin_anew(self) -> None:
        """Discard the state of an earlier run; only before anything was published."""
        self._copy.reset()
        self._committed = CommittedImage()
        self.machine = FollowerMachine(self.properties.cluster_id)

    def close(self) -> None:
        """Close the file and release the lock."""
        self._copy.close()
        self._lock.release()
