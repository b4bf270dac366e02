"""The access report: one folder of audit files to four tables and a page, rebuilt each time.

Public front: `run_access_report`. Everything it composes is a stage that can be called alone.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kustos.pipeline.files import TABLE_MARKER, check_replaceable, list_audit_files, publish, staging
from kustos.pipeline.places import Place, spark_path, spark_paths_read
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.run.files.line_reader import check_time_zone, readable_files
from kustos.pipeline.run.files.pieces import read_pieces
from kustos.pipeline.task_errors import task_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kustos.pipeline.tables import Cluster, Lines

TABLES: Final = ("audit_events", "access_counts", "security_events", "quarantine")
REPORT_NAME: Final = "report.html"
SUMMARY_NAME: Final = "summary.json"
STEPS: Final = (
    "reading and sorting lines",
    "writing events and quarantined lines",
    "writing access_counts",
    "drawing the report",
    "putting it in place",
)


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """What a run read and wrote, in lines; `lines == events + security_events + quarantined + duplicates`.

    From `allowed` to `access_rows` it is about the `cluster` of the page. `conflicts` of the events have the
    id of another event with other content. `warnings` name some of them, and files that may be copies of one
    log.
    """

    files: int
    files_passed_over: int
    lines: int
    events: int
    security_events: int
    quarantined: int
    duplicates: int
    allowed: int
    denied: int
    probes: int
    principals: int
    resources: int
    failed_logins: int
    access_rows: int
    report: str
    cluster: str
    conflicts: int = 0
    warnings: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return one JSON object."""
        return json.dumps(asdict(self), indent=2)


class WrittenTables(NamedTuple):
    """What was written: lines read, rows of each outcome as found on disk, and conflicts."""

    lines: int
    outcomes: dict[str, int]
    conflicts: int
    warnings: list[str]


def write_tables(
    spark: "SparkSession", lines: "Lines", folder: Path, *, time_zone: str, progress: Progress
) -> WrittenTables:
    """Write the tables below `folder`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from kustos.pipeline.queries import access
    from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUARANTINE_SCHEMA, SECURITY_EVENTS_SCHEMA
    from kustos.pipeline.tables.conflicts import conflict_warnings
    from kustos.pipeline.tables.deduplication.of_runs import deduplicate_lines
    from kustos.pipeline.tables.deduplication.outcomes import DUPLICATE, EVENT, QUARANTINED
    from kustos.pipeline.tables.delta import new_name, write_file
    from kustos.pipeline.tables.line_writer import Places, write_lines
    from kustos.pipeline.tables.staging import stage_lines
    from kustos.pipeline.tables.stored import StoredFiles

    progress(STEPS[0])
    aside = folder / "sorted"
    staged = stage_lines(lines, aside / "identified", time_zone=time_zone)
    outcomes = deduplicate_lines(spark, staged, StoredFiles(), aside / "outcomes")
    progress(STEPS[1])
    paths = {table: folder / table for table in TABLES}
    places = Places(
        events=paths["audit_events"],
        security=paths["security_events"],
        quarantine=paths["quarantine"],
        day=None,
        mark="report",
    )
    written = write_lines(spark, staged, outcomes, places)
    files = {
        "audit_events": (written.events, AUDIT_EVENTS_SCHEMA),
        "security_events": (written.security, SECURITY_EVENTS_SCHEMA),
        "quarantine": (written.quarantine, QUARANTINE_SCHEMA),
    }
    for table, (found, schema) in files.items():
        if not found:
            empty = to_arrow_schema(schema, timezone="UTC").empty_table()
            write_file(paths[table], new_name(places.mark), empty)
        (paths[table] / TABLE_MARKER).touch()
    progress(STEPS[2])
    events = spark.read.parquet(*spark_paths_read(paths["audit_events"]))
    events.transform(access.access_counts).coalesce(1).write.parquet(spark_path(paths["access_counts"]))
    counts = {table: sum(file.rows for file in found) for table, (found, _) in files.items()}
    new = [
        paths[table] / file.name for table in ("audit_events", "security_events") for file in files[table][0]
    ]
    return WrittenTables(
        staged.lines,
        {
            EVENT: counts["audit_events"],
            "security_events": counts["security_events"],
            QUARANTINED: counts["quarantine"],
            DUPLICATE: outcomes.count(DUPLICATE),
        },
        outcomes.conflicts(),
        conflict_warnings(outcomes, new),
    )


def _narrowed(
    spark: "SparkSession", folder: Path, cluster: str | None
) -> "tuple[dict[str, int], Cluster, dict[str, DataFrame]]":
    """Return the events of each cluster, the one of the report, and its rows of the written tables."""
    from kustos.pipeline.tables.clusters import chosen_cluster, rows_of_cluster

    tables = {table: spark.read.parquet(*spark_paths_read(folder / table)) for table in TABLES}
    counts = _events_by_cluster(tables)
    chosen = chosen_cluster(counts.keys(), cluster, {})
    narrowed = {
        name: rows_of_cluster(rows, chosen, with_unnamed=name == "quarantine")
        for name, rows in tables.items()
    }
    return counts, chosen, narrowed


def _events_by_cluster(tables: "Mapping[str, DataFrame]") -> dict[str, int]:
    """Return how many decisions each cluster has; one with logins alone has none."""
    from pyspark.sql import functions as sql

    logins = tables["security_events"].select("cluster", sql.lit(0).alias("event_count"))
    together = tables["access_counts"].select("cluster", "event_count").unionByName(logins)
    counted = together.groupBy("cluster").agg(sql.sum("event_count").alias("n")).collect()
    return dict(sorted((row["cluster"], int(row["n"])) for row in counted))


def run_access_report(
    spark: "SparkSession",
    audit: Place,
    out: Path,
    *,
    time_zone: str = "UTC",
    layout: str | None = None,
    on_unknown_format: Literal["stop", "quarantine"] = "stop",
    cluster: str | None = None,
    progress: Progress = silent,
) -> ReportSummary:
    """Read all audit files below `audit` and replace the tables and the report in `out`.

    `time_zone` (an IANA name) is that of the brokers whose log4j lines are read, `layout` their pattern;
    None: it is looked for in the first lines of each file. `on_unknown_format`: a file in no known format
    stops the report, or is quarantined line by line. The page is about one `cluster`, by default the
    only one that events name. Raises `AuditInputError`, `ConfigurationError`, `ReportOutputError`,
    `ClusterError` or `LinesLostError`; after any error the former output stays.
    """
    from kustos.pipeline.report.model import collect_report
    from kustos.pipeline.report.news import last_event_of
    from kustos.pipeline.report.render import render_report
    from kustos.pipeline.tables.deduplication.outcomes import DUPLICATE, EVENT, QUARANTINED
    from kustos.pipeline.tables.summary import check_no_line_lost, limited

    check_time_zone(time_zone)
    found = list_audit_files(audit)
    with staging(out, audit) as folder:
        check_replaceable(out, TABLES)
        readable = readable_files(found, layout, on_unknown_format=on_unknown_format)
        with task_errors():
            lines = read_pieces(spark, readable.files)
            written = write_tables(spark, lines, folder, time_zone=time_zone, progress=progress)
        check_no_line_lost(written.lines, outcomes := written.outcomes)
        progress(STEPS[3])
        counts, chosen, tables = _narrowed(spark, folder, cluster)
        report = collect_report(
            tables,
            lines=written.lines,
            outcomes=outcomes,
            files=len(found.files),
            since=last_event_of(out / REPORT_NAME),
        )
        others = {name: count for name, count in counts.items() if name != chosen.name}
        report = replace(report, cluster=chosen.name, others=others)
        (folder / REPORT_NAME).write_text(render_report(report), encoding="utf-8")
        summary = ReportSummary(
            files=len(found.files),
            files_passed_over=len(found.passed_over),
            lines=written.lines,
            events=outcomes[EVENT],
            security_events=outcomes["security_events"],
            quarantined=outcomes[QUARANTINED],
            duplicates=outcomes[DUPLICATE],
            allowed=report.totals.allowed,
            denied=report.totals.denied,
            probes=report.totals.probes,
            principals=report.totals.principals,
            resources=report.totals.resources,
            failed_logins=0 if report.logins is None else report.logins.failed,
            access_rows=report.totals.accesses,
            report=str(out.resolve() / REPORT_NAME),
            cluster=chosen.name,
            conflicts=written.conflicts,
            warnings=limited((*written.warnings, *readable.said)),
        )
        (folder / SUMMARY_NAME).write_text(summary.to_json() + "\n", encoding="utf-8")
        progress(STEPS[4])
        publish(folder, out.resolve(), TABLES, (REPORT_NAME, SUMMARY_NAME))
    return summary
