"""What an operator can set about the audit log."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The `kustos.audit.*` keys. `sinks` names those in use, whose other fields are then set."""

    sinks: tuple[str, ...] = ()
    json_directory: Path | None = None
    json_max_bytes: int = 104_857_600
    json_max_files: int = 1000
    json_roll_ms: int = 3_600_000
    kafka_topic: str | None = None
    log4j_file: Path | None = None
    log4j_level: str = "INFO"
    queue_max_events: int = 65_536
    blocks_when_full: bool = True
