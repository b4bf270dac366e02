"""The run over files: takes new files into the tables, once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from kustos.pipeline.places import Place
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.run.files.line_reader import check_time_zone, read_located_lines
from kustos.pipeline.run.files.new_files import (
    FoundFile,
    FoundFiles,
    find_new_files,
    with_clusters,
    with_damage,
    with_layouts,
)
from kustos.pipeline.run.files.pieces import DamagedFileError
from kustos.pipeline.task_errors import task_errors
from kustos.runtime import Clock, Entropy, SystemClock, SystemEntropy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kustos.pipeline.tables import IngestOptions, RunSummary, Tables

MAXIMUM_DAMAGED_ROUNDS: Final = 8
"""How often a run starts again without the damaged files found; the first round finds nearly all."""


def run_pipeline(
    spark: "SparkSession",
    *,
    tables: "Tables",
    audit: Place | Sequence[Place],
    options: "IngestOptions | None" = None,
    on_damaged_file: Literal["stop", "quarantine"] = "stop",
    on_unknown_format: Literal["stop", "quarantine"] = "stop",
    layout: str | None = None,
    source: str | None = None,
    run_id: str | None = None,
    compact: bool = True,
    progress: Progress = silent,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> "RunSummary":
    """Take the new files of the audit folders into the tables, all of them or none; return the summary.

    `layout` is log4j's pattern of lines in another layout than Kafka's; None: it is looked for in each file's
    first lines. `on_unknown_format`: a file in no known format stops the run, or is quarantined line by line.
    `source` names what wrote all these files, such as a broker: files of two sources are never one log.
    With a `run_id` of the caller (such as a scheduler's) a committed run is not repeated. `on_damaged_file`:
    a damaged compressed file stops the run, or is quarantined whole as one line. Rows older than the
    retention are dropped, also without new files, and days in many small files are compacted.

    Raises `AuditInputError` (nothing to read, no permission, a damaged file), `LinesLostError`,
    `TablesInUseError`, `TablesDamagedError`, `SchemaConflictError`; then the tables stay as they were.
    """
    from kustos.pipeline.tables import (
        IngestOptions,
        RunSummary,
        compact_tables,
        drop_expired,
        limited,
        refreshed_state,
    )

    clock, options = clock or SystemClock(), options or IngestOptions()
    check_time_zone(options.time_zone)
    name = run_id or f"run-{clock.wall_ms()}-{(entropy or SystemEntropy()).uuid().hex[:8]}"
    progress("looking for new files")
    found = find_new_files(audit, tables, source=source, cluster=options.cluster.name)
    former = tables.state().summary_of(name)
    if former is not None:
        return RunSummary.from_mapping(former, is_repeat=True)
    may_quarantine = on_damaged_file == "quarantine"
    if found.new:
        may_be_unknown = on_unknown_format == "quarantine"
        found = replace(found, new=with_layouts(found.new, layout, may_be_unknown=may_be_unknown))
        progress("looking for overlaps")
        found = _without_overlaps(spark, found, tables, options, may_quarantine)
        found = with_clusters(found)
    if found.new:
        summary = _ingested(spark, tables, found, name, options, may_quarantine, progress, clock)
    else:
        summary = RunSummary(run_id=name, files=found.count, warnings=limited(found.said), **_counts(found))
        if options.with_rollup:
            progress("rolling up")
            refreshed_state(spark, tables)
    if options.retention is not None:
        progress("dropping what is too old")
        summary = summary.with_dropped(drop_expired(tables, options.retention, clock=clock))
    if compact and found.new:
        progress("compacting")
        compact_tables(tables)
    return summary


def _counts(found: FoundFiles) -> dict[str, Any]:
    return {
        "half_lines": found.half_lines,
        "overlapping_files": found.overlapping_files,
        "refused_files": found.refused_files,
    }


def _without_overlaps(
    spark: "SparkSession",
    found: FoundFiles,
    tables: "Tables",
    options: "IngestOptions",
    may_quarantine: bool,
) -> FoundFiles:
    from kustos.pipeline.run.files.overlaps import settle_overlaps

    for _ in range(MAXIMUM_DAMAGED_ROUNDS):
        try:
            with task_errors():
                return settle_overlaps(spark, found, tables, time_zone=options.time_zone)
        except DamagedFileError as error:
            without_damage = with_damage(found.new, error.path)
            if not may_quarantine or without_damage == found.new:
                raise
            found = replace(found, new=without_damage)
    with task_errors():
        return settle_overlaps(spark, found, tables, time_zone=options.time_zone)


def _ingested(
    spark: "SparkSession",
    tables: "Tables",
    found: FoundFiles,
    run_id: str,
    options: "IngestOptions",
    may_quarantine: bool,
    progress: Progress,
    clock: Clock,
) -> "RunSummary":
    from kustos.pipeline.tables import ingest

    # each file has the cluster of its log
    options = replace(options, cluster=replace(options.cluster, name=None))

    def attempt(files: tuple[FoundFile, ...]) -> "RunSummary":
        return ingest(
            spark,
            read_located_lines(spark, files),
            tables,
            run_id,
            options=options,
            inputs=[file.identity for file in files],
            renamed_inputs=found.renamed,
            files=found.count,
            counts_of_files=_counts(found),
            warnings=found.said,
            damaged_files=sum(file.fault is not None for file in files),
            progress=progress,
            clock=clock,
        )

    files = found.new
    for _ in range(MAXIMUM_DAMAGED_ROUNDS):
        try:
            with task_errors():
                return attempt(files)
        except DamagedFileError as error:
            without_damage = with_damage(files, error.path)
            if not may_quarantine or without_damage == files:
                raise
            files = without_damage
    with task_errors():
        return attempt(files)
