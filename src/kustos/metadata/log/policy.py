"""Rules for new segments, snapshots and retention of the log, with Kafka's own settings, as pure functions.

The log may begin where its oldest kept snapshot ends. So while the limits of retention are exceeded and
another snapshot remains, the oldest snapshot is deleted, and with it the segments entirely below the next
one: the newest snapshot and the log after it are the state itself (`KafkaMetadataLog.maybeClean`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kustos.metadata.log.layout import SnapshotId
from kustos.settings import INT32_MAX, INT64_MAX, Setting, whole_number

MAX_BATCH_SIZE_BYTES: Final = 8 * 1024 * 1024
"""`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`: no controller writes, and no follower fetches, a larger batch."""

UNSYNCED_MAX_BYTES: Final = 2 * MAX_BATCH_SIZE_BYTES
"""No write between two fsyncs is larger: a failed fsync may have lost up to this many bytes at the end."""

RECORD_OVERHEAD_MAX_BYTES: Final = 32
"""The maximum number of bytes that a batch adds to a record's value: attributes, two deltas and three
sizes."""

MIN_SEGMENT_SIZE_BYTES: Final = MAX_BATCH_SIZE_BYTES
"""Kafka's minimum of `metadata.log.segment.bytes`: the largest batch fits."""


_NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPolicy:
    """The limits of a metadata log, with Kafka's names, defaults and bounds (`MetadataLogConfig`).

    A negative retention is no limit. The newest snapshot and everything after it always stay.
    """

    segment_bytes: int = Setting(
        "metadata.log.segment.bytes",
        whole_number(MIN_SEGMENT_SIZE_BYTES, INT32_MAX, "bytes"),
        1024 * 1024 * 1024,
        "Metadata log",
        "The largest size of a file of the log; a batch that does not fit begins the next file.",
    ).field()
    segment_ms: int = Setting(
        "metadata.log.segment.ms",
        whole_number(1, INT64_MAX, "milliseconds"),
        7 * 24 * 60 * 60 * 1000,
        "Metadata log",
        "The age of the first change in a file at which the next change begins a new file.",
    ).field()
    snapshot_record_bytes: int = Setting(
        "metadata.log.max.record.bytes.between.snapshots",
        whole_number(1, INT64_MAX, "bytes"),
        20 * 1024 * 1024,
        "Metadata log",
        "How many bytes of changes lead to a new snapshot: a start reads it instead of all earlier changes.",
    ).field()
    snapshot_interval_ms: int = Setting(
        "metadata.log.max.snapshot.interval.ms",
        whole_number(0, INT64_MAX, "milliseconds"),
        60 * 60 * 1000,
        "Metadata log",
        "How long after the last snapshot kustos takes the next one if anything changed; 0: never by time.",
    ).field()
    retention_bytes: int = Setting(
        "metadata.max.retention.bytes",
        whole_number(_NO_LIMIT, INT64_MAX, "bytes"),
        100 * 1024 * 1024,
        "Metadata log",
        "When log and snapshots exceed this size, kustos deletes the oldest snapshots and the files of the "
        "log before the next one. It always keeps the newest snapshot and what follows it. -1: no limit.",
    ).field()
    retention_ms: int = Setting(
        "metadata.max.retention.ms",
        whole_number(_NO_LIMIT, INT64_MAX, "milliseconds"),
        7 * 24 * 60 * 60 * 1000,
        "Metadata log",
        "The age from which kustos deletes snapshots in the same way. -1: no limit.",
    ).field()


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
