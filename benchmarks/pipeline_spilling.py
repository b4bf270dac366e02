"""Jobs whose states do not fit: a cluster of two executors of 1 GB, and the same answer as without a limit.

A standalone master and two workers are started here, and jobs of the pipeline handed over by spark-submit:

- take-in: lines of which each comes three times, by a run into tables
- rollup: the roll-up of events, nearly each a use of its own, by column in Python workers
- replay-with-rules: a replay of that roll-up by column, with the rules that change
- replay: the same, of what is lost and gained
- review (spills): the access review and the ACLs that nobody needs, over rows of Spark

Each must give the answer that DuckDB gives on the same files (with the same Python index where ACLs decide);
the review and the replay without rules, that of a Spark of their own with 8 GB. No answer may be empty. What
must spill does so by Spark's own count. Figures are seconds by the clock and (`-cores`) of processor time of
all processes, their start included (theirs: of who gave the other answer), bytes spilled (theirs: what one
executor has for that), and the memory that an executor had at most with all its Python workers, as the kernel
counts it (theirs: what is stated for it).

    python -m benchmarks.pipeline_spilling [word ...]     cases whose names hold a word; without one, all
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.replaying.events import CACHE
from benchmarks.replaying.processor import tree_seconds
from benchmarks.spilling import answers
from benchmarks.spilling.data import distinct_events, repeated_lines
from benchmarks.spilling.running import Spent, cluster, execution_bytes, run_alone

EVENTS: Final = 400_000 if QUICK else 4_000_000
LINES: Final = 40_000 if QUICK else 300_000
COPIES: Final = 3
ACLS: Final = 10_000 if QUICK else 100_000

STATED_BYTES: Final = 2 << 30
"""What docs/explanation/pipeline-scale.md says that an executor of 1 GB and one core needs in all."""

SPILLED_FLOOR: Final = 0.1
"""Of what one executor has for states, so much at least must have been spilled where something must be."""

ROLLUP: Final = "rollup"
"""The case whose tables the replays and the review read."""

MEGABYTE: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job: what it reads (`source` None: the roll-up that another case wrote), and who else answers."""

    name: str
    size: int
    written: Callable[[Path], Any]
    source: Path | None = None
    other: Callable[[], Any] | None = None
    must_spill: bool


@dataclass(frozen=True, slots=True)
class Other:
    """What others answer, and the seconds that they take."""

    found: Any
    seconds: float
    core_seconds: float


def cases(events: Path, lines: Path) -> list[Case]:
    """Return the jobs in their order; without an `other` a job is run once more, alone."""
    return [
        Case(
            name="take-in",
            size=LINES * COPIES,
            source=lines,
            written=answers.events_written,
            other=lambda: answers.events_of_duckdb(lines),
            must_spill=False,
        ),
        Case(
            name=ROLLUP,
            size=EVENTS,
            source=events,
            written=answers.rollup_written,
            other=lambda: answers.rollup_of_duckdb(events),
            must_spill=False,
        ),
        Case(
            name="replay-with-rules",
            size=EVENTS,
            written=answers.flips_written,
            other=lambda: answers.flips_of_duckdb(events, ACLS),
            must_spill=False,
        ),
        Case(name="replay", size=EVENTS, written=answers.flips_written, must_spill=False),
        Case(name="review", size=EVENTS, written=answers.review_written, must_spill=True),
    ]


def compared(case: Case, spent: Spent, other: Other) -> list[Figure]:
    """Return the figures of a case."""
    name = f"spilling-{case.name}"
    return [
        Figure(name=name, unit="s", ours=spent.seconds, theirs=other.seconds, size=case.size),
        Figure(
            name=f"{name}-cores",
            unit="s of a core",
            ours=spent.core_seconds,
            theirs=other.core_seconds,
            size=case.size,
        ),
        Figure(
            name=f"{name}-spilled",
            unit="MB",
            ours=spent.spilled / MEGABYTE,
            theirs=execution_bytes() / MEGABYTE,
            size=case.size,
            higher_is_better=True,
            floor=SPILLED_FLOOR if case.must_spill else None,
        ),
        Figure(
            name=f"{name}-memory",
            unit="MB",
            ours=spent.resident.both / MEGABYTE,
            theirs=STATED_BYTES / MEGABYTE,
            size=case.size,
            floor=1.0,
        ),
    ]


def other_answer(case: Case, source: Path, target: Path) -> Other:
    """Have the others answer: DuckDB, or the same job alone."""
    start, start_of_cores = time.monotonic(), tree_seconds()
    if case.other is not None:
        found = case.other()
    else:
        run_alone(case.name, source, target, ACLS)
        found = case.written(target)
    return Other(found, time.monotonic() - start, tree_seconds() - start_of_cores)


def told(spent: Spent) -> str:
    """Return what a job took as people read it."""
    resident = spent.resident
    amounts = {
        "spilled": spent.spilled,
        "of that on disk": spent.spilled_on_disk,
        "peak of execution memory": spent.execution_memory,
        "heap": spent.jvm_heap,
        "JVM": resident.jvm,
        "Python": resident.python,
        "both": resident.both,
    }
    said = ", ".join(f"{name} {amount / MEGABYTE:,.0f}" for name, amount in amounts.items())
    return f"{spent.seconds:.0f} s, {spent.core_seconds:.0f} s of a core; MB: {said}"


def main() -> None:
    words = sys.argv[1:]
    wanted = cases(distinct_events(EVENTS, ACLS), repeated_lines(LINES, COPIES))
    chosen = [case for case in wanted if not words or any(word in case.name for word in words)]
    if not chosen:
        raise SystemExit(f"no case is named so, there are: {', '.join(case.name for case in wanted)}")
    place = Path(tempfile.mkdtemp(prefix="spilling-answers-", dir=CACHE))
    figures: list[Figure] = []
    try:
        with cluster() as lent:
            rollup = place / ROLLUP
            is_made = any(case.name == ROLLUP for case in chosen)
            if not is_made and any(case.source is None for case in chosen):
                lent.run(ROLLUP, distinct_events(EVENTS, ACLS), rollup, ACLS)
            for case in chosen:
                source = case.source or rollup
                spent = lent.run(case.name, source, place / case.name, ACLS)
                progress(f"{case.name}, {case.size:,} rows: {told(spent)}")
                found = case.written(place / case.name)
                other = other_answer(case, source, place / f"{case.name}-alone")
                if found != other.found:
                    raise SystemExit(f"{case.name}: ours finds {found}, theirs {other.found}")
                made = compared(case, spent, other)
                emit(made)
                for each in made:
                    progress(each.sentence())
                figures += made
    finally:
        shutil.rmtree(place, ignore_errors=True)
    missed = [each.name for each in figures if not each.holds]
    progress(f"{len(figures)} figures, {len(missed)} below their floor: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
