"""Ingestion of raw lines into committed tables, for runs over files and for batches of a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.stages import classify
from kustos.pipeline.stages.dedupe import DUPLICATE, EVENT, MILLISECONDS_OF_A_DAY, QUARANTINED
from kustos.pipeline.stages.dedupe_known import TOO_LATE, conflicting_events, judge, known_events
from kustos.pipeline.stages.dedupe_outcomes import DedupeOutcome
from kustos.pipeline.tables.reading import count_of, read_parquet
from kustos.pipeline.tables.retention import Retention, closed_before, kept_from
from kustos.pipeline.tables.rollups import days_to_rebuild, is_of, rolled_up
from kustos.pipeline.tables.runs import RUN, InputFile
from kustos.pipeline.tables.short_runs import (
    SHORT_KEY_BYTES_MAX,
    SHORT_LINES_MAX,
    StoredFiles,
    deduplicate_short,
)
from kustos.pipeline.tables.short_writing import FEW_BYTES, FEW_LINES, Places, write_short
from kustos.pipeline.tables.staging import (
    SortedLines,
    StagedLines,
    sort_out,
    stage_by_day,
    stage_lines,
)
from kustos.pipeline.tables.store import (
    AUDIT_EVENTS,
    AUDIT_RAW,
    AUDIT_ROLLUP,
    QUARANTINE,
    SCHEMAS,
    SECURITY_EVENTS,
    Tables,
    stored_schema,
)
from kustos.pipeline.tables.summary import RunSummary, check_no_line_lost, limited
from kustos.pipeline.tables.transaction import Transaction, Write
from kustos.pipeline.tables.writing import kept, write_rows
from kustos.runtime import Clock, SystemClock

STEPS: Final = (
    "reading and sorting lines",
    "looking for what is known",
    "writing audit_events and security_events",
    "writing quarantine",
    "writing audit_rollup",
    "committing",
)

EPOCH_DAY: Final = date(1970, 1, 1)

_SORTED: Final = "sorted"
_KNOWN: Final = "known"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """The options of ingestion.

    `time_zone` (an IANA name) is that of brokers whose log lines have none. `keep_raw` keeps every line in
    `audit_raw`. `watermark_days`: an event that is older than the newest one committed before by more than
    that is quarantined as `too_late`; None takes all. Without `with_rollup` the days of the events are only
    marked, and the next run with a roll-up or `refresh_rollup` rolls them up: for streams with short batches.
    `look_around_ms`: stored events are compared from this long before the earliest new one to this long after
    the latest. A copy has the same time; a forgery, with the same id and another content, may have another.
    `retention`: events of days that it drops are too late, too; `drop_expired` drops them.
    """

    time_zone: str = "UTC"
    keep_raw: bool = False
    watermark_days: int | None = None
    with_rollup: bool = True
    look_around_ms: int = 3_600_000
    retention: Retention | None = None


def ingest(
    spark: SparkSession,
    lines: DataFrame,
    tables: Tables,
    run_id: str,
    *,
    options: IngestOptions = IngestOptions(),
    inputs: Sequence[InputFile] = (),
    files: int = 0,
    damaged_files: int = 0,
    counts_of_files: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    progress: Progress = silent,
    clock: Clock | None = None,
) -> RunSummary:
    """Ingest lines (INPUT_LINES_SCHEMA or LINES_SCHEMA) into the tables, all or none, once for each `run_id`.

    With a committed `run_id` this is a no-op that returns the former summary; a stream's batch has the id
    `NAME@NUMBER`, with growing numbers, and a number at or below the last one is a no-op. `lines` is read
    once. `inputs` are the files that are recorded as read. The summary takes `warnings`, and
    `counts_of_files` by their names.

    Raises `LinesLostError`, `TablesError`, `TablesInUseError`, `SchemaConflictError`, and what reading
    `lines` raises; after an error before the commit, the tables are unchanged.
    """
    clock = clock or SystemClock()
    with tables.transaction() as change:
        former = change.state.summary_of(run_id)
        if former is not None:
            return RunSummary.from_mapping(former, run_id=run_id, is_repeat=True)
        run = _Run(spark, tables, change, options, progress, clock)
        counts = run.write(lines)
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
            **(counts_of_files or {}),
            days=counts.days,
            warnings=limited(warnings),
            seconds=(clock.monotonic_ms() - run.started_ms) / 1000,
        )
        progress(STEPS[5])
        change.commit(
            run_id,
            RUN,
            run.changes,
            stale_days=run.stale_days,
            inputs=tuple(inputs),
            summary=asdict(summary),
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

    def write(self, lines: DataFrame) -> _Counts:
        """Stage all tables; raise `LinesLostError` if they lack a line."""
        self._progress(STEPS[0])
        staged = self._staged_lines(lines)
        self._progress(STEPS[1])
        verdicts = self._verdicts(staged)
        duplicates, newest = (
            self._write_long(staged) if verdicts is None else self._write_short(staged, verdicts)
        )
        outcomes = {
            EVENT: self._change.rows_added(AUDIT_EVENTS),
            SECURITY_EVENTS: self._change.rows_added(SECURITY_EVENTS),
            QUARANTINED: self._change.rows_added(QUARANTINE),
            DUPLICATE: duplicates,
        }
        check_no_line_lost(staged.lines, outcomes)
        self._progress(STEPS[4])
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
            days=days,
            newest_time_ms=newest,
        )

    def _staged_lines(self, lines: DataFrame) -> StagedLines:
        if self._options.keep_raw:
            place = self._change.place(AUDIT_RAW)
            raw = write_rows(lines, place, self._change.mark, stored_schema(AUDIT_RAW), day=self._today)
            self._change.add(AUDIT_RAW, raw)
            lines = read_parquet(self._spark, place, [file.name for file in raw], lines.schema)
            self._append(AUDIT_RAW)
        folder = self._change.stage(_SORTED) / "identified"
        return stage_lines(lines, folder, time_zone=self._options.time_zone)

    def _verdicts(self, staged: StagedLines) -> list[DedupeOutcome] | None:
        """Return the verdicts for a run of few lines; None for too many lines or rows."""
        if staged.rows > SHORT_LINES_MAX or staged.key_bytes > SHORT_KEY_BYTES_MAX:
            return None
        days = staged.days()
        tables = (AUDIT_EVENTS, SECURITY_EVENTS) if days is not None else ()
        events = [file for table in tables for file in self._tables.files(table, *(days or ()))]
        lines = self._tables.files(QUARANTINE)
        stored = StoredFiles.of(events, lines, staged.around(self._options.look_around_ms))
        return None if stored is None else deduplicate_short(staged, stored, self._oldest_time_ms())

    def _write_short(self, staged: StagedLines, verdicts: Sequence[DedupeOutcome]) -> tuple[int, int | None]:
        """Stage events and quarantined lines; return the number of duplicates and the newest event's time."""
        self._progress(STEPS[2])
        tables = (AUDIT_EVENTS, SECURITY_EVENTS, QUARANTINE)
        events, security, quarantine = map(self._change.place, tables)
        places = Places(events, security, quarantine, self._today, self._change.mark)
        if staged.files:
            are_few = staged.rows <= FEW_LINES and staged.total_bytes <= FEW_BYTES
            written = write_short(self._spark, staged.files, verdicts, places, are_few=are_few)
            self._change.add(AUDIT_EVENTS, written.events)
            self._change.add(SECURITY_EVENTS, written.security)
            self._change.add(QUARANTINE, written.quarantine)
        self._progress(STEPS[3])
        return sum(each.outcome == DUPLICATE for each in verdicts), self._newest_staged_ms()

    def _newest_staged_ms(self) -> int | None:
        files = [*self._change.added(AUDIT_EVENTS), *self._change.added(SECURITY_EVENTS)]
        return max((file.last_time_ms for file in files if file.last_time_ms is not None), default=None)

    def _write_long(self, staged: StagedLines) -> tuple[int, int | None]:
        """Do the same as `_write_short`, with Spark joins."""
        found = sort_out(self._spark, staged, self._change.stage(_SORTED))
        judged, may_quarantine = self._judged(staged, found)
        self._progress(STEPS[2])
        outcome_counts = self._write_events(judged, staged)
        self._progress(STEPS[3])
        if may_quarantine:
            rows = judged.transform(classify.quarantine).coalesce(1)
            place, schema = self._change.place(QUARANTINE), stored_schema(QUARANTINE)
            files = write_rows(rows, place, self._change.mark, schema, day=self._today)
            self._change.add(QUARANTINE, files)
        return outcome_counts.get(DUPLICATE, 0), self._newest_staged_ms()

    def _write_events(self, judged: DataFrame, staged: StagedLines) -> dict[str, int]:
        """Stage decisions and security events; return how many lines have each outcome."""
        observed = Observation("lines judged")
        is_event = sql.col("outcome") == EVENT
        watched = judged.observe(observed, sql.count_if(sql.col("outcome") == DUPLICATE).alias(DUPLICATE))
        is_decision = sql.col("event_type").isNull()
        if staged.security:
            security = judged.filter(is_event & ~is_decision).select(*SCHEMAS[SECURITY_EVENTS].fieldNames())
            schema = stored_schema(SECURITY_EVENTS)
            are_few = staged.security <= FEW_LINES
            stage_by_day(security, self._change, SECURITY_EVENTS, schema, are_few=are_few)
        events = watched.filter(is_event & is_decision).select(*SCHEMAS[AUDIT_EVENTS].fieldNames())
        are_few = staged.rows <= FEW_LINES
        schema, only_day = stored_schema(AUDIT_EVENTS), staged.only_day()
        stage_by_day(events, self._change, AUDIT_EVENTS, schema, are_few=are_few, only_day=only_day)
        if not self._change.rows_added(AUDIT_EVENTS):  # Spark skips an empty plan, with its observation
            rows = classify.tally(judged).collect()
            return {row["outcome"]: int(row["line_count"]) for row in rows}
        return {DUPLICATE: int(observed.get[DUPLICATE])}

    def _judged(self, staged: StagedLines, found: SortedLines) -> tuple[DataFrame, bool]:
        """Return the lines with their final outcomes, and whether any may be quarantined."""
        known = conflicting = None
        classified = found.rows
        tables = (AUDIT_EVENTS, SECURITY_EVENTS)
        stored_days = {day for table in tables for day in self._tables.days(table) if staged.may_be_of(day)}
        if stored_days:
            between = sql.col("time_ms").between(*staged.around(self._options.look_around_ms))
            decisions, security = (self._tables.read(self._spark, table) for table in tables)
            stored = decisions.unionByName(security, allowMissingColumns=True)
            events = stored.filter(is_of(stored_days) & between)
            place = self._change.stage(_KNOWN)
            same, rows = kept(self._spark, known_events(classified, events), place)
            if rows:
                known = same
                conflicting = conflicting_events(classified, events, known)
        oldest = self._oldest_time_ms()
        may_quarantine = found.may_quarantine or conflicting is not None or oldest is not None
        known_lines = self._tables.read(self._spark, QUARANTINE) if may_quarantine else None
        judged = judge(
            classified,
            known=known,
            conflicting=conflicting,
            known_lines=known_lines,
            oldest_time_ms=oldest,
        )
        return judged, may_quarantine

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
            found = rolled_up(self._spark, self._tables, new, wanted, rebuilt)
            schema, replaces = stored_schema(AUDIT_ROLLUP), tuple(sorted(wanted))
            stage_by_day(found.rows, self._change, AUDIT_ROLLUP, schema, is_by_day=found.is_by_day)
            self.changes.append(Write(table=AUDIT_ROLLUP, schema=schema, replaces=replaces))
            self.stale_days = frozenset()
        return tuple(sorted(days))
