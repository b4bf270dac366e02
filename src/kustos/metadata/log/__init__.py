"""The embedded log: a genuine `__cluster_metadata-0` directory, read, recovered and written."""

from kustos.metadata.log.layout import (
    BOOTSTRAP_SNAPSHOT,
    LOCK_FILE,
    META_PROPERTIES,
    METADATA_PARTITION,
    MetaProperties,
    SnapshotId,
)
from kustos.metadata.log.policy import DEFAULT_POLICY, MAX_BATCH_SIZE_BYTES, MIN_SEGMENT_SIZE_BYTES, LogPolicy
from kustos.metadata.log.reader import LogReader, recovery_point_of
from kustos.metadata.log.segment import SegmentReader, TornTail
from kustos.metadata.log.snapshot import encode_snapshot, snapshot_batches, snapshot_pieces
from kustos.metadata.log.writer import LogWriter

__all__ = [
    "BOOTSTRAP_SNAPSHOT",
    "DEFAULT_POLICY",
    "LOCK_FILE",
    "MAX_BATCH_SIZE_BYTES",
    "METADATA_PARTITION",
    "META_PROPERTIES",
    "MIN_SEGMENT_SIZE_BYTES",
    "LogPolicy",
    "LogReader",
    "LogWriter",
    "MetaProperties",
    "SegmentReader",
    "SnapshotId",
    "TornTail",
    "encode_snapshot",
    "recovery_point_of",
    "snapshot_batches",
    "snapshot_pieces",
]
