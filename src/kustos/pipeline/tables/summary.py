"""The summary of a run, in numbers of lines; `runs` keeps it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Self

from kustos.pipeline.errors import LinesLostError
from kustos.pipeline.tables.upkeep import Dropped

WARNINGS_MAX: Final = 20
"""Warnings kept of a run; a folder in disorder has one for each of its files."""


def limited(warnings: Sequence[str]) -> tuple[str, ...]:
    """Return the first of these warnings, and how many more there are."""
    if len(warnings) <= WARNINGS_MAX:
        return tuple(warnings)
    return (*warnings[: WARNINGS_MAX - 1], f"and {len(warnings) - WARNINGS_MAX + 1} more warnings like these")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run read and wrote; `lines == events + security_events + quarantined + duplicates`.

    `files` were found, `new_files` of them read, `damaged_files` quarantined whole (each counts as a line).
    `too_late` of the quarantined were events older than the tables take. `conflicts` of the events have the
    id of another event with other content: of n such events n - 1 count. `half_lines` were not read: they
    are last lines of files without their end, which may be half written. `overlapping_files` hold lines of
    other files and were read as one log with them; `refused_files` hold lines of several known logs and were
    not read. `days` (ISO dates) got events.
    The retention dropped `dropped_*` afterwards: days of events and their events, days of the roll-up, lines
    quarantined or kept raw. `is_repeat`: the run had been committed before, and this call did nothing.
    `warnings` (at most WARNINGS_MAX) say what it left out, and what the run chose where it could not know.
    """

    run_id: str
    files: int = 0
    new_files: int = 0
    damaged_files: int = 0
    lines: int = 0
    events: int = 0
    security_events: int = 0
    quarantined: int = 0
    duplicates: int = 0
    too_late: int = 0
    conflicts: int = 0
    half_lines: int = 0
    overlapping_files: int = 0
    refused_files: int = 0
    days: tuple[str, ...] = ()
    seconds: float = 0.0
    is_repeat: bool = False
    warnings: tuple[str, ...] = ()
    dropped_days: int = 0
    dropped_events: int = 0
    dropped_rollup_days: int = 0
    dropped_lines: int = 0

    def to_json(self) -> str:
        """Return one JSON object."""
        return json.dumps(asdict(self), indent=2)

    def with_dropped(self, dropped: Dropped) -> Self:
        """Return the summary with the rows that the retention dropped."""
        return replace(
            self,
            dropped_days=len(dropped.event_days),
            dropped_events=dropped.events,
            dropped_rollup_days=len(dropped.rollup_days),
            dropped_lines=dropped.lines,
        )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], **changes: Any) -> Self:
        """Return the summary from `runs`, with these fields changed."""
        known = {field.name for field in fields(cls)}
        lists = {name: tuple(values.get(name, ())) for name in ("days", "warnings")}
        merged = {**values, **lists, **changes}
        return cls(**{name: value for name, value in merged.items() if name in known})


def check_no_line_lost(lines: int, outcomes: Mapping[str, int]) -> None:
    """Raise `LinesLostError` unless the outcomes add up to the lines read."""
    accounted = sum(outcomes.values())
    if lines != accounted:
        detail = ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items()))
        raise LinesLostError(
            f"{lines} lines were read but {accounted} accounted for ({detail}), nothing was published"
        )
