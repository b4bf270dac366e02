"""Rules for new segments, snapshots and retention of the log (Kafka's own settings)."""

from dataclasses import dataclass
from typing import Final

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
