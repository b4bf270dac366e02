"""The settings of the metadata log's files: Kafka's names, defaults and bounds (`MetadataLogConfig`)."""

from typing import Any, Final

from kustos.metadata.log import DEFAULT_POLICY, MIN_SEGMENT_SIZE_BYTES
from kustos.server.settings.kinds import INT32_MAX, INT64_MAX, Setting, whole_number

_NO_LIMIT: Final = -1

SEGMENT_BYTES: Final = Setting(
    "metadata.log.segment.bytes",
    whole_number(MIN_SEGMENT_SIZE_BYTES, INT32_MAX, "bytes"),
    DEFAULT_POLICY.segment_bytes,
    "Metadata log",
    "A file of the log is closed before it would grow beyond this, and the next one begun.",
)
SEGMENT_MS: Final = Setting(
    "metadata.log.segment.ms",
    whole_number(1, INT64_MAX, "milliseconds"),
    DEFAULT_POLICY.segment_ms,
    "Metadata log",
    "A change that comes so long after the first one in a file begins the next file.",
)
SNAPSHOT_BYTES: Final = Setting(
    "metadata.log.max.record.bytes.between.snapshots",
    whole_number(1, INT64_MAX, "bytes"),
    DEFAULT_POLICY.snapshot_record_bytes,
    "Metadata log",
    "After so many bytes of changes a snapshot is taken: a start reads it instead of all that came before.",
)
SNAPSHOT_INTERVAL_MS: Final = Setting(
    "metadata.log.max.snapshot.interval.ms",
    whole_number(0, INT64_MAX, "milliseconds"),
    DEFAULT_POLICY.snapshot_interval_ms,
    "Metadata log",
    "A snapshot is taken so long after the last one if anything changed; 0: never because of time.",
)
RETENTION_BYTES: Final = Setting(
    "metadata.max.retention.bytes",
    whole_number(_NO_LIMIT, INT64_MAX, "bytes"),
    DEFAULT_POLICY.retention_bytes,
    "Metadata log",
    "When log and snapshots exceed this, the oldest snapshots go, and the files of the log below the next "
    "one. The newest snapshot and what follows it stay in any case. -1: no limit.",
)
RETENTION_MS: Final = Setting(
    "metadata.max.retention.ms",
    whole_number(_NO_LIMIT, INT64_MAX, "milliseconds"),
    DEFAULT_POLICY.retention_ms,
    "Metadata log",
    "Snapshots older than this go in the same way. -1: no limit.",
)

LOG_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    SEGMENT_BYTES,
    SEGMENT_MS,
    SNAPSHOT_BYTES,
    SNAPSHOT_INTERVAL_MS,
    RETENTION_BYTES,
    RETENTION_MS,
)
