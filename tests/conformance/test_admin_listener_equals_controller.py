"""The admin listener answers and audits as Kafka's controller does, about itself and for others.

The same requests go to both, in every version, valid and invalid ones, for users with all kinds of rights;
what differs on purpose is a table with reasons: `equality/admin_differences.py`.
"""

from collections import Counter

import pytest

from kustos.protocol import ADMIN_TABLE
from kustos.wire.api_keys import api_name
from testkit.equality.stories import unknown_fields
from testkit.paths import ROOT
from tests.conformance.equality import normal
from tests.conformance.equality.admin_differences import DIFFERENCES
from tests.conformance.equality.admin_sides import admin_sides
from tests.conformance.equality.cases_node import ELSEWHERE_ONLY, STORIES
from tests.conformance.equality.judge import SHOWN, Played, play_all
from tests.conformance.equality.proof import FOR_ADMINS, FOR_CLIENTS, advertised

REQUESTS_MIN = 300
"""What was promised; many more are asked."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Play all stories, once."""
    with admin_sides(tmp_path_factory.mktemp("admin")) as (stage, node):
        return play_all(stage, node, STORIES, DIFFERENCES)


def name_of(number: int) -> str:
    """Return what a story's test is called."""
    story = STORIES[number]
    return f"{api_name(story.api)}: {story.title}".replace("'", "")


@pytest.mark.parametrize("number", range(len(STORIES)), ids=name_of)
def test_kustos_answers_and_audits_as_the_controller_does(played: Played, number: int) -> None:
    found = played.differences(number)
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:SHOWN])


def test_every_rule_for_controllers_is_needed(played: Played) -> None:
    assert not played.rules.unused(normal.CONTROLLER_RULES)


def test_every_difference_still_exists(played: Played) -> None:
    for number in range(len(STORIES)):
        played.differences(number)
    assert not {each.name + each.of for each in DIFFERENCES} - played.used.keys()


def test_every_difference_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "differences-from-kafka.md").read_text()
    assert not [each.name for each in DIFFERENCES if f"### {each.name}\n" not in page]


def test_every_api_of_a_controller_has_a_story_in_every_version() -> None:
    missing = advertised(ADMIN_TABLE) - FOR_ADMINS
    # the same code answers them where clients are, in their other versions; see `without_looks`
    assert missing <= FOR_CLIENTS
    without_any = {key for key, _ in missing} - {key for key, _ in FOR_ADMINS}
    assert without_any == ELSEWHERE_ONLY


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
    assert compared.total() >= REQUESTS_MIN
    assert pairs >= FOR_ADMINS, "an API or a version that the page calls compared got no answer"
