"""Outcomes of lines that may be copies, conflicts, late or no events: in plain Python, for few lines.

`dedupe` and `dedupe_known` give the same outcomes for whole frames; a property test compares the two. A
caller with many lines passes only those for which another outcome than "event" is possible: the `Suspect`s.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from kustos.pipeline.stages.dedupe import CONFLICT, DUPLICATE, EVENT, QUARANTINED
from kustos.pipeline.stages.dedupe_known import TOO_LATE
from kustos.pipeline.stages.generated_ids import numbered


class Suspect(NamedTuple):
    """A line by its file and row, with its columns of `IDENTIFIED_SCHEMA`."""

    file: int
    row: int
    event_id: str | None
    line_key: str | None
    brings_id: bool
    is_counted: bool
    source_file: str
    day: date | None
    time_ms: int | None
    reason: str | None

    @property
    def key(self) -> str:
        """Its key; a forged one may be another line's."""
        return (self.line_key or "") if self.event_id is None else self.event_id


class DedupeOutcome(NamedTuple):
    """The outcome of a line. `occurrence` numbers equal lines of a log; `line_id` is for quarantine only."""

    file: int
    row: int
    outcome: str
    occurrence: int = 1
    reason: str | None = None
    line_id: str | None = None


class Texts(Protocol):
    """Looks up fields that are seldom needed."""

    def content(self, suspect: Suspect) -> Any:
        """Return all fields of the event, for comparison."""

    def order(self, suspect: Suspect) -> tuple[bytes, str, int]:
        """Return the sort key of copies in one file: line, log, and position there if known."""

    def line_id(self, suspect: Suspect) -> str:
        """Return the line id of a line with an event id of its own."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored rows to compare with: events by day and id, and ids of quarantined lines.

    An id may have more than one stored event, if `look_around_ms` was too short to find the first. An event
    before `oldest_time_ms` is too late; None takes all.
    """

    events: Mapping[tuple[date, str], Sequence[Any]]
    line_ids: Container[str]
    oldest_time_ms: int | None = None


def verdicts(suspects: Iterable[Suspect], texts: Texts, stored: Stored) -> Iterator[DedupeOutcome]:
    """Yield the outcome of each line.

    `suspects` must include all lines that share a key.
    """
    in_order = sorted(suspects, key=lambda one: (one.key, one.source_file, one.file, one.row))
    for _, same in groupby(in_order, key=attrgetter("key")):
        for copies in _copies(list(same)):
            for suspect, occurrence, outcome, reason in _resolved(copies, texts):
                yield _beside(suspect, occurrence, outcome, reason, texts, stored)


Copy = tuple[Suspect, int]


def _copies(same: Sequence[Suspect]) -> Iterator[list[Copy]]:
    """Yield groups of copies among lines of one key, with the number among equal lines of a file."""
    numbers: Counter[str] = Counter()
    found: dict[tuple[date | None, int], list[Copy]] = {}
    for suspect in same:
        numbers[suspect.source_file] += suspect.is_counted
        occurrence = numbers[suspect.source_file] if suspect.is_counted else 1
        found.setdefault((suspect.day, occurrence), []).append((suspect, occurrence))
    yield from found.values()


def _resolved(copies: Sequence[Copy], texts: Texts) -> Iterator[tuple[Suspect, int, str, str | None]]:
    """Yield each of the copies with its outcome in this run: the first is the line, the others duplicates."""
    contents: list[Any] = []
    if len(copies) > 1 and any(suspect.brings_id for suspect, _ in copies):
        # the order matters: if the contents differ, only the first one is kept
        copies = sorted(copies, key=lambda one: (one[0].source_file, texts.order(one[0])))
        contents = [texts.content(suspect) for suspect, _ in copies]
    for number, (suspect, occurrence) in enumerate(copies):
        if number == 0:
            outcome = EVENT if suspect.reason is None else QUARANTINED
            yield suspect, occurrence, outcome, suspect.reason
        elif not contents or contents[number] == contents[0]:
            yield suspect, occurrence, DUPLICATE, suspect.reason
        else:
            yield suspect, occurrence, QUARANTINED, suspect.reason or CONFLICT


def _beside(
    suspect: Suspect, occurrence: int, outcome: str, reason: str | None, texts: Texts, stored: Stored
) -> DedupeOutcome:
    """Return the verdict on a line with this outcome in its run, compared with the stored rows."""
    line_id = None
    if outcome == EVENT:
        outcome, reason = _compared_with_stored(suspect, occurrence, texts, stored)
    if outcome == QUARANTINED:
        line_id = texts.line_id(suspect) if suspect.brings_id else numbered(suspect.line_key, occurrence)
        if line_id in stored.line_ids:
            outcome = DUPLICATE
    return DedupeOutcome(suspect.file, suspect.row, outcome, occurrence, reason, line_id)


def _compared_with_stored(
    suspect: Suspect, occurrence: int, texts: Texts, stored: Stored
) -> tuple[str, str | None]:
    """Return the outcome of an event, and the reason if it is quarantined."""
    event_id = numbered(suspect.line_key, occurrence) if suspect.event_id is None else suspect.event_id
    same = () if suspect.day is None else stored.events.get((suspect.day, event_id), ())
    if same:
        if suspect.brings_id and any(texts.content(suspect) != each for each in same):
            return QUARANTINED, CONFLICT
        return DUPLICATE, None
    oldest = stored.oldest_time_ms
    if oldest is not None and suspect.time_ms is not None and suspect.time_ms < oldest:
        return QUARANTINED, TOO_LATE
    return EVENT, None
