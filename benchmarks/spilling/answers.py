"""What a job wrote, as one number of all its rows, and what DuckDB makes of the same files as one of its own.

Rows are compared as a whole: how many there are, and the sum of the hashes of all, whatever their order.
Raises `SystemExit` for no rows: an empty answer proves nothing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from benchmarks.replaying.estate import acl_sets
from benchmarks.replaying.theirs import RULE_TEXT
from kustos.pipeline.bulk.blocks import BulkAuthorizer
from kustos.pipeline.schemas import (
    ACCESS_REVIEW_SCHEMA,
    AUDIT_ROLLUP_SCHEMA,
    FINDINGS_SCHEMA,
    FLIPS_SCHEMA,
    QUESTION_COLUMNS,
)

Answer = tuple[int, int]
"""Rows, and the sum of their hashes."""

MEMORY: Final = "6GB"

_ROLLUP: Final = """
    SELECT CAST(epoch_ms(time_ms) AS DATE) AS day, '' AS cluster,
        principal_type || ':' || principal_name AS principal, host, operation, resource_type, resource_name,
        decision, access, rule, count(*)::BIGINT AS event_count,
        sum(reference_count)::BIGINT AS reference_count, min(time) AS first_time, max(time) AS last_time,
        bit_or(1::INTEGER << CAST(time_ms // 3600000 % 24 AS INTEGER)) AS hours,
        min(event_id) AS sample_event_id
    FROM read_parquet($files) GROUP BY ALL"""

_ACCESSES: Final = f"""
    SELECT principal_type || ':' || principal_name AS principal, host, operation, resource_type,
        resource_name, access, decision AS from_decision, {RULE_TEXT} AS from_rule,
        count(*)::BIGINT AS event_count, sum(reference_count)::BIGINT AS reference_count,
        count(*) FILTER (decision = 'ALLOWED')::BIGINT AS recorded_allowed_count,
        min(time) AS first_time, max(time) AS last_time, min(event_id) AS sample_event_id
    FROM read_parquet($files) GROUP BY ALL"""

_FLIPS: Final = """
    SELECT *, CASE
        WHEN from_decision = 'ALLOWED' AND to_decision <> 'ALLOWED' THEN 'LOST'
        WHEN from_decision <> 'ALLOWED' AND to_decision = 'ALLOWED' THEN 'GAINED'
        ELSE 'RULE_CHANGED' END AS kind
    FROM decided WHERE from_decision <> to_decision OR from_rule <> to_rule"""

_LINES: Final = """
    SELECT DISTINCT event_id, time_ms, principal_name, host, resource_name FROM read_json($files,
        format = 'newline_delimited', columns = {event_id: 'VARCHAR', time_ms: 'BIGINT',
        principal_name: 'VARCHAR', host: 'VARCHAR', resource_name: 'VARCHAR'})"""

_LINE_COLUMNS: Final = ("event_id", "time_ms", "principal_name", "host", "resource_name")


def written(folder: Path, columns: Sequence[str]) -> Answer:
    """Return what lies in the Parquet files of a folder."""
    rows = "SELECT * FROM read_parquet($files, hive_partitioning = true)"
    return _answer(_database(), rows, columns, _files(folder, "parquet"))


def rollup_written(target: Path) -> Answer:
    return written(target / "audit_rollup", AUDIT_ROLLUP_SCHEMA.fieldNames())


def flips_written(target: Path) -> Answer:
    return written(target / "flips", FLIPS_SCHEMA.fieldNames())


def review_written(target: Path) -> tuple[Answer, Answer]:
    """Return the review and the findings."""
    return (
        written(target / "access_review", ACCESS_REVIEW_SCHEMA.fieldNames()),
        written(target / "findings", FINDINGS_SCHEMA.fieldNames()),
    )


def events_written(target: Path) -> Answer:
    return written(target / "audit_events", _LINE_COLUMNS)


def rollup_of_duckdb(events: Path) -> Answer:
    return _answer(_database(), _ROLLUP, AUDIT_ROLLUP_SCHEMA.fieldNames(), _files(events, "parquet"))


def flips_of_duckdb(events: Path, acls: int) -> Answer:
    """Return what flips, with rules that change: DuckDB groups the raw events, one index decides."""
    database = _database()
    files = {"files": _files(events, "parquet")}
    accesses: Any = database.sql(_ACCESSES, params=files).to_arrow_table()
    _, candidate = acl_sets(acls)
    subject = BulkAuthorizer(candidate.authorizer(), with_rule=True)
    answers = subject.authorize(accesses.select(list(QUESTION_COLUMNS)))
    decided = accesses.append_column("to_decision", answers.column("result").cast(pa.string()))
    decided = decided.append_column("to_rule", answers.column("rule").cast(pa.string()))
    database.register("decided", decided)
    return _answer(database, _FLIPS, FLIPS_SCHEMA.fieldNames())


def events_of_duckdb(lines: Path) -> Answer:
    return _answer(_database(), _LINES, _LINE_COLUMNS, _files(lines, "jsonl"))


def _database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    for setting in ("enable_progress_bar = false", "TimeZone = 'UTC'", f"memory_limit = '{MEMORY}'"):
        database.execute(f"SET {setting}")
    return database


def _files(folder: Path, ending: str) -> list[str]:
    return [str(path) for path in sorted(folder.rglob(f"*.{ending}"))]


def _answer(
    database: duckdb.DuckDBPyConnection, rows: str, columns: Sequence[str], files: list[str] | None = None
) -> Answer:
    chosen = ", ".join(columns)
    [found] = database.execute(
        f"SELECT count(*), coalesce(sum(hash(one)::HUGEINT), 0) FROM (SELECT {chosen} FROM ({rows})) AS one",
        {} if files is None else {"files": files},
    ).fetchall()
    if not found[0]:
        raise SystemExit(f"no rows of {chosen}, so nothing is compared")
    return int(found[0]), int(found[1])
