"""A small model of Kafka's quorum, to be followed: three nodes that append, copy, commit, elect and trim.

It answers Fetch and FetchSnapshot as Kafka's controllers do (KIP-595, KIP-630, KIP-853), by rules that are
written down apart from the follower's. `truth` is what was committed, in order, and never changes but at
its end.
"""

from dataclasses import dataclass, field
from typing import Any

from kustos.metadata.log import SnapshotId
from kustos.metadata.quorum import Address
from kustos.metadata.records import LeaderChange, NoOpRecord, control_batch, encode_record
from kustos.wire import ErrorCode, Message, response_codec
from kustos.wire.api_keys import ApiKey
from kustos.wire.record_batch import RecordBatch, batch_of

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
CHUNK_BYTES = 100
NODES = 3
MAJORITY = 2


def address_of(number: int) -> Address:
    return Address("127.0.0.1", 9000 + number)


@dataclass
class Node:
    """One controller: its log, and what it knows of who leads."""

    number: int
    log: list[RecordBatch] = field(default_factory=list)
    epoch: int = 0
    leader: int | None = None
    high_watermark: int = -1
    snapshot: tuple[SnapshotId, bytes] | None = None
    log_start: int = 0

    @property
    def end(self) -> int:
        return self.log[-1].last_offset + 1 if self.log else 0

    @property
    def last_epoch(self) -> int:
        return self.log[-1].partition_leader_epoch if self.log else 0

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the newest epoch here that is not above this one, and where it ends."""
        known = [batch for batch in self.log if batch.partition_leader_epoch <= epoch]
        return (known[-1].partition_leader_epoch, known[-1].last_offset + 1) if known else (0, 0)

    def fetch(self, request: Message) -> Message:
        codec = response_codec(ApiKey.FETCH, 18)
        if request.cluster_id not in {None, CLUSTER_ID}:
            return codec.new(error_code=ErrorCode.inconsistent_cluster_id.value)
        asked = request.topics[0].partitions[0]
        fields, endpoints = self._fetched(asked, codec)
        return _wrapped(codec, fields, endpoints, topic_id=request.topics[0].topic_id)

    def _fetched(self, asked: Message, codec: Any) -> tuple[dict[str, Any], list[Message]]:
        error, endpoints = self._refusal(asked.current_leader_epoch), self._endpoints(codec)
        if error:
            return self._told(codec) | {"error_code": error}, endpoints
        told = self._told(codec) | {"high_watermark": self.high_watermark}
        offset, last_epoch = asked.fetch_offset, asked.last_fetched_epoch
        if self.snapshot is not None and (offset < self.log_start or offset == 0):
            of_snapshot = codec.struct("SnapshotId")
            snapshot_id = self.snapshot[0]
            named = of_snapshot(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
            return told | {"snapshot_id": named}, []
        epoch, end = self.end_of_epoch(last_epoch)
        if epoch != last_epoch or end < offset:
            diverging = codec.struct("EpochEndOffset")(epoch=epoch, end_offset=end)
            return told | {"diverging_epoch": diverging}, []
        records = b"".join(batch.encode() for batch in self.log if batch.last_offset >= offset)
        return told | {"records": records}, []

    def fetch_snapshot(self, request: Message) -> Message:
        codec = response_codec(ApiKey.FETCH_SNAPSHOT, 1)
        asked = request.topics[0].partitions[0]
        error = self._refusal(asked.current_leader_epoch)
        wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        if not error and (self.snapshot is None or self.snapshot[0] != wanted):
            error = ErrorCode.snapshot_not_found.value
        if error or self.snapshot is None:
            fields = self._told(codec) | {"error_code": error, "unaligned_records": b""}
            return _wrapped(codec, fields, self._endpoints(codec), name="__cluster_metadata")
        data = self.snapshot[1]
        fields = self._told(codec) | {
            "snapshot_id": codec.struct("SnapshotId")(end_offset=wanted.end_offset, epoch=wanted.epoch),
            "size": len(data),
            "position": asked.position,
            "unaligned_records": data[asked.position : asked.position + CHUNK_BYTES],
        }
        return _wrapped(codec, fields, [], name="__cluster_metadata")

    def _refusal(self, epoch: int) -> int:
        if epoch < self.epoch:
            return ErrorCode.fenced_leader_epoch.value
        if epoch > self.epoch:
            return ErrorCode.unknown_leader_epoch.value
        return 0 if self.leader == self.number else ErrorCode.not_leader_or_follower.value

    def _told(self, codec: Any) -> dict[str, Any]:
        leader = -1 if self.leader is None else self.leader
        of_leader = codec.struct("LeaderIdAndEpoch")
        return {"current_leader": of_leader(leader_id=leader, leader_epoch=self.epoch)}

    def _endpoints(self, codec: Any) -> list[Message]:
        if self.leader is None:
            return []
        address = address_of(self.leader)
        endpoint = codec.struct("NodeEndpoint")
        return [endpoint.fit(node_id=self.leader, host=address.host, port=address.port)]


def _wrapped(codec: Any, fields: dict[str, Any], endpoints: list[Message], **topic: Any) -> Message:
    names = {"topic_id": ("FetchableTopicResponse", "responses"), "name": ("TopicSnapshot", "topics")}
    struct, field_name = names[next(iter(topic))]
    of_topic = codec.struct(struct)
    partition = of_topic.ELEMENTS["partitions"](**fields)
    wrapped = of_topic(partitions=[partition], **topic)
    # through the bytes, as it would come
    message = codec.new(**{field_name: [wrapped]}, node_endpoints=endpoints)
    decoded: Message = codec.decode(codec.encode(message)).message
    return decoded


class Cluster:
    """The nodes, and what was committed by a majority of them."""

    def __init__(self) -> None:
        self.nodes = [Node(number) for number in range(NODES)]
        self.truth: list[RecordBatch] = []
        self.elect(0)

    def elect(self, number: int) -> bool:
        """Make a node the leader of a new epoch if a majority votes for it; who does not, knows nothing."""
        candidate = self.nodes[number]
        mine = (candidate.last_epoch, candidate.end)
        voters = [node for node in self.nodes if node is candidate or (node.last_epoch, node.end) <= mine]
        if len(voters) < MAJORITY:
            return False
        epoch = max(node.epoch for node in self.nodes) + 1
        others = [node for node in voters if node is not candidate][: MAJORITY - 1]
        for node in (candidate, *others):
            node.epoch, node.leader, node.high_watermark = epoch, number, -1
        change = LeaderChange(number, tuple(range(NODES)), (number,))
        candidate.log.append(control_batch(candidate.end, epoch, 0, (change,)))
        return True

    def leaders(self) -> list[Node]:
        """Return every node that thinks that it leads; one of them does."""
        return [node for node in self.nodes if node.leader == node.number]

    def append(self, leader: Node, records: int) -> None:
        values = [encode_record(NoOpRecord()) for _ in range(records)]
        # a stamp of its own for each batch: two that differ must not look alike
        stamp = leader.end * 1000 + leader.epoch
        leader.log.append(batch_of(leader.end, leader.epoch, stamp, values))

    def copy(self, follower: Node) -> None:
        """Let a node take over the log of the newest leader, and the leader commit what a majority has."""
        leader = max(self.leaders(), key=lambda node: node.epoch)
        if follower is leader:
            return
        follower.epoch, follower.leader = leader.epoch, leader.number
        follower.high_watermark = -1
        follower.log = list(leader.log)
        follower.snapshot, follower.log_start = leader.snapshot, leader.log_start
        ends = [batch.last_offset + 1 for batch in leader.log if batch.partition_leader_epoch == leader.epoch]
        if ends and leader.end > leader.high_watermark:
            leader.high_watermark = leader.end
            committed = leader.log
            assert [b.encode() for b in committed[: len(self.truth)]] == [b.encode() for b in self.truth]
            self.truth = list(committed)

    def trim(self, leader: Node) -> None:
        """Let a leader write a snapshot of all that is committed, and forget the log before it."""
        if leader.high_watermark <= 0:
            return
        contained = [batch for batch in leader.log if batch.last_offset < leader.high_watermark]
        snapshot_id = SnapshotId(leader.high_watermark, contained[-1].partition_leader_epoch)
        leader.snapshot = (snapshot_id, b"".join(batch.encode() for batch in contained))
        leader.log_start = leader.high_watermark
