"""Findings against labels: who is found, who is missed, what is found for nothing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from testkit.months.values import KINDS, Kind, Label

DAYS_LATE = 1
"""A finding may be of the day after: a label that ends at midnight has effects of the next morning."""


class Found(NamedTuple):
    """What matters of a finding here; `day` counts from the start of the history."""

    kind: str
    principal: str
    day: int


@dataclass(slots=True)
class Tally:
    """Labels found and missed, and findings of no label, by kind."""

    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Take in the tally of another month."""
        self.found += other.found
        self.missed += other.missed
        self.wrong += other.wrong

    def precision(self, kind: Kind | None = None) -> float:
        """Return how many of the findings were right (a label counts once); 1 if there were none."""
        found, wrong = self._of(self.found, kind), self._of(self.wrong, kind)
        return found / (found + wrong) if found + wrong else 1.0

    def recall(self, kind: Kind | None = None) -> float:
        """Return how many of the labels were found; 1 if there were none."""
        found, missed = self._of(self.found, kind), self._of(self.missed, kind)
        return found / (found + missed) if found + missed else 1.0

    def _of(self, counter: Counter[str], kind: Kind | None) -> int:
        return counter[kind] if kind else counter.total()

    def table(self) -> str:
        """Return a table by kind with the sums below it, as Markdown."""
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
    """Return whether a finding is one of this label."""
    return (
        label.kind == found.kind
        and label.principal == found.principal
        and label.first_day <= found.day <= label.last_day + DAYS_LATE
    )


def tally(labels: Iterable[Label], findings: Iterable[Found]) -> Tally:
    """Return the tally of a month; findings of one label count once, those of none each."""
    result, labels, findings = Tally(), list(labels), set(findings)
    for label in labels:
        is_found = any(matches(label, found) for found in findings)
        (result.found if is_found else result.missed)[label.kind] += 1
    for found in findings:
        if not any(matches(label, found) for label in labels):
            result.wrong[found.kind] += 1
    return result
