"""The follower machine: the requests of an observer of Kafka's metadata quorum, and their effects.

Nothing here waits or touches a socket. Send `question`, pass the answer to `receive` (or call `lost`),
perform the effects in order, and repeat. The rules:

1. The epoch of the leader comes only from answers, never from a disk. A node that knows a higher one
   refuses our Fetch and names the leader; a Fetch with epoch 0 finds the first one.
2. Fetched batches are appended as they come and applied once they lie below the high watermark that a
   leader reported; the high watermark never falls.
3. A diverging epoch cuts the log back to where both agree. Applied records are never cut: if a quorum
   requires that, following ends.
4. If the log begins too late for us, the leader names a snapshot; it is fetched whole, in chunks, and
   replaces everything.
5. Any other failure leads back to seeking a leader and counts as a setback; the driver waits longer after
   several in a row.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum, unique
from typing import Final

from kustos.metadata.log import SnapshotId
from kustos.metadata.quorum.answers import (
    ControllerAnswer,
    Event,
    fetch_request,
    fetch_snapshot_request,
    read_fetch,
    read_fetch_snapshot,
)
from kustos.metadata.quorum.values import (
    UNKNOWN,
    Address,
    Appended,
    CaughtUp,
    Committed,
    CommittedLostError,
    Effect,
    FetchedBatch,
    ForeignAnswerError,
    QuorumRequest,
    SnapshotFetched,
    Truncated,
    WrongClusterError,
)
from kustos.wire import ApiKey, Message, request_codec


@unique
class FollowerPhase(Enum):
    """The current activity of the follower."""

    SEEKING = "seeking a leader"
    FOLLOWING = "following"
    COPYING = "copying a snapshot"
    ENDED = "ended"


NEXT: Final[Mapping[tuple[FollowerPhase, Event], tuple[FollowerPhase, str]]] = {
    (FollowerPhase.SEEKING, Event.RECORDS): (FollowerPhase.FOLLOWING, "_take"),
    (FollowerPhase.SEEKING, Event.DIVERGED): (FollowerPhase.FOLLOWING, "_cut_back"),
    (FollowerPhase.SEEKING, Event.SNAPSHOT): (FollowerPhase.COPYING, "_begin_copy"),
    (FollowerPhase.SEEKING, Event.LEADER): (FollowerPhase.FOLLOWING, "_turn_to_leader"),
    (FollowerPhase.SEEKING, Event.NO_LEADER): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.SEEKING, Event.AGAIN): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.SEEKING, Event.REFUSED): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.SEEKING, Event.FOREIGN): (FollowerPhase.ENDED, "_refuse_cluster"),
    (FollowerPhase.SEEKING, Event.LOST): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.RECORDS): (FollowerPhase.FOLLOWING, "_take"),
    (FollowerPhase.FOLLOWING, Event.DIVERGED): (FollowerPhase.FOLLOWING, "_cut_back"),
    (FollowerPhase.FOLLOWING, Event.SNAPSHOT): (FollowerPhase.COPYING, "_begin_copy"),
    (FollowerPhase.FOLLOWING, Event.LEADER): (FollowerPhase.FOLLOWING, "_turn_to_leader"),
    (FollowerPhase.FOLLOWING, Event.NO_LEADER): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.AGAIN): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.REFUSED): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.FOREIGN): (FollowerPhase.ENDED, "_refuse_cluster"),
    (FollowerPhase.FOLLOWING, Event.LOST): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.COPYING, Event.CHUNK): (FollowerPhase.COPYING, "_take_chunk"),
    (FollowerPhase.COPYING, Event.WHOLE): (FollowerPhase.FOLLOWING, "_install"),
    (FollowerPhase.COPYING, Event.LEADER): (FollowerPhase.FOLLOWING, "_turn_to_leader"),
    (FollowerPhase.COPYING, Event.NO_LEADER): (FollowerPhase.SEEKING, "_let_go"),
    # a newer snapshot may have replaced it: the next Fetch will name that
    (FollowerPhase.COPYING, Event.AGAIN): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.COPYING, Event.REFUSED): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.COPYING, Event.FOREIGN): (FollowerPhase.ENDED, "_refuse_cluster"),
    (FollowerPhase.COPYING, Event.LOST): (FollowerPhase.SEEKING, "_let_go"),
}
"""The next phase and the action for each phase and event. A pair without a row is a foreign answer."""

SETBACKS: Final = frozenset({Event.LEADER, Event.NO_LEADER, Event.AGAIN, Event.REFUSED, Event.LOST})
"""Events without progress: after several in a row the driver waits."""

MAX_WAIT_MS: Final = 500
"""The time that a leader may delay a Fetch without new records (`KafkaRaftClient.MAX_FETCH_WAIT_MS`)."""

UNCOMMITTED_MAX_BYTES: Final = 64 * 1024 * 1024
"""A leader that cannot commit resigns long before it has written this much."""


class FollowerMachine:
    """Follows the log from `base` on (None: from its beginning), given the batches already stored.

    `cluster_id`: ours, which every controller compares with its own; None: any. Batches of an earlier run
    count as uncommitted until a leader confirms them.
    """

    def __init__(
        self, cluster_id: str | None, base: SnapshotId | None = None, kept: tuple[FetchedBatch, ...] = ()
    ) -> None:
        self.cluster_id: Final = cluster_id
        self.phase = FollowerPhase.SEEKING
        self.leader: Address | None = None
        self.epoch = 0
        self.high_watermark = UNKNOWN
        self.setbacks = 0
        self.last_error = 0
        self._forget(base or SnapshotId(0, 0))
        for each in kept:
            self._append(each)
        # as Kafka's `QuorumState.initialize`: a leader of an epoch older than our log has no news for us
        self.epoch = self.last_epoch

    def _forget(self, base: SnapshotId) -> None:
        self.base = base
        self.end_offset = self.applied_end = base.end_offset
        self.applied_epoch = base.epoch
        # epochs and their first offsets here, as in Kafka's leader-epoch-checkpoint
        self._epochs: list[int] = [base.epoch]
        self._epoch_starts: list[int] = [base.end_offset]
        self._pending: deque[FetchedBatch] = deque()
        self._pending_bytes = 0
        self._copying: SnapshotId | None = None
        self._copied = bytearray()
        self._copy_size_bytes = 0

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, or of the snapshot that replaced it."""
        return self._epochs[-1]

    def question(self, fetch_version: int, max_wait_ms: int = MAX_WAIT_MS) -> QuorumRequest:
        """Return the next request; `fetch_version` is a version that the controller supports."""
        if self._copying is not None:
            from_position = len(self._copied)
            codec = request_codec(ApiKey.FETCH_SNAPSHOT, 1)
            message = fetch_snapshot_request(codec, self.cluster_id, self.epoch, self._copying, from_position)
            return QuorumRequest(ApiKey.FETCH_SNAPSHOT, self.leader, message)
        message = fetch_request(
            request_codec(ApiKey.FETCH, fetch_version),
            self.cluster_id,
            self.epoch,
            self.end_offset,
            self.last_epoch,
            self.high_watermark,
            max_wait_ms,
        )
        return QuorumRequest(ApiKey.FETCH, self.leader, message)

    def watermark_question(self, fetch_version: int) -> Message:
        """Return a Fetch that the leader answers at once, with its current high watermark."""
        codec = request_codec(ApiKey.FETCH, fetch_version)
        return fetch_request(
            codec, self.cluster_id, self.epoch, self.end_offset, self.last_epoch, UNKNOWN, max_wait_ms=0
        )

    @property
    def asks_for_snapshot(self) -> bool:
        """Whether the next request is a FetchSnapshot."""
        return self._copying is not None

    def receive(self, answer: Message, answerer: Address) -> tuple[Effect, ...]:
        """Return the effects of the answer to the last request, sent by this controller.

        Raise `ForeignAnswerError` (call `lost` and use another connection), `WrongClusterError` or
        `CommittedLostError` (following has ended).
        """
        read = read_fetch if self._copying is None else read_fetch_snapshot
        return self._step(read(answer), answerer)

    def lost(self) -> None:
        """Note that the last request will not be answered."""
        self._step(ControllerAnswer(Event.LOST), None)

    def _step(self, answer: ControllerAnswer, answerer: Address | None) -> tuple[Effect, ...]:
        event = answer.event
        if event is Event.LEADER and answer.epoch < self.epoch:
            # the leader that it names has a successor already
            event = Event.NO_LEADER
        row = NEXT.get((self.phase, event))
        if row is None:
            raise ForeignAnswerError(f"`{event.value}` came while {self.phase.value}")
        phase, action = row
        do: Callable[[ControllerAnswer], tuple[Effect, ...]] = getattr(self, action)
        self.last_error = answer.error
        try:
            effects = do(answer)
        except (WrongClusterError, CommittedLostError):
            self.phase = FollowerPhase.ENDED
            raise
        self.phase = phase
        if event in SETBACKS:
            self.setbacks += 1
        else:
            self.setbacks = 0
            self.leader = answerer
        return effects

    def _turn_to_leader(self, answer: ControllerAnswer) -> tuple[Effect, ...]:
        self._let_go(answer)
        self.leader = answer.leader
        return ()

    def _let_go(self, answer: ControllerAnswer) -> tuple[Effect, ...]:
        self._drop_copy()
        self.epoch = max(self.epoch, answer.epoch)
        self.leader = None
        return ()

    def _refuse_cluster(self, _answer: ControllerAnswer) -> tuple[Effect, ...]:
        raise WrongClusterError(
            f"the controllers belong to another cluster than `{self.cluster_id}`; correct "
            "`controller.quorum.bootstrap.servers`, or format `metadata.log.dir` with the cluster's own id"
        )

    def _take(self, answer: ControllerAnswer) -> tuple[Effect, ...]:
        """Append the new batches, then apply what is committed by now."""
        new = self._following(answer.batches)
        effects: list[Effect] = []
        if new:
            for each in new:
                self._append(each)
            effects.append(Appended(new))
        if answer.high_watermark != UNKNOWN:
            reached = min(answer.high_watermark, self.end_offset)
            self.high_watermark = max(self.high_watermark, reached)
            effects += self._commit()
            if self.applied_end >= answer.high_watermark:
                effects.append(CaughtUp(answer.high_watermark))
        if self._pending_bytes > UNCOMMITTED_MAX_BYTES:
            effects.append(self._truncate(self.applied_end))
        return tuple(effects)

    def _following(self, batches: tuple[FetchedBatch, ...]) -> tuple[FetchedBatch, ...]:
        """Return the batches that are new; raise `ForeignAnswerError` unless they continue the log."""
        new = tuple(each for each in batches if each.batch.last_offset >= self.end_offset)
        expected, epoch = self.end_offset, self.last_epoch
        for index, each in enumerate(new):
            batch = each.batch
            # a leader sends whole batches, and the first may begin before the requested offset
            if batch.base_offset != expected and not (index == 0 and batch.base_offset < expected):
                raise ForeignAnswerError(f"a batch begins at {batch.base_offset} where {expected} was due")
            if [record.offset_delta for record in batch.records] != list(range(batch.last_offset_delta + 1)):
                raise ForeignAnswerError(f"the records of the batch at {batch.base_offset} have gaps")
            if not epoch <= batch.partition_leader_epoch <= self.epoch:
                raise ForeignAnswerError(
                    f"the batch at {batch.base_offset} is of epoch {batch.partition_leader_epoch}, "
                    f"after {epoch} and under {self.epoch}"
                )
            expected, epoch = batch.last_offset + 1, batch.partition_leader_epoch
        return new

    def _append(self, each: FetchedBatch) -> None:
        batch = each.batch
        if batch.partition_leader_epoch != self.last_epoch:
            self._epochs.append(batch.partition_leader_epoch)
            self._epoch_starts.append(max(batch.base_offset, self.end_offset))
        self.end_offset = batch.last_offset + 1
        self._pending.append(each)
        self._pending_bytes += len(each.data)

    def _commit(self) -> list[Effect]:
        committed = []
        while self._pending and self._pending[0].batch.last_offset < self.high_watermark:
            each = self._pending.popleft()
            self._pending_bytes -= len(each.data)
            committed.append(each)
        if not committed:
            return []
        from_offset, last = self.applied_end, committed[-1].batch
        self.applied_end, self.applied_epoch = last.last_offset + 1, last.partition_leader_epoch
        return [Committed(tuple(committed), from_offset, self.applied_end, self.applied_epoch)]

    def _cut_back(self, answer: ControllerAnswer) -> tuple[Effect, ...]:
        """Cut the log to where it agrees with the leader's (`KafkaRaftLog.truncateToEndOffset`)."""
        assert answer.diverging is not None, "a diverging answer names an offset"
        known = bisect_right(self._epochs, answer.diverging.epoch)
        own_end = self._epoch_starts[known] if known < len(self._epochs) else self.end_offset
        # our log has nothing from that epoch or an older one: the logs share nothing
        agreed = min(answer.diverging.end_offset, own_end) if known else 0
        if agreed >= self.end_offset:
            raise ForeignAnswerError(f"the logs diverge at {agreed}, where ours ends")
        if agreed < self.applied_end:
            raise CommittedLostError(
                f"the controllers have nothing of the metadata log from offset {agreed} on, but it was "
                f"committed up to {self.applied_end}; if they lost their disks and that is known, restart "
                "this node"
            )
        return (self._truncate(agreed),)

    def _truncate(self, end_offset: int) -> Truncated:
        """Drop whole batches from the end until none extends beyond this offset."""
        while self._pending and self._pending[-1].batch.last_offset >= end_offset:
            each = self._pending.pop()
            self._pending_bytes -= len(each.data)
            self.end_offset = max(each.batch.base_offset, self.applied_end)
        while len(self._epochs) > 1 and self._epoch_starts[-1] >= self.end_offset:
            self._epochs.pop()
            self._epoch_starts.pop()
        return Truncated(self.end_offset)

    def _begin_copy(self, answer: ControllerAnswer) -> tuple[Effect, ...]:
        named = answer.snapshot_id
        assert named is not None, "an answer that names a snapshot has its name"
        if named.end_offset < self.applied_end:
            raise CommittedLostError(
                f"the controllers offer a snapshot that ends at offset {named.end_offset}, but the metadata "
                f"log was committed up to {self.applied_end}; if they lost their disks and that is known, "
                "restart this node"
            )
        self._drop_copy()
        self._copying = named
        return ()

    def _take_chunk(self, answer: ControllerAnswer) -> tuple[Effect, ...]:
        if answer.snapshot_id != self._copying or answer.position != len(self._copied):
            raise ForeignAnswerError(
                f"a chunk of {answer.snapshot_id} at {answer.position} came where {self._copying} at "
                f"{len(self._copied)} was requested"
            )
        if self._copied and answer.size_bytes != self._copy_size_bytes:
            raise ForeignAnswerError("a snapshot changed its size while it was fetched")
        self._copy_size_bytes = answer.size_bytes
        self._copied += answer.chunk
        return ()

    def _install(self, answer: ControllerAnswer) -> tuple[Effect, ...]:
        self._take_chunk(answer)
        data, snapshot_id = bytes(self._copied), self._copying
        assert snapshot_id is not None, "what is copied has a name"
        self._forget(snapshot_id)
        self.high_watermark = max(self.high_watermark, snapshot_id.end_offset)
        return (SnapshotFetched(snapshot_id, data),)

    def _drop_copy(self) -> None:
        self._copying = None
        self._copied = bytearray()
