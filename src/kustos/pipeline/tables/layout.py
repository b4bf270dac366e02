"""The tables: each one is declared here, with its columns, and all that differs between tables is derived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DateType, IntegerType, StringType, StructField, StructType

from kustos.pipeline.schemas import (
    ACCESS_REVIEW_SCHEMA,
    ANOMALIES_SCHEMA,
    ANOMALY_STATES_SCHEMA,
    AUDIT_EVENTS_SCHEMA,
    AUDIT_ROLLUP_SCHEMA,
    CLUSTER,
    DISCREPANCIES_SCHEMA,
    ENTITLEMENTS_SCHEMA,
    FINDINGS_SCHEMA,
    FLIPS_SCHEMA,
    INPUTS_SCHEMA,
    JUDGED_SCHEMA,
    QUARANTINE_SCHEMA,
    ROLLUP_GRAIN,
    RUNS_SCHEMA,
    SECURITY_EVENTS_SCHEMA,
    meaning_of,
)
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.tables.delta import DAY

AUDIT_RAW, AUDIT_EVENTS, AUDIT_ROLLUP, QUARANTINE = "audit_raw", "audit_events", "audit_rollup", "quarantine"
SECURITY_EVENTS: Final = "security_events"
RUNS, INPUTS = "runs", "inputs"


class Partition(Enum):
    """The days by which the files of a table are separated."""

    EVENT_DAY = "day of the event in UTC"
    INGESTION_DAY = "day of the ingestion in UTC, since lines may have no time"
    NOTHING = "none"


class Loss(Enum):
    """What to do about damage of a table."""

    RESTORE = "restore it from a backup, or read the audit into a new folder"
    REBUILD = "`kustos pipeline run` rebuilds it from the events"
    ANSWER_AGAIN = "the command that writes this table replaces it when it runs again"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """A table: its columns as readers see them, and what writes it.

    No two rows are equal in all columns of `key`; without one rows may repeat. `writers` are the commands
    that write it. `loss` says whether kustos can make it again.
    """

    name: str
    meaning: str
    schema: StructType
    key: tuple[str, ...]
    writers: tuple[str, ...]
    loss: Loss
    partition: Partition = Partition.NOTHING

    @property
    def is_growing(self) -> bool:
        """Whether runs add rows; the others are replaced as a whole, or kept by transactions themselves."""
        return self.partition is not Partition.NOTHING


def _answer(name: str, command: str, schema: StructType, key: Sequence[str], meaning: str) -> TableLayout:
    """Return the layout of a table that a command replaces, for one cluster at a time."""
    return TableLayout(
        name=name,
        meaning=meaning,
        schema=StructType([StructField(CLUSTER, StringType()), *schema.fields]),
        key=(CLUSTER, *key),
        writers=(command,),
        loss=Loss.ANSWER_AGAIN,
    )


def _kept(table: TableLayout, *writers: str) -> TableLayout:
    """Return the layout of a table of the anomalies of all runs, which no command can make again."""
    return replace(table, writers=(*table.writers, *writers), loss=Loss.RESTORE)


_RUN: Final = ("run",)
_ACCESS: Final = ("principal", "operation", "resource_type", "resource_name", "pattern_type")

TABLES: Final[Mapping[str, TableLayout]] = {
    table.name: table
    for table in (
        TableLayout(
            name=AUDIT_EVENTS,
            meaning="Every decision once.",
            schema=StructType([*AUDIT_EVENTS_SCHEMA.fields, StructField(DAY, DateType())]),
            key=(),
            writers=_RUN,
            loss=Loss.RESTORE,
            partition=Partition.EVENT_DAY,
        ),
        TableLayout(
            name=SECURITY_EVENTS,
            meaning="Every login, end of a session by expiry, and change of a user, token or setting once.",
            schema=StructType([*SECURITY_EVENTS_SCHEMA.fields, StructField(DAY, DateType())]),
            key=(),
            writers=_RUN,
            loss=Loss.RESTORE,
            partition=Partition.EVENT_DAY,
        ),
        TableLayout(
            name=AUDIT_ROLLUP,
            meaning="Decisions counted for each day and each combination of the key.",
            schema=AUDIT_ROLLUP_SCHEMA,
            key=ROLLUP_GRAIN,
            writers=_RUN,
            loss=Loss.REBUILD,
            partition=Partition.EVENT_DAY,
        ),
        TableLayout(
            name=QUARANTINE,
            meaning="Every line that is not an event, with the reason.",
            schema=QUARANTINE_SCHEMA,
            key=(),
            writers=_RUN,
            loss=Loss.RESTORE,
            partition=Partition.INGESTION_DAY,
        ),
        TableLayout(
            name=AUDIT_RAW,
            meaning="Every line as it was read; only with `keep_raw`.",
            schema=INPUT_LINES_SCHEMA,
            key=(),
            writers=_RUN,
            loss=Loss.RESTORE,
            partition=Partition.INGESTION_DAY,
        ),
        _answer(
            "replay_flips",
            "replay",
            StructType(
                [
                    *FLIPS_SCHEMA.fields,
                    StructField("recorded_days", IntegerType()),
                    StructField("covered_since", DateType()),
                ]
            ),
            FLIPS_SCHEMA.fieldNames()[: FLIPS_SCHEMA.fieldNames().index("event_count")],
            "Recorded access that the candidate ACLs decide otherwise.",
        ),
        _answer(
            "access_review",
            "review",
            ACCESS_REVIEW_SCHEMA,
            _ACCESS,
            "A row for each principal, operation and resource: a name that was used, or the pattern of a "
            "grant without use; a super user has a row of its own.",
        ),
        _answer(
            "entitlements",
            "review",
            ENTITLEMENTS_SCHEMA,
            (*_ACCESS, "basis", "granted_by"),
            "A row for each ALLOW and operation that it allows; a use that several allow counts for each.",
        ),
        _answer(
            "findings",
            "review",
            FINDINGS_SCHEMA,
            ("finding_id",),
            "ACLs that are unused, redundant, shadowed or orphaned, and broken rules of duties or policy.",
        ),
        _kept(
            _answer(
                "anomalies",
                "anomalies find",
                ANOMALIES_SCHEMA,
                ("anomaly_id", "day"),
                "A row for each anomaly and day on which it was seen, of all runs.",
            )
        ),
        _kept(
            _answer(
                "anomaly_states",
                "anomalies find",
                ANOMALY_STATES_SCHEMA,
                ("anomaly_id",),
                "The state of each anomaly, over all runs.",
            ),
            "anomalies acknowledge",
        ),
        _answer(
            "judged",
            "judge",
            JUDGED_SCHEMA,
            (),
            "Recorded decisions, and those of the ACLs then in force.",
        ),
        _answer(
            "discrepancies",
            "judge",
            DISCREPANCIES_SCHEMA,
            ("discrepancy_id",),
            "Recorded decisions that the ACLs then in force do not explain.",
        ),
        TableLayout(
            name=RUNS,
            meaning="Every commit, and the version of each table after it; without it no table is readable.",
            schema=RUNS_SCHEMA,
            key=("number",),
            writers=("run", "replay", "review", "anomalies find", "anomalies acknowledge", "judge"),
            loss=Loss.RESTORE,
        ),
        TableLayout(
            name=INPUTS,
            meaning="Files that runs have read.",
            schema=INPUTS_SCHEMA,
            key=(),
            writers=_RUN,
            loss=Loss.RESTORE,
        ),
    )
}
"""All tables, in the order of the reference page; others have the columns that `Tables.replace` wrote."""

SCHEMAS: Final[Mapping[str, StructType]] = {
    name: table.schema for name, table in TABLES.items() if name not in (RUNS, INPUTS)
}
"""The columns of the tables that hold events and answers."""

BY_DAY: Final = frozenset(name for name, one in TABLES.items() if one.partition is Partition.EVENT_DAY)
"""Partitioned by the UTC date of the events."""

LINES: Final = frozenset(name for name, one in TABLES.items() if one.partition is Partition.INGESTION_DAY)
"""Partitioned by the UTC date of the ingestion."""

GROWING: Final = BY_DAY | LINES
"""Only runs write these; all others are replaced as a whole."""


def loss_of(name: str) -> Loss:
    """Return what to do about damage of a table."""
    return TABLES[name].loss if name in TABLES else Loss.ANSWER_AGAIN


def stored_schema(name: str, rows: StructType | None = None) -> pa.Schema:
    """Return the columns of a table in Delta's log: those of `rows`, by default those of its schema."""
    schema = TABLES[name].schema if rows is None else rows
    if name in LINES:
        schema = StructType([*schema.fields, StructField(DAY, DateType())])
    return to_arrow_schema(schema, timezone="UTC")


def commented(name: str, schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table with their meanings, which `DESCRIBE TABLE` shows."""
    if name not in TABLES:
        return schema
    known = {*TABLES[name].schema.fieldNames()}
    return pa.schema(
        [
            field.with_metadata({"comment": meaning_of(name, field.name)}) if field.name in known else field
            for field in schema
        ]
    )


def period_of(days: Sequence[str]) -> str:
    """Return the first and the last of sorted days, as a text."""
    return " to ".join(dict.fromkeys((*days[:1], *days[-1:]))) or "no day"
