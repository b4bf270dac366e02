"""Ingestion of raw lines into committed tables, for runs over files and for batches of a stream."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

from pyspark.sql import SparkSession

from kustos.pipeline.lines.clusters import UNDECLARED, DeclaredCluster
from kustos.pipeline.places import Place
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.tables.conflicts import conflict_warnings
from kustos.pipeline.tables.deduplication.keys import MILLISECONDS_OF_A_DAY
from kustos.pipeline.tables.deduplication.of_runs import Outcomes, deduplicate_lines
from kustos.pipeline.tables.deduplication.outcomes import DUPLICATE, EVENT, QUARANTINED, TOO_LATE
from kustos.pipeline.tables.layout import AUDIT_EVENTS, AUDIT_RAW, QUARANTINE, SECURITY_EVENTS, stored_schema
from kustos.pipeline.tables.line_tasks import Lines
from kustos.pipeline.tables.line_writer import Places, write_lines
from kustos.pipeline.tables.parquet_reader import count_of, read_parquet
from kustos.pipeline.tables.parquet_writer import write_rows
from kustos.pipeline.tables.rollup.days import (
    days_to_rebuild,
    refresh_rollup,
    roll_up,
    rollup_fault,
)
from kustos.pipeline.tables.runs import ENDS, RUN, InputFile
from kustos.pipeline.tables.staging import StagedLines, stage_lines
from kustos.pipeline.tables.store import Tables
from kustos.pipeline.tables.stored import StoredFile, StoredFiles
from kustos.pipeline.tables.summary import RunSummary, check_no_line_lost, limited
from kustos.pipeline.tables.transaction import Transaction, Write
from kustos.pipeline.tables.upkeep import Retention, closed_before, kept_from
from kustos.runtime import Clock, SystemClock

STEPS: Final = (
    "reading and sorting lines",
    "looking for what is known",
    "writing events and quarantined lines",
    "writing audit_rollup",
    "committing",
)

EPOCH_DAY: Final = date(1970, 1, 1)

LOOK_AROUND_MS: Final = 60_000
"""Stored events are compared from this long before the earliest new one to this long after the latest. A copy
has the time of its original, so the tables do not depend on this; a conflict with an event outside is not
reported. With an hour each short batch of a stream would read the events of the last hour."""

_NOTES: Final = "notes"
_IDENTIFIED: Final = "identified"
_OUTCOMES: Final = "outcomes"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """The options of ingestion.

    `time_zone` (an IANA name) is that of brokers whose log lines have none. `cluster` is that of the lines,
    if they are declared to be of one. `keep_raw` keeps every line in `audit_raw`. `watermark_days`: an event
    that is older than the newest one committed before by more than that is quarantined as `too_late`; None
    takes all. Without `with_rollup` the days of the events are only marked, and the next run with a roll-up
    or `refresh_rollup` rolls them up: for streams with short batches.
    `retention`: events of days that it drops are too late, too; `drop_expired` drops them.
    """

    time_zone: str = "UTC"
    cluster: DeclaredCluster = UNDECLARED
    keep_raw: bool = False
    watermark_days: int | None = None
    with_rollup: bool = True
    retention: Retention | None = None


def ingest(
    spark: SparkSession,
    lines: Lines | Callable[[Place], Lines],
    tables: Tables,
    run_id: str,
    *,
    options: IngestOptions = IngestOptions(),
    inputs: Sequence[InputFile] = (),
    renamed_inputs: Sequence[InputFile] = (),
    files: int = 0,
    damaged_files: int = 0,
    counts_of_files: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    ends: Mapping[int, int] | None = None,
    when_read: Callable[[Place], Sequence[str]] | None = None,
    progress: Progress = silent,
    clock: Clock | None = None,
) -> RunSummary:
    """Ingest lines (INPUT_LINES_SCHEMA or LINES_SCHEMA) into the tables, all or none, once for each `run_id`.

    With a committed `run_id` this is a no-op that returns the former summary; a stream's batch has the id
    `NAME@NUMBER`, with growing numbers, and a number at or below the last one is a no-op. `lines` is read
    once. `inputs` are the files that are recorded as read, `renamed_inputs` those that former runs read under
    another path. The summary takes `warnings`, and `counts_of_files` by their names. `ends` are the offsets
    at which the next batch of a stream begins, by partition; `State.ends_of` returns them. `lines` may be a
    function of a folder, in which tasks that read the lines may leave files; `when_read` then gets that
    folder, returns more warnings, and stops the run by an error.

    Raises `LinesLostError`, `TablesError`, `TablesInUseError`, `SchemaConflictError`, and what reading
    `lines` and `when_read` raise; after an error before the commit, the tables are unchanged.
    """
    clock, tables = clock or SystemClock(), tables.of_all_clusters().of_last_run()
    if options.with_rollup and rollup_fault(tables) is not None:
        refresh_rollup(spark, tables)
    with tables.transaction() as change:
        former = change.state.summary_of(run_id)
        if former is not None:
            return RunSummary.from_mapping(former, run_id=run_id, is_repeat=True)
        run = _Run(spark, tables, change, options, progress, clock)
        counts = run.write(lines, when_read)
        summary = RunSummary(
            run_id=run_id,
            files=files,
            new_files=len(inputs),
            damaged_files=damaged_files,
            lines=counts.lines,
            events=counts.events,
            security_events=counts.security_events,
            quarantined=counts.quarantined,
            duplicates=counts.duplicates,
            too_late=counts.too_late,
            conflicts=counts.conflicts,
            **(counts_of_files or {}),
            days=counts.days,
            warnings=limited((*counts.warnings, *warnings)),
            seconds=(clock.monotonic_ms() - run.started_ms) / 1000,
        )
        progress(STEPS[4])
        change.commit(
            run_id,
            RUN,
            run.changes,
            stale_days=run.stale_days,
            inputs=(*inputs, *renamed_inputs),
            summary=asdict(summary) | ({} if ends is None else {ENDS: ends}),
            newest_time_ms=counts.newest_time_ms,
        )
    return summary


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    lines: int
    events: int
    security_events: int
    quarantined: int
    duplicates: int
    too_late: int
    conflicts: int
    warnings: list[str]
    days: tuple[str, ...]
    newest_time_ms: int | None


class _Run:
    """One ingestion up to its commit: it stages the rows and collects the `changes` to commit."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        change: Transaction,
        options: IngestOptions,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self.started_ms: Final = clock.monotonic_ms()
        self.changes: list[Write] = []
        self.stale_days: frozenset[str] = change.state.stale_days
        self._spark, self._tables, self._change = spark, tables, change
        self._options, self._progress, self._clock = options, progress, clock

    def write(
        self,
        lines: Lines | Callable[[Place], Lines],
        when_read: Callable[[Place], Sequence[str]] | None = None,
    ) -> _Counts:
        """Stage all tables; raise `LinesLostError` if they lack a line."""
        self._progress(STEPS[0])
        notes = self._change.stage(_NOTES)
        staged = self._staged_lines(lines(notes) if callable(lines) else lines)
        more_warnings = when_read(notes) if when_read is not None else ()
        self._progress(STEPS[1])
        found = deduplicate_lines(
            self._spark,
            staged,
            self._stored(staged),
            self._change.stage(_OUTCOMES),
            oldest_time_ms=self._oldest_time_ms(),
        )
        self._progress(STEPS[2])
        self._write_lines(staged, found)
        duplicates = found.count(DUPLICATE)
        outcomes = {
            EVENT: self._change.rows_added(AUDIT_EVENTS),
            SECURITY_EVENTS: self._change.rows_added(SECURITY_EVENTS),
            QUARANTINED: self._change.rows_added(QUARANTINE),
            DUPLICATE: duplicates,
        }
        check_no_line_lost(staged.lines, outcomes)
        self._progress(STEPS[3])
        days = self._rolled_up()
        for table in (AUDIT_EVENTS, SECURITY_EVENTS, QUARANTINE):
            if self._change.rows_added(table):
                self._append(table)
        return _Counts(
            lines=staged.lines,
            events=outcomes[EVENT],
            security_events=outcomes[SECURITY_EVENTS],
            quarantined=outcomes[QUARANTINED],
            duplicates=duplicates,
            too_late=self._too_late(),
            conflicts=found.conflicts(),
            warnings=[*conflict_warnings(found, self._new_events()), *more_warnings],
            days=days,
            newest_time_ms=self._newest_staged_ms(),
        )

    def _staged_lines(self, lines: Lines) -> StagedLines:
        if self._options.keep_raw:
            place = self._change.place(AUDIT_RAW)
            raw = write_rows(lines, place, self._change.mark, stored_schema(AUDIT_RAW), day=self._today)
            self._change.add(AUDIT_RAW, raw)
            lines = read_parquet(self._spark, place, [file.name for file in raw], INPUT_LINES_SCHEMA)
            self._append(AUDIT_RAW)
        folder, options = self._change.stage(_IDENTIFIED), self._options
        return stage_lines(lines, folder, time_zone=options.time_zone, cluster=options.cluster)

    def _stored(self, staged: StagedLines) -> StoredFiles:
        """Return the files that may have copies of the lines: events of their days and span, by the log."""
        days = {day.isoformat() for day in staged.days()}
        first, last = staged.around(LOOK_AROUND_MS)
        events = [
            StoredFile(path, file.rows, date.fromisoformat(file.day or ""))
            for table in (AUDIT_EVENTS, SECURITY_EVENTS)
            for path, file in self._tables.chosen(
                table, lambda file: file.day in days and file.may_hold(first, last)
            )
        ]
        lines = [StoredFile(path, file.rows) for path, file in self._tables.chosen(QUARANTINE)]
        return StoredFiles(tuple(events), tuple(lines), first, last)

    def _write_lines(self, staged: StagedLines, outcomes: Outcomes) -> None:
        tables = (AUDIT_EVENTS, SECURITY_EVENTS, QUARANTINE)
        events, security, quarantine = map(self._change.place, tables)
        places = Places(events, security, quarantine, self._today, self._change.mark)
        written = write_lines(self._spark, staged, outcomes, places)
        self._change.add(AUDIT_EVENTS, written.events)
        self._change.add(SECURITY_EVENTS, written.security)
        self._change.add(QUARANTINE, written.quarantine)

    def _newest_staged_ms(self) -> int | None:
        files = [*self._change.added(AUDIT_EVENTS), *self._change.added(SECURITY_EVENTS)]
        return max(
            (last for file in files if (last := file.statistics.last_time_ms) is not None), default=None
        )

    def _new_events(self) -> Iterator[Place]:
        """Yield the files of the new events."""
        for table in (AUDIT_EVENTS, SECURITY_EVENTS):
            yield from (self._change.folder / table / file.name for file in self._change.added(table))

    @property
    def _today(self) -> str:
        return kept_from(0, self._clock)

    def _append(self, table: str) -> None:
        self.changes.append(Write(table=table, schema=stored_schema(table)))

    def _too_late(self) -> int:
        """Return how many of the quarantined lines are events that come too late."""
        files = [file.name for file in self._change.added(QUARANTINE)]
        return count_of(self._change.folder / QUARANTINE, files, "reason", TOO_LATE)

    def _oldest_time_ms(self) -> int | None:
        closed = closed_before(self._change.state, self._options.retention, self._clock)
        first_day = None if closed is None else date.fromisoformat(closed)
        from_closed = None if first_day is None else (first_day - EPOCH_DAY).days * MILLISECONDS_OF_A_DAY
        return max([one for one in (from_closed, self._watermark_ms()) if one is not None], default=None)

    def _watermark_ms(self) -> int | None:
        newest, days = self._change.state.newest_time_ms, self._options.watermark_days
        if newest is None or days is None:
            return None
        # an event that claims a far future must not make everything else late
        return min(newest, self._clock.wall_ms()) - days * MILLISECONDS_OF_A_DAY

    def _rolled_up(self) -> tuple[str, ...]:
        """Stage the roll-up; return the days of the new events."""
        files = self._change.added(AUDIT_EVENTS)
        days = {file.day for file in files if file.day is not None}
        wanted = days | self._change.state.stale_days
        if not self._options.with_rollup:
            self.stale_days |= days
        elif wanted:
            rebuilt = days_to_rebuild(self._tables, self._change.state, wanted)
            new = [self._change.folder / AUDIT_EVENTS / file.name for file in files]
            self.changes.append(roll_up(self._spark, self._tables, self._change, new, wanted, rebuilt))
            self.stale_days = frozenset()
        return tuple(sorted(days))
