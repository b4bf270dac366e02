"""Conflicts: events that share an id but not their content, as a run reports them."""

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow.compute as pc
from pyarrow import parquet

from kustos.pipeline.places import Place, source_of
from kustos.pipeline.tables.deduplication.of_runs import Outcomes

EXAMPLES_MAX: Final = 3
"""Conflicts that a warning names; the column `conflicting_file` has all of them."""

ID_CHARACTERS_MAX: Final = 64
"""A longer id is cut: ids of kustos have 36 characters, those of an attacker up to a line."""


def conflict_warnings(outcomes: Outcomes, files: Iterable[Place]) -> list[str]:
    """Return the warning about conflicts among the events of a run, if any; `files` hold these events."""
    count = outcomes.conflicts()
    if not count:
        return []
    examples: list[str] = []
    for file in files:
        rows = parquet.read_table(
            source_of(file),
            columns=["event_id", "source_file", "conflicting_file"],
            filters=pc.field("conflicting_file").is_valid(),
            partitioning=None,
        )
        examples += [conflict_text(**row) for row in rows.slice(0, EXAMPLES_MAX - len(examples)).to_pylist()]
        if len(examples) == EXAMPLES_MAX:
            break
    return [conflict_warning(count, examples)]


def conflict_text(event_id: str, source_file: str, conflicting_file: str) -> str:
    """Return one conflict as an example of a warning."""
    return f"`{event_id[:ID_CHARACTERS_MAX]}` in `{source_file}` and in `{conflicting_file}`"


def conflict_warning(count: int, examples: Sequence[str]) -> str:
    """Return the warning about this many events, with examples of `conflict_text`."""
    what = "1 event has" if count == 1 else f"{count:,} events have"
    return (
        f"{what} the id of another event with other content, one of the two is forged or faulty and both "
        f"count: {', '.join(examples)}{', ...' if count > len(examples) else ''}; the column "
        "`conflicting_file` of `audit_events` and `security_events` marks them"
    )
