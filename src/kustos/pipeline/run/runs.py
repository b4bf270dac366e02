"""The run over files: takes new files into the tables, once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from kustos.pipeline.places import Place
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.run.files.line_reader import check_time_zone, read_located_lines
from kustos.pipeline.run.files.new_files import (
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

    from kustos.pipeline.run.files.overlaps import Overlaps
    from kustos.pipeline.tables import IngestOptions, LineTasks, RunSummary, Tables

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
    if found.new:
        may_be_unknown = on_unknown_format == "quarantine"
        found = replace(found, new=with_layouts(found.new, layout, may_be_unknown=may_be_unknown))
        reader = _FileRun(spark, tables, name, options, progress, clock)
        summary = reader.take(found, may_quarantine=on_damaged_file == "quarantine")
    else:
        summary = _without_files(found, name)
    if not summary.new_files and options.with_rollup:
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


def _without_files(found: FoundFiles, run_id: str) -> "RunSummary":
    """Return the summary of a run that reads no file."""
    from kustos.pipeline.tables import RunSummary, limited

    return RunSummary(run_id=run_id, files=found.count, warnings=limited(found.said), **_counts(found))


class _OtherLogsError(Exception):
    """While files were read they were found to be of other logs: `found` has them as they are to be read."""

    def __init__(self, found: FoundFiles) -> None:
        super().__init__("files overlap")
        self.found: Final = found


@dataclass(frozen=True, slots=True)
class _FileRun:
    """Takes files into the tables, and again if they turn out to overlap, or to be damaged."""

    spark: "SparkSession"
    tables: "Tables"
    run_id: str
    options: "IngestOptions"
    progress: Progress
    clock: Clock

    def take(self, found: FoundFiles, *, may_quarantine: bool) -> "RunSummary":
        """Return the summary of the run; raise what reading raises."""
        for _ in range(MAXIMUM_DAMAGED_ROUNDS):
            try:
                return self._taken(found)
            except DamagedFileError as error:
                without_damage = with_damage(found.new, error.path)
                if not may_quarantine or without_damage == found.new:
                    raise
                found = replace(found, new=without_damage)
        return self._taken(found)

    def _taken(self, found: FoundFiles) -> "RunSummary":
        from kustos.pipeline.run.files.overlaps import Overlaps

        self.progress("looking for overlaps")
        with task_errors():
            overlaps = Overlaps.of(found, self.tables, time_zone=self.options.time_zone)
            settled = overlaps.settled(self.spark, {})
            try:
                return self._ingested(settled, overlaps)
            except _OtherLogsError as error:
                return self._ingested(error.found)

    def _ingested(self, found: FoundFiles, overlaps: "Overlaps | None" = None) -> "RunSummary":
        """Read the files; raise `_OtherLogsError` if `overlaps` were found by that."""
        from kustos.pipeline.tables import ingest

        def lines(folder: Place) -> "LineTasks":
            watch = None if overlaps is None else overlaps.watch(folder)
            return read_located_lines(self.spark, files.new, watch)

        def when_read(folder: Place) -> list[str]:
            watch = None if overlaps is None else overlaps.watch(folder)
            if overlaps is None or watch is None:
                return []
            settled = overlaps.settled(self.spark, watch.held())
            if settled.new != found.new:
                raise _OtherLogsError(settled)
            return [each for each in settled.said if each not in found.said]

        if not found.new:
            return _without_files(found, self.run_id)
        files = with_clusters(found)
        return ingest(
            self.spark,
            lines,
            self.tables,
            self.run_id,
            # each file has the cluster of its log
            options=replace(self.options, cluster=replace(self.options.cluster, name=None)),
            inputs=[file.identity for file in files.new],
            renamed_inputs=files.renamed,
            files=files.count,
            counts_of_files=_counts(files),
            warnings=files.said,
            damaged_files=sum(file.fault is not None for file in files.new),
            when_read=when_read,
            progress=self.progress,
            clock=self.clock,
        )
