"""What a node's settings say of the files of its metadata log."""

from kustos.metadata.log import LogPolicy
from kustos.server import log_setting_table as table
from kustos.server.given import GivenSettings


def log_policy(given: GivenSettings) -> LogPolicy:
    """Return what these settings say of the log's files."""
    return LogPolicy(
        segment_bytes=given.require(table.SEGMENT_BYTES),
        segment_ms=given.require(table.SEGMENT_MS),
        snapshot_record_bytes=given.require(table.SNAPSHOT_BYTES),
        snapshot_interval_ms=given.require(table.SNAPSHOT_INTERVAL_MS),
        retention_bytes=given.require(table.RETENTION_BYTES),
        retention_ms=given.require(table.RETENTION_MS),
    )
