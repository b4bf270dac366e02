"""What other authorizers before Kafka have got wrong: each mistake would show in the cases named here."""

from collections.abc import Iterator
from dataclasses import dataclass

from kustos.protocol.codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
)
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Run, Story
from tests.conformance.equality.both_sides import Asked, codes_of
from tests.conformance.equality.cases_topics import (
    OPERATIONS,
    fetch,
    fetched,
    fetching,
    listed,
    metadata,
    named,
    offsets,
    produce,
    produced,
)
from tests.conformance.equality.world import ALL, CLUSTER, CREATOR, MIXED, NOBODY, READER, SOME, WRITER

WRITTEN_ONLY = "a topic that may only be written"
STORIES: tuple[Story, ...] = (
    produce(WRITTEN_ONLY, (WRITER,), produced("orders")),
    fetch(WRITTEN_ONLY, (WRITER,), fetching(fetched("orders"))),
    offsets(WRITTEN_ONLY, (WRITER,), listed("orders", timestamp=-2)),
    metadata(WRITTEN_ONLY, (WRITER,), (8, 13), topics=named("orders"), **OPERATIONS),
)
"""Played among those that only look; what is written here is compared with all that was written."""


@dataclass(frozen=True, slots=True)
class Case:
    """A user in a story, whom Kafka refuses or not."""

    api: ApiKey
    title: str
    user: str
    is_refused: bool


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake, the error of the refusal that it is about, and cases in which it would show."""

    name: str
    code: int
    cases: tuple[Case, ...]


REFUSED, ALLOWED = True, False
MISTAKES = (
    Mistake(
        "who may read topics is let into groups without a rule for groups",
        GROUP_AUTHORIZATION_FAILED,
        (
            Case(ApiKey.JOIN_GROUP, "a closed group", READER, REFUSED),
            Case(ApiKey.HEARTBEAT, "a stranger", READER, REFUSED),
            Case(ApiKey.OFFSET_COMMIT, "to some topics", READER, REFUSED),
            Case(ApiKey.OFFSET_FETCH, "of some topics", READER, REFUSED),
            Case(ApiKey.OFFSET_COMMIT, "to some topics", ALL, ALLOWED),
        ),
    ),
    Mistake(
        "a denied READ denies WRITE or DESCRIBE as well, or an allowed WRITE allows READ",
        TOPIC_AUTHORIZATION_FAILED,
        (
            Case(ApiKey.PRODUCE, WRITTEN_ONLY, WRITER, ALLOWED),
            Case(ApiKey.METADATA, WRITTEN_ONLY, WRITER, ALLOWED),
            Case(ApiKey.LIST_OFFSETS, WRITTEN_ONLY, WRITER, ALLOWED),
            Case(ApiKey.FETCH, WRITTEN_ONLY, WRITER, REFUSED),
        ),
    ),
    Mistake(
        "settings of brokers are shown or altered by rules for topics, or by another right on the cluster",
        CLUSTER_AUTHORIZATION_FAILED,
        (
            Case(ApiKey.DESCRIBE_CONFIGS, "of a broker", MIXED, REFUSED),
            Case(ApiKey.DESCRIBE_CONFIGS, "of a broker", SOME, REFUSED),
            Case(ApiKey.DESCRIBE_CONFIGS, "of a broker", CLUSTER, ALLOWED),
            Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a broker", CLUSTER, REFUSED),
            Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a broker", ALL, ALLOWED),
        ),
    ),
    Mistake(
        "topics are made only with CREATE on the cluster, or only with CREATE on the topic",
        TOPIC_AUTHORIZATION_FAILED,
        (
            Case(ApiKey.CREATE_TOPICS, "one", CLUSTER, ALLOWED),
            Case(ApiKey.CREATE_TOPICS, "one", CREATOR, ALLOWED),
            Case(ApiKey.CREATE_TOPICS, "one", NOBODY, REFUSED),
            Case(ApiKey.METADATA, "topics with the cluster's right", CLUSTER, ALLOWED),
        ),
    ),
    Mistake(
        "an idempotent producer needs IDEMPOTENT_WRITE where it may write to a topic, or nothing at all",
        CLUSTER_AUTHORIZATION_FAILED,
        (
            Case(ApiKey.INIT_PRODUCER_ID, "idempotent", CLUSTER, ALLOWED),
            Case(ApiKey.INIT_PRODUCER_ID, "idempotent", SOME, ALLOWED),
            Case(ApiKey.INIT_PRODUCER_ID, "idempotent", READER, REFUSED),
            Case(ApiKey.INIT_PRODUCER_ID, "idempotent", NOBODY, REFUSED),
        ),
    ),
)


def _says_something(asked: Asked) -> bool:
    """Return whether something was asked for, and in a version that a broker takes for stable."""
    return asked.step.fields.get("resources") != [] and isinstance(asked.reference, dict)


def not_shown(mistake: Mistake, asked: list[tuple[Run, list[Asked]]]) -> Iterator[str]:
    """Yield the cases of a mistake that were not played, or in which Kafka does not answer as they say."""
    for case in mistake.cases:
        found = [
            set(codes_of(each.reference))
            for run, steps in asked
            if (run.story.api, run.story.title, run.user) == (case.api, case.title, case.user)
            for each in steps
            if each.step.api == case.api and each.step.user is None and _says_something(each)
        ]
        if not found or not all((mistake.code in codes) is case.is_refused and codes for codes in found):
            yield f"{case}: {found}"
