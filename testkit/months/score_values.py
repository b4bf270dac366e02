"""Scores findings against labels: found, missed, and false ones."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from testkit.months.values import KINDS, Kind, Label

DAYS_LATE = 1
"""A finding may be one day late: a label that ends at midnight has effects the next morning."""


class Found(NamedTuple):
    """The fields of a finding that scoring needs; `day` counts from the start of the history."""

    kind: str
    principal: str
    day: int


@dataclass(slots=True)
class Tally:
    """Counts of labels found and missed, and of findings without a label, by kind."""

    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add the tally of another month."""
        self.found += other.found
        self.missed += other.missed
        self.wrong += other.wrong

    def precision(self, kind: Kind | None = None) -> float:
        """Return the share of right findings (a label counts once); 1 if there are none."""
        found, wrong = self._of(self.found, kind), self._of(self.wrong, kind)
        return found / (found + wrong) if found + wrong else 1.0

    def recall(self, kind: Kind | None = None) -> float:
        """Return the share of labels found; 1 if there are none."""
        found, missed = self._of(self.found, kind), self._of(self.missed, kind)
        return found / (found + missed) if found + missed else 1.0

    def _of(self, counter: Counter[str], kind: Kind | None) -> int:
        return counter[kind] if kind else counter.total()

    def table(self) -> str:
        """Return a table by kind with totals, as Markdown."""
        lines = ["| kind | labels | found | false | precision | recall |", "|---|---|---|---|---|---|"]
        for kind in (*KINDS, None):
            found, missed = self._of(self.found, kind), self._of(self.missed, kind)
            name = f"`{kind}`" if kind else "**all**"
            lines.append(
                f"| {name} | {found + missed} | {found} | {self._of(self.wrong, kind)} "
                f"| {self.precision(kind):.2f} | {self.recall(kind):.2f} |"
            )
        return "\n".join(lines)


def matches(label: Label, found: Found) -> bool:
    """Return whether a finding matches this label."""
    return (
        label.kind == found.kind
        and label.principal == found.principal
        and label.first_day <= found.day <= label.last_day + DAYS_LATE
    )


def tally(labels: Iterable[Label], findings: Iterable[Found]) -> Tally:
    """Return the tally of a month; findings of one label count once, each one without a label counts."""
    result, labels, findings = Tally(), list(labels), set(findings)
    for label in labels:
        is_found = any(matches(label, found) for found in findings)
        (result.found if is_found else result.missed)[label.kind] += 1
    for found in findings:
        if not any(matches(label, found) for label in labels):
            result.wrong[found.kind] += 1
    return result
