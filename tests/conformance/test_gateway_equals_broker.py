"""kustos before a broker answers and audits as the same broker does that authorizes itself.

The same requests go to both, in every version that both have, for users with all kinds of rights; what
must differ (ids, addresses, times) gets common names first, and lists count as sets. What differs on
purpose is a table with reasons: `equality/differences.py`.
"""

from collections import Counter

import pytest

from kustos.protocol.rows import TABLE
from kustos.wire.api_keys import ApiKey, api_name
from testkit.equality.compared import COMPARED
from testkit.equality.stories import offered, unknown_fields
from testkit.paths import ROOT
from tests.conformance.equality import known_mistakes, normal
from tests.conformance.equality.both_sides import both_sides
from tests.conformance.equality.differences import DIFFERENCES
from tests.conformance.equality.judge import SHOWN, Played, play_all
from tests.conformance.equality.proof import FOR_CLIENTS, NOT_ENABLED, STORIES, advertised, compared_versions


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
    found = played.differences(number)
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


def test_requests_sent_again_are_not_all_read(played: Played) -> None:
    requests = sum(
        asked.client_id.endswith(" again")
        for runs in played.asked.values()
        for _, steps in runs
        for asked in steps
    )
    assert played.repeated > requests / 10, "most are denied, or describe what one may do"


def test_every_rule_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "testing.md").read_text()
    assert not [rule.row for rule in (*normal.RULES, *normal.CONTROLLER_RULES) if rule.row not in page]


def test_every_difference_still_exists(played: Played) -> None:
    for number in range(len(STORIES)):
        played.differences(number)
    missing = {each.name + each.of for each in DIFFERENCES} - played.used.keys()
    assert not missing


def test_every_difference_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "differences-from-kafka.md").read_text()
    assert not [each.name for each in DIFFERENCES if f"### {each.name}\n" not in page]


def test_every_api_has_a_story_in_every_version() -> None:
    assert advertised(TABLE) - FOR_CLIENTS == NOT_ENABLED.keys()


def test_the_list_of_compared_versions_is_current() -> None:
    assert COMPARED.read_text() == compared_versions(), "run `python -m tests.conformance.equality.proof`"


def test_no_story_has_a_field_that_no_version_has() -> None:
    slips = {story.title: unknown_fields(story) for story in STORIES}
    assert not {title: names for title, names in slips.items() if names}


def test_how_much_was_compared(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    compared: Counter[str] = Counter()
    pairs: set[tuple[int, int]] = set()
    for runs in played.asked.values():
        for run, steps in runs:
            compared.update(api_name(each.step.api) for each in steps)
            pairs |= {
                (int(each.step.api), run.version_of(each.step))
                for each in steps
                if isinstance(each.reference, dict)
            }
    with capsys.disabled():
        print(f"\n{compared.total()} requests were answered by both sides:")
        for name, count in sorted(compared.items()):
            print(f"  {name:32} {count:6}")
    assert pairs >= FOR_CLIENTS, "an API or a version that the page calls compared got no answer"


def test_the_highest_versions_are_those_of_the_broker(played: Played) -> None:
    said = [
        asked.reference
        for runs in played.asked.values()
        for _, steps in runs
        for asked in steps
        if asked.step.api == ApiKey.API_VERSIONS and asked.reference["error_code"] == 0
    ]
    highest = {item["api_key"]: item["max_version"] for answer in said for item in answer["api_keys"]}
    ours = {int(key): offered(ApiKey(key))[1] for key in TABLE}
    assert not {key for key in ours if ours[key] < highest[key]}, "a version of the broker's is not offered"
    beyond = {(key, version) for key in ours for version in range(highest[key] + 1, ours[key] + 1)}
    assert beyond == NOT_ENABLED.keys()
