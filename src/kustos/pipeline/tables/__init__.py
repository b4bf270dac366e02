"""Tables of access: runs append each event exactly once, even after kills and repeated input."""

from kustos.pipeline.errors import (
    ClusterError,
    SchemaConflictError,
    StaleRollupError,
    TablesDamagedError,
    TablesError,
    TablesInUseError,
)
from kustos.pipeline.lines.clusters import DeclaredCluster
from kustos.pipeline.tables.check import CHECK_STEPS, TablesCheck, check_tables
from kustos.pipeline.tables.clusters import Cluster
from kustos.pipeline.tables.ingest import IngestOptions, ingest
from kustos.pipeline.tables.line_tasks import Lines, LineTasks
from kustos.pipeline.tables.rollup.days import refresh_rollup, refreshed_state
from kustos.pipeline.tables.runs import InputFile
from kustos.pipeline.tables.store import Tables
from kustos.pipeline.tables.summary import WARNINGS_MAX, RunSummary, limited
from kustos.pipeline.tables.transaction import when_free
from kustos.pipeline.tables.upkeep import Dropped, Retention, compact_tables, drop_expired, would_drop

__all__ = [
    "CHECK_STEPS",
    "WARNINGS_MAX",
    "Cluster",
    "ClusterError",
    "DeclaredCluster",
    "Dropped",
    "IngestOptions",
    "InputFile",
    "LineTasks",
    "Lines",
    "Retention",
    "RunSummary",
    "SchemaConflictError",
    "StaleRollupError",
    "Tables",
    "TablesCheck",
    "TablesDamagedError",
    "TablesError",
    "TablesInUseError",
    "check_tables",
    "compact_tables",
    "drop_expired",
    "ingest",
    "limited",
    "refresh_rollup",
    "refreshed_state",
    "when_free",
    "would_drop",
]
