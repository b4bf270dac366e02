"""The embedded log: a genuine `__cluster_metadata-0` directory, read, recovered and written."""

from kustos.metadata.log.layout import (
    BOOTSTRAP_SNAPSHOT,
    LOCK_FILE,
    META_PROPERTIES,
    METADATA_PARTITION,
    MetaProperties,
    SnapshotId,
)
from kustos.metadata.log.policy import DEFAULT_POLICY, MAX_BATCH_SIZE_BYTES, LogPolicy
from kustos.metadata.log.reader import LogReader, TornTail
from kustos.metadata.log.segment import SegmentReader
from kustos.metadata.log.snapshot import encode_snapshot, snapshot_batches
from kustos.metadata.log.writer import LogWriter

__all__ = [
    "BOOTSTRAP_SNAPSHOT",
    "DEFAULT_POLICY",
    "LOCK_FILE",
    "MAX_BATCH_SIZE_BYTES",
    "METADATA_PARTITION",
    "META_PROPERTIES",
    "LogPolicy",
    "LogReader",
    "LogWriter",
    "MetaProperties",
    "SegmentReader",
    "SnapshotId",
    "TornTail",
    "encode_snapshot",
    "snapshot_batches",
]
