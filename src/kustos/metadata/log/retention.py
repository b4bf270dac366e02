"""Retention of old log files: Kafka's rules (`KafkaMetadataLog.maybeClean`), as pure functions.

The log may begin where its oldest kept snapshot ends. So while the limits are exceeded and another snapshot
remains, the oldest snapshot is deleted, and with it the segments entirely below the next one: the newest
snapshot and the log after it are the state itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kustos.metadata.log.layout import SnapshotId
from kustos.metadata.log.policy import LogPolicy


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
