"""The metadata store: one writer that validates, appends, fsyncs, applies, publishes, answers, in this order.

Nothing here waits except for the disk, and nothing runs in the background: one thread makes all calls. A
returned result is durable and every publisher has applied it. `image` may be read from any thread: it is
frozen and swapped whole.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import structlog

from kustos.acl import AclBinding, AclBindingFilter
from kustos.metadata import control
from kustos.metadata.control import (
    AclCreated,
    AclsDeleted,
    ConfigAlteration,
    ControlResult,
    Copy,
    CopyResult,
    FeatureUpdates,
    ScramAlterResult,
    ScramDeletion,
    ScramUpsertion,
    TokenCreation,
    TokenExpiry,
    TokenRenewal,
    TokenRules,
)
from kustos.metadata.control.token_secrets import TokenIndex
from kustos.metadata.directory.loader import load, require_beginning, require_known_features
from kustos.metadata.errors import BatchTooLargeError, DirectoryError, MetadataError
from kustos.metadata.image import ImageBuilder, MetadataDelta, MetadataImage, MetadataPublisher
from kustos.metadata.log import (
    DEFAULT_POLICY,
    LOCK_FILE,
    META_PROPERTIES,
    LogPolicy,
    LogReader,
    LogWriter,
    MetaProperties,
)
from kustos.metadata.log.layout import no_metadata
from kustos.metadata.log.writer import encode_values
from kustos.metadata.records import AbortTransactionRecord
from kustos.metadata.store.requests import (
    AlterScram,
    CopySecrets,
    CreateAcls,
    DeleteAcls,
    StoreRequest,
    SweepTokens,
    refused,
    written,
)
from kustos.metadata.store.snapshots import SnapshotJob, SnapshotKeeper
from kustos.runtime import (
    Clock,
    Entropy,
    FileSystemStorage,
    Storage,
    StorageLock,
    SystemClock,
    SystemEntropy,
    words_of,
)

__all__ = [
    "AlterScram",
    "CopySecrets",
    "CreateAcls",
    "DeleteAcls",
    "MetadataStore",
    "PublishFailedError",
    "StoreRequest",
    "SweepTokens",
]

_log = structlog.get_logger("kustos.metadata")


class PublishFailedError(MetadataError):
    """A publisher failed: its state may differ from the log, so the store accepts no more changes."""


class MetadataStore:
    """The image of one metadata directory, and the only way to change it. Build it with `open`."""

    def __init__(
        self,
        properties: MetaProperties,
        image: MetadataImage,
        log: LogWriter,
        keeper: SnapshotKeeper,
        lock: StorageLock,
        clock: Clock,
        entropy: Entropy,
        token_rules: TokenRules,
    ) -> None:
        self.properties = properties
        self.token_rules = token_rules
        self._image = image
        self._writer = log
        self._keeper = keeper
        self._lock = lock
        self._clock = clock
        self._entropy = entropy
        self._tokens = TokenIndex(token_rules.secret, entropy)
        self._tokens.load(image)
        self._publishers: list[MetadataPublisher] = []
        self._publish_failure: PublishFailedError | None = None

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        storage: Storage | None = None,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        token_rules: TokenRules | None = None,
        policy: LogPolicy = DEFAULT_POLICY,
        node_id: int | None = None,
        cluster_id: str | None = None,
    ) -> Self:
        """Return the store of a formatted directory, recovered and locked.

        Raises `DirectoryError` if it is not formatted, belongs to a node or cluster other than the given one,
        or needs a newer kustos; `StorageLockedError` if another writer has it; `LogDamagedError` (file,
        offset, remedy) for damage other than a torn tail; `LogFailedError` if the first write fails, another
        OSError if it cannot be read.
        """
        storage, clock, entropy = (
            storage or FileSystemStorage(),
            clock or SystemClock(),
            entropy or SystemEntropy(),
        )
        properties_path = directory / META_PROPERTIES
        if not storage.exists(properties_path):
            remedy = "run `kustos storage format` on it, or correct `metadata.log.dir`"
            raise no_metadata(directory, storage, f"`{directory}` is not formatted", remedy)
        properties = MetaProperties.decode(storage.read(properties_path), properties_path)
        _require_ours(directory, properties, node_id, cluster_id)
        lock = storage.lock(directory / LOCK_FILE)
        try:
            reader, builder = load(directory, storage)
            require_beginning(builder.view(), directory)
            require_known_features(builder.view(), directory)
            log = LogWriter(directory, storage, clock, reader, policy)
            try:
                log.begin_epoch(properties.node_id)
                image = _complete_recovery(reader, builder, log)
                keeper = SnapshotKeeper(directory, storage, clock, policy, reader)
            except BaseException:
                log.close()
                raise
        except BaseException:
            lock.release()
            raise
        _log.info("opened the metadata log", path=str(directory), offset=log.last_offset, epoch=log.epoch)
        return cls(properties, image, log, keeper, lock, clock, entropy, token_rules or TokenRules())

    @property
    def image(self) -> MetadataImage:
        """The state after the last acknowledged change."""
        return self._image

    @property
    def last_offset(self) -> int:
        """The offset of the last durable record."""
        return self._image.offset

    @property
    def takes_changes(self) -> bool:
        """Whether changes may still be made: false for good after a write or a publisher failed.

        The current state stays in force. From any thread.
        """
        return self._publish_failure is None and not self._writer.has_failed

    def add_publisher(self, publisher: MetadataPublisher) -> None:
        """Pass the current image to the publisher now, and every later delta."""
        publisher.publish_snapshot(self._image)
        self._publishers.append(publisher)

    def create_acls(self, bindings: Sequence[AclBinding]) -> list[AclCreated]:
        """Create ACLs; return one result per binding, in order."""
        return self._one(CreateAcls(tuple(bindings)))

    def delete_acls(self, filters: Sequence[AclBindingFilter]) -> list[AclsDeleted]:
        """Delete ACLs; return one result per filter, in order."""
        return self._one(DeleteAcls(tuple(filters)))

    def alter_scram(
        self, deletions: Sequence[ScramDeletion] = (), upsertions: Sequence[ScramUpsertion] = ()
    ) -> list[ScramAlterResult]:
        """Delete and set SCRAM credentials; return one result per user."""
        return self._one(AlterScram(tuple(deletions), tuple(upsertions)))

    def copy_secrets(self, copies: Sequence[Copy]) -> list[CopyResult]:
        """Store credentials and tokens copied from another cluster; return one result per copy, in order."""
        return self._one(CopySecrets(tuple(copies)))

    def _one(self, request: StoreRequest) -> list[Any]:
        return list(self.append_many((request,))[0])

    def append_many(self, requests: Sequence[StoreRequest]) -> list[tuple[Any, ...]]:
        """Execute requests in order with one write and one fsync; return the results of each.

        Each request sees the effects of those before it, and its records are one atomic batch. Raises
        `LogFullError` if the disk is full: then none of them was carried out. Raises `LogFailedError` if
        durability is uncertain: then none of them is acknowledged, nor anything later, until the store is
        reopened.
        """
        if self._publish_failure is not None:
            raise self._publish_failure
        # requests without records fail then, too
        self._writer.require_working()
        builder = ImageBuilder(self._image)
        answers: list[tuple[Any, ...]] = []
        batches, deltas, changed = [], [], []
        for request in requests:
            outcome = self._decide(builder.view(), request)
            try:
                values = encode_values(outcome.records)
            except BatchTooLargeError as error:
                _log.warning("refused a request that no batch of the log can hold", reason=str(error))
                answers.append(refused(outcome.results, error))
                continue
            answers.append(outcome.results)
            if values:
                changed.append(len(answers) - 1)
                changes = builder.replay_all(outcome.records)
                # later requests in this call must find its token
                self._tokens.apply(changes)
                deltas.append(changes)
                batches.append(values)
        if batches:
            written_before = self._writer.written_bytes
            try:
                appended = self._writer.append_values(batches)
            except BaseException:
                # undo the effects of unwritten changes
                self._tokens.load(self._image)
                raise
            self._keeper.appended(self._writer.written_bytes - written_before)
            for number, values, (last_offset, _) in zip(changed, batches, appended, strict=True):
                answers[number] = written(answers[number], last_offset - len(values) + 1)
            epoch = self._writer.epoch
            self._image = builder.build(appended[-1][0], epoch)
            self._publish(
                [
                    MetadataDelta(offset, epoch, changes, (data,))
                    for (offset, data), changes in zip(appended, deltas, strict=True)
                ]
            )
        return answers

    @property
    def snapshot_is_due(self) -> bool:
        """Whether `begin_snapshot` would return one; from any thread."""
        return self._keeper.is_due

    def begin_snapshot(self) -> SnapshotJob | None:
        """Return the snapshot to take now, if one is due; its `write` may run on any thread.

        `end_snapshot` must follow, with the exception of `write`, if any. Only one may be active at a time.
        """
        return self._keeper.begin(self._image, self._writer)

    def end_snapshot(self, job: SnapshotJob, failure: BaseException | None = None) -> None:
        """Note the outcome of a snapshot, and delete what it replaces."""
        self._keeper.end(job, failure)
        self.clean()

    def clean(self) -> None:
        """Delete old snapshots and segments according to the policy; log a failure."""
        try:
            self._keeper.clean()
        except OSError as error:
            _log.error("old files of the metadata log could not be deleted", reason=words_of(error))

    def close(self) -> None:
        """Close the files and release the lock."""
        self._writer.close()
        self._lock.release()

    def _decide(self, image: MetadataImage, request: StoreRequest) -> ControlResult[Any]:
        decided: ControlResult[Any]
        match request:
            case CreateAcls(bindings):
                decided = control.create_acls(image, bindings, self._entropy)
            case DeleteAcls(filters):
                decided = control.delete_acls(image, filters)
            case AlterScram(deletions, upsertions):
                decided = control.alter_scram(image, deletions, upsertions)
            case CopySecrets(copies):
                decided = control.copy_secrets(image, copies)
            case SweepTokens():
                decided = control.sweep_tokens(image, self._clock.wall_ms())
            case ConfigAlteration():
                decided = control.alter_configs(request)
            case FeatureUpdates():
                decided = control.update_features(image, request)
            case _:
                decided = self._decide_token(image, request)
        return decided

    def _decide_token(
        self, image: MetadataImage, request: TokenCreation | TokenRenewal | TokenExpiry
    ) -> ControlResult[Any]:
        rules, find, now_ms = self.token_rules, self._tokens.find, self._clock.wall_ms()
        match request:
            case TokenCreation():
                return control.create_token(image, request, rules, now_ms, self._entropy)
            case TokenRenewal():
                return control.renew_token(image, request, rules, find, now_ms)
            case TokenExpiry():
                return control.expire_token(image, request, rules, find, now_ms)

    def _publish(self, deltas: list[MetadataDelta]) -> None:
        for delta in deltas:
            for publisher in self._publishers:
                try:
                    publisher.publish_delta(delta)
                # after any error the state of the publisher is unknown: acknowledge no change
                except Exception as error:
                    self._publish_failure = PublishFailedError(
                        f"`{type(publisher).__name__}` failed at offset {delta.last_offset}; the change is "
                        "in the log but not in force everywhere, restart this node"
                    )
                    raise self._publish_failure from error


def _require_ours(
    directory: Path, properties: MetaProperties, node_id: int | None, cluster_id: str | None
) -> None:
    if node_id is not None and properties.node_id != node_id:
        raise DirectoryError(
            f"`{directory}` belongs to node {properties.node_id}, but `node.id` is {node_id}; name the "
            "node's own directory in `metadata.log.dir`"
        )
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise DirectoryError(
            f"`{directory}` belongs to cluster `{properties.cluster_id}`, not to `{cluster_id}`; name a "
            "directory of this cluster"
        )


def _complete_recovery(reader: LogReader, builder: ImageBuilder, log: LogWriter) -> MetadataImage:
    """Finish the open work of an earlier writer, and return the initial image."""
    if builder.in_transaction:
        # the writer that began it is gone and cannot end it (KIP-868)
        abort = AbortTransactionRecord("the writer restarted")
        builder.replay(abort)
        log.append([[abort]])
    if reader.bootstrapped:
        log.append([list(builder.view().records())])
    return builder.build(log.last_offset, log.epoch)
