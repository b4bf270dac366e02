"""Rules for new segments, snapshots and retention of the log (Kafka's own settings), as pure functions.

The log may begin where its oldest kept snapshot ends. So while the limits of retention are exceeded and
another snapshot remains, the oldest snapshot is deleted, and with it the segments entirely below the next
one: the newest snapshot and the log after it are the state itself (`KafkaMetadataLog.maybeClean`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kustos.metadata.log.layout import SnapshotId

MAX_BATCH_SIZE_BYTES: Final = 8 * 1024 * 1024
"""`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`: no controller writes, and no follower fetches, a larger batch."""

UNSYNCED_MAX_BYTES: Final = 2 * MAX_BATCH_SIZE_BYTES
"""No write between two fsyncs is larger: a failed fsync may have lost up to this many bytes at the end."""

RECORD_OVERHEAD_MAX_BYTES: Final = 32
"""Most bytes that a batch adds to a record's value: attributes, two deltas and three sizes."""

MIN_SEGMENT_SIZE_BYTES: Final = MAX_BATCH_SIZE_BYTES
"""Kafka's minimum of `metadata.log.segment.bytes`: the largest batch fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPolicy:
    """The limits of a metadata log; the defaults are Kafka's (`MetadataLogConfig`).

    A segment is closed before it would exceed `segment_bytes`, or when the next batch is `segment_ms` newer
    than its first one. A snapshot is due after `snapshot_record_bytes` of records, or `snapshot_interval_ms`
    after the last one (0: never by time). Older snapshots and their segments are deleted when all files
    together exceed `retention_bytes`, or when they are older than `retention_ms`; a negative value disables a
    limit. The newest snapshot and everything after it always stay.
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 60 * 60 * 1000
    snapshot_record_bytes: int = 20 * 1024 * 1024
    snapshot_interval_ms: int = 60 * 60 * 1000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 60 * 60 * 1000


DEFAULT_POLICY: Final = LogPolicy()


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot on disk: its size, and the time of the last record that it contains."""

    id: SnapshotId
    size_bytes: int
    last_contained_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Superfluous:
    """The files to delete, oldest first: snapshots, then segments by base offset."""

    snapshots: tuple[SnapshotId, ...] = ()
    segments: tuple[int, ...] = ()


def superfluous(
    snapshots: Sequence[KeptSnapshot], segment_sizes: Mapping[int, int], policy: LogPolicy, now_ms: int
) -> Superfluous:
    """Return the files to delete of these snapshots (oldest first) and segments (base offset → size)."""
    kept, segments = list(snapshots), sorted(segment_sizes)
    total = sum(each.size_bytes for each in kept) + sum(segment_sizes.values())
    gone_snapshots: list[SnapshotId] = []
    gone_segments: list[int] = []
    while len(kept) > 1:
        oldest = kept[0]
        too_old = 0 <= policy.retention_ms < now_ms - oldest.last_contained_timestamp_ms
        too_much = 0 <= policy.retention_bytes < total
        if not (too_old or too_much):
            break
        kept.pop(0)
        gone_snapshots.append(oldest.id)
        total -= oldest.size_bytes
        while len(segments) > 1 and segments[1] <= kept[0].id.end_offset:
            base_offset = segments.pop(0)
            gone_segments.append(base_offset)
            total -= segment_sizes[base_offset]
    return Superfluous(tuple(gone_snapshots), tuple(gone_segments))
