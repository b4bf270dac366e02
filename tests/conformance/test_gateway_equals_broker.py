"""kustos before a broker answers and audits as the same broker does that authorizes itself.

The same requests go to both, in every version that both have, for users with all kinds of rights; what
must differ (ids, addresses, times) gets common names first, and lists count as sets. What differs on
purpose is a table with reasons: `equality/differences.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kustos.protocol.table import TABLE
from kustos.wire.api_keys import api_name
from tests.conformance.equality import audit, cases_admin, cases_groups, cases_topics, normal
from tests.conformance.equality.differences import ANSWER, AUDIT, DIFFERENCES, excused
from tests.conformance.equality.stories import Run, Story, unknown_fields
from tests.conformance.equality.theatre import Asked, Theatre, theatre

STORIES: tuple[Story, ...] = (
    *cases_topics.READING,
    *cases_groups.ASKING,
    *cases_topics.PRODUCE_STORIES,
    *cases_groups.WITH_OFFSETS,
    *cases_groups.JOINING,
    *cases_admin.LOOKING,
    *cases_topics.AUTO_CREATION,
    *cases_admin.CHANGING,
)
"""In the order in which they are played: first those that change nothing."""

SHOWN = 12
"""How many differences of one story are printed; more are more of the same."""


@dataclass(slots=True)
class Played:
    """Everything that was asked, by story."""

    asked: dict[int, list[tuple[Run, list[Asked]]]]
    used: Counter[str]

    def differences(self, number: int) -> Iterator[str]:
        """Yield what differs in a story without being excused."""
        for run, steps in self.asked[number]:
            for index, asked in enumerate(steps):
                for line in self.of_answer(run, asked) + self.of_audit(run, asked):
                    yield f"{run.name}, request {index}: {line}"

    def of_answer(self, run: Run, asked: Asked) -> list[str]:
        """Return where the answers differ."""
        reference, kustos = normal.canonical(asked.reference), normal.canonical(asked.kustos)
        found = normal.differences(reference, kustos)
        for each in excused(ANSWER, run, asked) if found else ():
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
        for each in excused(AUDIT, run, asked) if found else ():
            self.used[each.name + AUDIT] += 1
            return []
        return found


def play_all(stage: Theatre) -> dict[int, list[tuple[Run, list[Asked]]]]:
    """Return what all stories came to."""
    return {number: [(run, stage.play(run)) for run in story.runs()] for number, story in enumerate(STORIES)}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Play all stories to both sides, once, and collect what kustos wrote to its audit log."""
    with theatre(tmp_path_factory.mktemp("equality"), auto_create_topics=True) as (stage, node):
        asked = play_all(stage)
        node.stop()
        events: dict[str, Counter[audit.Audited]] = defaultdict(Counter)
        for event in node.audit_events():
            events[event["client_id"]][audit.Audited.of_event(event)] += 1
    for runs in asked.values():
        for _, steps in runs:
            for each in steps:
                each.kustos_audit = events[each.client_id]
    return Played(asked, Counter())


def name_of(number: int) -> str:
    """Return what a story's test is called."""
    story = STORIES[number]
    return f"{api_name(story.api)}: {story.title}".replace("'", "")


@pytest.mark.parametrize("number", range(len(STORIES)), ids=name_of)
def test_kustos_answers_and_audits_as_the_broker_does(played: Played, number: int) -> None:
    found = list(played.differences(number))
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:SHOWN])


def test_every_difference_still_exists(played: Played) -> None:
    for number in range(len(STORIES)):
        list(played.differences(number))
    missing = {each.name + each.of for each in DIFFERENCES} - played.used.keys()
    assert not missing


def test_every_api_has_a_story() -> None:
    assert {int(story.api) for story in STORIES} >= TABLE.keys()


def test_no_story_has_a_field_that_no_version_has() -> None:
    slips = {story.title: unknown_fields(story) for story in STORIES}
    assert not {title: names for title, names in slips.items() if names}


def test_how_much_was_compared(played: Played, pytestconfig: pytest.Config) -> None:
    compared: Counter[str] = Counter()
    for runs in played.asked.values():
        for _, steps in runs:
            compared.update(api_name(each.step.api) for each in steps)
    writer = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    if writer is not None:
        writer.write_line("")
        writer.write_line(f"{compared.total()} requests were answered by both sides:")
        for name, count in sorted(compared.items()):
            writer.write_line(f"  {name:32} {count:6}")
    assert compared.keys() >= {api_name(key) for key in TABLE}
