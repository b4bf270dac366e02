"""The same as `test_gateway_equals_broker.py` where brokers create no topics by themselves, and for frames
that are no proper requests: what is answered, and when the connection is closed.
"""

from typing import Any

import pytest

from kustos.wire import read_response_header, response_codec, response_header_is_flexible
from testkit import versions
from testkit.equality.sides import Side
from testkit.paths import ROOT
from tests.conformance.equality import cases_topics, normal
from tests.conformance.equality.both_sides import both_sides
from tests.conformance.equality.frames import FRAMES, Frame
from tests.conformance.equality.judge import SHOWN, Played, play_all
from tests.conformance.equality.world import CLUSTER, CREATOR, NOBODY, SOME, SUPER

STORIES = (
    cases_topics.creating("topics of many", (SUPER, SOME, NOBODY, CLUSTER), *cases_topics.TWO),
    cases_topics.creating("topics of a prefix", (CREATOR,), *cases_topics.MADE_AND_SEEN),
)
USERS = (SUPER, NOBODY)
CLOSED = "the connection is closed"


def answer_to(side: Side, user: str, frame: Frame) -> Any:
    """Return a side's answer in its normal form."""
    side.link(user)
    side.correlation_id += 1
    side.send_frame(user, frame.bytes_of(side.correlation_id))
    answer = side.receive(user)
    if answer is None:
        return CLOSED
    codec = response_codec(frame.api, frame.version if frame.answered_in is None else frame.answered_in)
    correlation_id, body_at = read_response_header(answer, response_header_is_flexible(frame.api, codec))
    assert correlation_id == side.correlation_id
    names = {topic_id: name for name, topic_id in side.topic_ids.items()}
    normalizer = normal.Normalizer(side, frame.api, names, normal.Rules(normal.RULES))
    return normal.canonical(normalizer.normal(codec.decode(answer, body_at).message))


Answers = dict[tuple[str, str], tuple[Any, Any]]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answers, Played]:
    """Send every frame to both sides, and play the stories."""
    with both_sides(tmp_path_factory.mktemp("edges"), auto_create_topics=False) as (stage, node):
        answers = {
            (frame.title, user): (
                answer_to(stage.reference, user, frame),
                answer_to(stage.kustos, user, frame),
            )
            for frame in FRAMES
            for user in USERS
        }
        return answers, play_all(stage, node, STORIES)


NEWEST_OF_PREVIOUS = ".api_keys[0].max_version: Kafka 4, kustos 5"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.title)
def test_frames_at_the_edge(answered: tuple[Answers, Played], frame: Frame, user: str) -> None:
    reference, kustos = answered[0][frame.title, user]
    if frame.difference is None:
        found = normal.differences(reference, kustos)
        if frame.answered_in == 0 and versions.chosen() == versions.PREVIOUS:
            # this answer lists the versions of ApiVersions itself
            assert found == [NEWEST_OF_PREVIOUS]
        else:
            assert found == []
    else:
        assert (kustos, reference == CLOSED) == (CLOSED, False)


def test_every_difference_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "differences-from-kafka.md").read_text()
    names = {frame.difference for frame in FRAMES} - {None}
    assert not [name for name in names if f"### {name}\n" not in page]


@pytest.mark.parametrize("number", range(len(STORIES)), ids=lambda number: STORIES[number].title)
def test_brokers_that_create_no_topics(answered: tuple[Answers, Played], number: int) -> None:
    found = answered[1].differences(number)
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:SHOWN])
