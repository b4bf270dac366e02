"""The same bytes to a real Kafka and to kustos over sockets, and every answer compared."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

import pytest

from testkit.conversations import Conversation, Heard, Scene, Side, conversations, play, scene

CONVERSATIONS = conversations()
AT_ONCE = 8
AT_LEAST = {"SASL_PLAINTEXT": 490, "SASL_SSL": 35, "SSL": 25}
"""How many conversations each listener has."""

DIFFERENT_AT_MOST = 60
"""How many may be answered otherwise on purpose: each is a row that users of Kafka have to know."""

Played = Mapping[str, tuple["Future[list[Heard]]", "Future[list[Heard]]"]]
"""Title → the answers of Kafka, and those of kustos."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("scene")) as running:
        yield running


@pytest.fixture(scope="module")
def played(both: Scene, request: pytest.FixtureRequest) -> Iterator[Played]:
    """What both sides answer to each conversation of this run. Many at a time: most of it is waiting."""
    wanted: list[Conversation] = [
        cast("Conversation", item.callspec.params["conversation"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_kafka_and_kustos_answer_alike
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            each.title: (pool.submit(play, each, both.kafka), pool.submit(play, each, both.kustos))
            for each in wanted
        }


def lines(answers: Sequence[Heard]) -> list[str]:
    return [str(answer) for answer in answers]


@pytest.mark.behaviour(
    "B216", "B217", "B218", "B219", "B220", "B225", "B226", "B227", "B228", "B229", "B230", "B231", "B232",
    "B233", "B234", "B239", "B241", "B242", "B243", "B247", "B248", "B249", "B250", "B296", "B303", "B304",
    "B305", "B306", "B307", "B309", "B318", "B322", "B358",
)  # fmt: skip
@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.title)
def test_kafka_and_kustos_answer_alike(played: Played, conversation: Conversation) -> None:
    theirs, ours = (answers.result() for answers in played[conversation.title])
    differs = conversation.differs
    if differs is None:
        assert lines(ours) == lines(theirs)
    else:
        assert [each.words for each in theirs] == list(differs.kafka)
        assert [each.words for each in ours] == list(differs.kustos)
        assert lines(ours) != lines(theirs), "it is no difference any more"


@pytest.mark.parametrize(
    "title",
    [
        "plain: a good password",
        "plain: a good password (SASL_SSL)",
        "scram: SHA-256, a good password",
        "scram: SHA-512, a good password (SASL_SSL)",
        "tokens: SHA-256, a token",
        "oauthbearer: a good token",
        "gssapi: a ticket (SASL_SSL)",
        "tls: a certificate, named by a rule (SSL)",
    ],
)
def test_who_logs_in_is_somebody(both: Scene, title: str) -> None:
    """Else every login could fail on both sides, and all answers would be equal."""
    (conversation,) = (each for each in CONVERSATIONS if each.title == title)

    def name(side: Side) -> str:
        return next(each.words for each in play(conversation, side) if "CreateDelegationToken" in each.words)

    # who came by a delegation token gets no other (error 64)
    code = "64 " if conversation.subject == "tokens" else ""
    assert {name(both.kafka), name(both.kustos)} == {f"CreateDelegationToken {code}User:alice"}


def test_the_corpus_is_large_and_most_of_it_is_equal() -> None:
    assert len({each.title for each in CONVERSATIONS}) == len(CONVERSATIONS)
    counts = Counter(each.listener for each in CONVERSATIONS)
    assert {name: counts[name] for name in AT_LEAST if counts[name] < AT_LEAST[name]} == {}
    assert sum(each.differs is not None for each in CONVERSATIONS) <= DIFFERENT_AT_MOST
