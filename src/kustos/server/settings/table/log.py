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
    "The largest size of a file of the log; a batch that does not fit begins the next file.",
)
SEGMENT_MS: Final = Setting(
    "metadata.log.segment.ms",
    whole_number(1, INT64_MAX, "milliseconds"),
    DEFAULT_POLICY.segment_ms,
    "Metadata log",
    "The age of the first change in a file at which the next change begins a new file.",
)
SNAPSHOT_BYTES: Final = Setting(
    "metadata.log.max.record.bytes.between.snapshots",
    whole_number(1, INT64_MAX, "bytes"),
    DEFAULT_POLICY.snapshot_record_bytes,
    "Metadata log",
    "How many bytes of changes lead to a new snapshot: a start reads it instead of all earlier changes.",
)
SNAPSHOT_INTERVAL_MS: Final = Setting(
    "metadata.log.max.snapshot.interval.ms",
    whole_number(0, INT64_MAX, "milliseconds"),
    DEFAULT_POLICY.snapshot_interval_ms,
    "Metadata log",
    "How long after the last snapshot kustos takes the next one if anything changed; 0: never by time.",
)
RETENTION_BYTES: Final = Setting(
    "metadata.max.retention.bytes",
    whole_number(_NO_LIMIT, INT64_MAX, "bytes"),
    DEFAULT_POLICY.retention_bytes,
    "Metadata log",
    "When log and snapshots exceed this size, kustos deletes the oldest snapshots and the files of the log "
    "before the next one. It always keeps the newest snapshot and what follows it. -1: no limit.",
)
RETENTION_MS: Final = Setting(
    "metadata.max.retention.ms",
    whole_number(_NO_LIMIT, INT64_MAX, "milliseconds"),
    DEFAULT_POLICY.retention_ms,
    "Metadata log",
    "The age from which kustos deletes snapshots in the same way. -1: no limit.",
)

LOG_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    SEGMENT_BYTES,
    SEGMENT_MS,
    SNAPSHOT_BYTES,
    SNAPSHOT_INTERVAL_MS,
    RETENTION_BYTES,
    RETENTION_MS,
)
