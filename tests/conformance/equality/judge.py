"""What two sides made of the stories, compared: answers, and what was written to the audit logs."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from testkit.equality.stories import Run, Story
from testkit.guarded.workers import figure
from testkit.kustos import KustosNode
from tests.conformance.equality import audit, normal
from tests.conformance.equality.both_sides import Asked, BothSides
from tests.conformance.equality.differences import ANSWER, AUDIT, DIFFERENCES, Difference, excused

REPEATED = "kustos_repeated_requests_total"
SHOWN = 12
"""How many differences of one story are printed; more are more of the same."""


@dataclass(slots=True)
class Played:
    """Everything that was asked, by story."""

    asked: dict[int, list[tuple[Run, list[Asked]]]]
    used: Counter[str]
    rules: normal.Rules
    table: tuple[Difference, ...] = DIFFERENCES
    found: dict[int, list[str]] = field(default_factory=dict)
    repeated: float = 0.0
    """The requests that kustos took for repetitions of earlier ones."""

    def differences(self, number: int) -> list[str]:
        """Return what differs in a story without being excused."""
        if number not in self.found:
            self.found[number] = list(self._differences(number))
        return self.found[number]

    def _differences(self, number: int) -> Iterator[str]:
        for run, steps in self.asked[number]:
            for index, asked in enumerate(steps):
                for line in self.of_answer(run, asked) + self.of_audit(run, asked):
                    yield f"{run.name}, request {index}: {line}"

    def of_answer(self, run: Run, asked: Asked) -> list[str]:
        """Return where the answers differ."""
        if asked.reference == asked.kustos:  # nearly all, at a fraction of the work
            return []
        reference, kustos = normal.canonical(asked.reference), normal.canonical(asked.kustos)
        found = normal.differences(reference, kustos)
        for each in excused(self.table, ANSWER, run, asked) if found else ():
            self.used[each.name + ANSWER] += 1
            if each.expected is None:
                return []
            found = normal.differences(normal.canonical(each.expected(asked.reference)), kustos)
        return found

    def of_audit(self, run: Run, asked: Asked) -> list[str]:
        """Return where the audit logs differ."""
        missing = asked.reference_audit - asked.kustos_audit
        extra = asked.kustos_audit - asked.reference_audit
        found = [f"only Kafka logs {tuple(item)} x{count}" for item, count in missing.items()]
        found += [f"only kustos logs {tuple(item)} x{count}" for item, count in extra.items()]
        for each in excused(self.table, AUDIT, run, asked) if found else ():
            self.used[each.name + AUDIT] += 1
            return []
        return found


def play_all(
    stage: BothSides,
    node: KustosNode,
    stories: Sequence[Story],
    table: tuple[Difference, ...] = DIFFERENCES,
) -> Played:
    """Play all stories to both sides, and stop kustos, so that its audit log is whole."""
    asked = {number: [(run, stage.play(run)) for run in story.runs()] for number, story in enumerate(stories)}
    repeated = figure(node, REPEATED)
    node.stop()
    events: dict[str, Counter[audit.Audited]] = defaultdict(Counter)
    for event in node.audit_events():
        events[event["client_id"]][audit.Audited.of_event(event)] += 1
    for runs in asked.values():
        for _, steps in runs:
            for each in steps:
                each.kustos_audit = events[each.client_id]
    return Played(asked, Counter(), stage.rules, table, repeated=repeated)
