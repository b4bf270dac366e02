"""kustos before a broker answers and audits as the same broker does that authorizes itself.

The same requests go to both, in every version that both have, for users with all kinds of rights; what
must differ (ids, addresses, times) gets common names first, and lists count as sets. What differs on
purpose is a table with reasons: `equality/differences.py`.
"""

from collections import Counter

import pytest

from kustos.protocol.table import TABLE
from kustos.wire.api_keys import api_name
from testkit.equality.stories import Story, unknown_fields
from testkit.paths import ROOT
from tests.conformance.equality import (
    cases_admin,
    cases_daily,
    cases_features,
    cases_groups,
    cases_settings,
    cases_shares,
    cases_streams,
    cases_telemetry,
    cases_tokens,
    cases_topics,
    cases_transactions,
    known_mistakes,
    normal,
)
from tests.conformance.equality.both_sides import both_sides
from tests.conformance.equality.differences import DIFFERENCES
from tests.conformance.equality.judge import SHOWN, Played, play_all

STORIES: tuple[Story, ...] = (
    *cases_topics.READING,
    *known_mistakes.STORIES,
    *cases_groups.ASKING,
    *cases_topics.PRODUCE_STORIES,
    *cases_topics.WRITTEN,
    *cases_daily.LEADER_EPOCHS,
    *cases_transactions.STORIES,
    *cases_shares.STORIES,
    *cases_streams.STORIES,
    *cases_topics.MALFORMED_STORIES,
    *cases_groups.WITH_OFFSETS,
    *cases_groups.JOINING,
    *cases_admin.LOOKING,
    *cases_topics.AUTO_CREATION,
    *cases_daily.LOOKING,
    *cases_settings.LOOKING,
    *cases_admin.CHANGING,
    *cases_daily.CHANGING,
    *cases_settings.CHANGING,
    *cases_features.STORIES,
    *cases_telemetry.STORIES,
    *cases_tokens.STORIES,
    *cases_topics.CLOSING,
)
"""In the order in which they are played: first those that change nothing."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Play all stories, once."""
    with both_sides(tmp_path_factory.mktemp("equality"), auto_create_topics=True) as (stage, node):
        return play_all(stage, node, STORIES)


def name_of(number: int) -> str:
    """Return what a story's test is called."""
    story = STORIES[number]
    return f"{api_name(story.api)}: {story.title}".replace("'", "")


@pytest.mark.parametrize("number", range(len(STORIES)), ids=name_of)
def test_kustos_answers_and_audits_as_the_broker_does(played: Played, number: int) -> None:
    found = list(played.differences(number))
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:SHOWN])


@pytest.mark.parametrize("mistake", known_mistakes.MISTAKES, ids=lambda mistake: mistake.name)
def test_known_mistakes_of_others_would_show(played: Played, mistake: known_mistakes.Mistake) -> None:
    assert not list(
        known_mistakes.not_shown(mistake, [run for runs in played.asked.values() for run in runs])
    )
    cases = {(case.api, case.title) for case in mistake.cases}
    numbers = [at for at, story in enumerate(STORIES) if (story.api, story.title) in cases]
    assert not [line for number in numbers for line in played.differences(number)]


def test_every_rule_for_what_two_clusters_cannot_have_in_common_is_needed(played: Played) -> None:
    assert not played.rules.unused(normal.RULES)


def test_every_rule_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "testing.md").read_text()
    assert not [rule.row for rule in (*normal.RULES, *normal.CONTROLLER_RULES) if rule.row not in page]


def test_every_difference_still_exists(played: Played) -> None:
    for number in range(len(STORIES)):
        list(played.differences(number))
    missing = {each.name + each.of for each in DIFFERENCES} - played.used.keys()
    assert not missing


def test_every_difference_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "differences-from-kafka.md").read_text()
    assert not [each.name for each in DIFFERENCES if f"### {each.name}\n" not in page]


def test_every_api_has_a_story() -> None:
    assert {int(story.api) for story in STORIES} >= TABLE.keys()


def test_no_story_has_a_field_that_no_version_has() -> None:
    slips = {story.title: unknown_fields(story) for story in STORIES}
    assert not {title: names for title, names in slips.items() if names}


def test_how_much_was_compared(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    compared: Counter[str] = Counter()
    for runs in played.asked.values():
        for _, steps in runs:
            compared.update(api_name(each.step.api) for each in steps)
    with capsys.disabled():
        print(f"\n{compared.total()} requests were answered by both sides:")
        for name, count in sorted(compared.items()):
            print(f"  {name:32} {count:6}")
    assert compared.keys() >= {api_name(key) for key in TABLE}
