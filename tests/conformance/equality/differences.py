"""Where kustos answers otherwise than a broker that authorizes itself, on purpose, and why.

`docs/explanation/differences-from-kafka.md` says the same to a reader; a test holds that it names each.
A difference that no case shows any more is an error too: then the two have come together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kustos.protocol.codes import MESSAGES, TOPIC_AUTHORIZATION_FAILED
from kustos.protocol.handlers.configs import UPSTREAM_ADDRESSES
from kustos.protocol.rows import TABLE
from kustos.protocol.shapes import shortened
from kustos.wire import ZERO_UUID
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Run
from tests.conformance.equality import cases_topics
from tests.conformance.equality.audit import gathered
from tests.conformance.equality.both_sides import Asked
from tests.conformance.equality.normal import canonical
from tests.conformance.equality.world import NOBODY

ANSWER, AUDIT = "answer", "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference with its name in the docs. `expected` makes our answer of Kafka's where one can say it."""

    name: str
    of: str
    where: Callable[[Run, Asked], bool]
    expected: Callable[[Any], Any] | None = None


def titled(api: ApiKey, *titles: str) -> Callable[[Run, Asked], bool]:
    """Return whether a run is of a story whose title begins so."""
    return lambda run, _: run.story.api == api and run.story.title.startswith(titles)


def offered_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what kustos offers of what the broker does: all versions of what its table has rows for."""
    return answer | {"api_keys": [item for item in answer["api_keys"] if item["api_key"] in TABLE]}


def without_listeners(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a description of the quorum that does not say where its nodes are."""
    return answer | {"nodes": [node | {"listeners": []} for node in answer["nodes"]]}


def without_addresses(answer: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a broker in which upstream's addresses are shown as passwords are."""
    results = []
    for result in answer["results"]:
        configs = []
        for config in result["configs"]:
            if config["name"] in UPSTREAM_ADDRESSES:
                synonyms = [synonym | {"value": None} for synonym in config["synonyms"]]
                config = config | {"value": None, "is_sensitive": True, "synonyms": synonyms}
            configs.append(config)
        results.append(result | {"configs": configs})
    return answer | {"results": results}


def with_a_text(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer in which refused resources have the text of their code."""
    responses = [
        each | {"error_message": each["error_message"] or MESSAGES.get(each["error_code"])}
        for each in answer["responses"]
    ]
    return answer | {"responses": responses}


def with_short_texts(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a description of producers in which no text quotes more than kustos' do."""
    topics = []
    for topic in answer["topics"]:
        texts = [each["error_message"] for each in topic["partitions"]]
        partitions = [
            each | {"error_message": text and shortened(text)}
            for each, text in zip(topic["partitions"], texts, strict=True)
        ]
        topics.append(topic | {"partitions": partitions})
    return answer | {"topics": topics}


def without_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer in which refused topics have no ids."""
    responses = []
    for topic in answer["responses"]:
        is_refused = any(each["error_code"] == TOPIC_AUTHORIZATION_FAILED for each in topic["partitions"])
        responses.append(topic | {"topic_id": ZERO_UUID} if is_refused else topic)
    return answer | {"responses": responses}


def without(value: Any, *fields: str) -> Any:
    """Return a normal answer without these fields, at all depths."""
    if isinstance(value, dict):
        return {name: without(item, *fields) for name, item in value.items() if name not in fields}
    if isinstance(value, list):
        return [without(item, *fields) for item in value]
    return value


EPOCHS = ("member_epoch", "group_epoch", "assignment_epoch")
RESOLVED = (*EPOCHS, "group_state", "assignment", "target_assignment")
"""What tells whether a broker has resolved a regular expression already."""


def resolves_later(run: Run, asked: Asked) -> bool:
    """Return whether a member by pattern is as it should be, but for when its topics came."""
    if not run.story.title.startswith("a pattern"):
        return False
    describes = asked.step.api == ApiKey.CONSUMER_GROUP_DESCRIBE
    waits = (describes and asked.step.settles) or asked.step.fields.get("member_epoch") == 0
    fields = RESOLVED if waits else EPOCHS
    return bool(canonical(without(asked.reference, *fields)) == canonical(without(asked.kustos, *fields)))


ALTERING = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
FAULTS = ("of another broker", "of a broker that are wrong")
STAYING = "of a broker for all of its clients"

NODES_SINCE = 2
"""From this version on DescribeQuorum tells where its nodes are."""

MALFORMED = tuple(
    f"a batch that {what}"
    for what in cases_topics.MALFORMED
    if what not in {"has a wrong checksum", "is one of two", "is a control batch", "is of an early magic"}
)

ASKED_ITEM_BY_ITEM = {
    ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.OFFSET_FETCH,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.STREAMS_GROUP_DESCRIBE,
}
"""Where Kafka asks its authorizer about each item, also where two have the same name."""

DIFFERENCES = (
    Difference(
        name="Internal topics of a streams group",
        of=ANSWER,
        where=lambda run, asked: (
            run.story.title == "a topic that may not be made"
            and (
                # there is nobody to leave, and no group
                asked.step.api == ApiKey.DELETE_GROUPS
                or asked.step.fields.get("member_epoch") == -1
                or (
                    "Unauthorized to CREATE on topics" in str(asked.reference.get("status"))
                    and asked.kustos["error_code"] == TOPIC_AUTHORIZATION_FAILED
                )
            )
        ),
    ),
    Difference(
        name="Internal topics of a streams group",
        of=AUDIT,
        where=lambda run, asked: (
            run.story.api == ApiKey.STREAMS_GROUP_HEARTBEAT
            and all(each.operation == "CREATE" for each in asked.kustos_audit - asked.reference_audit)
            and not asked.reference_audit - asked.kustos_audit
        ),
    ),
    Difference(name="Regular expressions of topics", of=ANSWER, where=resolves_later),
    Difference(
        name="Regular expressions of topics",
        of=AUDIT,
        # the thread of a broker that resolves writes its lines whenever it does
        where=lambda run, asked: (
            run.story.title.startswith("a pattern")
            and all(
                (each.operation, each.kind) == ("DESCRIBE", "Topic")
                for each in (asked.reference_audit - asked.kustos_audit)
                + (asked.kustos_audit - asked.reference_audit)
            )
        ),
    ),
    Difference(
        name="Errors for regular expressions",
        of=ANSWER,
        where=lambda run, asked: (
            run.story.title == "what is no pattern"
            and without(asked.reference, "error_message") == without(asked.kustos, "error_message")
        ),
    ),
    Difference(
        name="APIs that are not offered",
        of=ANSWER,
        where=lambda run, asked: asked.step.api == ApiKey.API_VERSIONS and asked.reference["error_code"] == 0,
        expected=offered_of,
    ),
    Difference(
        name="No fetch session without topics",
        of=ANSWER,
        where=lambda run, _: (
            run.story.api == ApiKey.FETCH and "session" in run.story.title and run.user == NOBODY
        ),
    ),
    Difference(
        name="No fetch session without topics",
        of=AUDIT,
        where=lambda run, _: (
            run.story.api == ApiKey.FETCH and "session" in run.story.title and run.user == NOBODY
        ),
    ),
    Difference(
        name="Fetch sessions belong to a connection",
        of=ANSWER,
        where=titled(ApiKey.FETCH, "a session of another's"),
    ),
    Difference(
        name="Fetch sessions belong to a connection",
        of=AUDIT,
        where=titled(ApiKey.FETCH, "a session of another's"),
    ),
    *[
        Difference(
            name="Fetch sessions belong to a connection",
            of=of,
            where=titled(ApiKey.SHARE_FETCH, "of another's session"),
        )
        for of in (ANSWER, AUDIT)
    ],
    *[
        Difference(
            name="Unknown topic ids",
            of=of,
            where=titled(ApiKey.SHARE_FETCH, "of missing topics"),
        )
        for of in (ANSWER, AUDIT)
    ],
    Difference(
        name="Ids of refused topics",
        of=ANSWER,
        where=lambda run, asked: asked.step.api == ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        expected=without_ids,
    ),
    Difference(
        name="Records that are not complete batches",
        of=ANSWER,
        where=titled(ApiKey.PRODUCE, *MALFORMED),
    ),
    Difference(
        name="Records that are not complete batches",
        of=AUDIT,
        where=titled(ApiKey.PRODUCE, *MALFORMED),
    ),
    *[
        Difference(name="Repeated topics in a request", of=ANSWER, where=titled(api, "to a topic twice"))
        for api in (
            ApiKey.OFFSET_COMMIT,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.OFFSET_DELETE,
            ApiKey.DELETE_RECORDS,
        )
    ],
    Difference(
        name="Addresses of brokers and controllers",
        of=ANSWER,
        where=lambda run, _: run.story.api == ApiKey.DESCRIBE_QUORUM and run.version >= NODES_SINCE,
        expected=without_listeners,
    ),
    Difference(
        name="Addresses of brokers and controllers",
        of=ANSWER,
        where=titled(ApiKey.DESCRIBE_CONFIGS, "of a broker's addresses"),
        expected=without_addresses,
    ),
    *[
        Difference(name="Invalid broker settings", of=of, where=titled(api, *FAULTS))
        for api in ALTERING
        for of in (ANSWER, AUDIT)
    ],
    *[
        Difference(name="Settings that clients cannot change", of=of, where=titled(api, STAYING))
        for api in ALTERING
        for of in (ANSWER, AUDIT)
    ],
    Difference(
        name="Error texts that Kafka does not send",
        of=ANSWER,
        where=titled(ApiKey.INCREMENTAL_ALTER_CONFIGS, "of a logger", "of loggers"),
        expected=with_a_text,
    ),
    Difference(
        name="Error texts that Kafka does not send",
        of=ANSWER,
        where=lambda run, _: (
            run.story.api == ApiKey.FIND_COORDINATOR
            and run.story.title == "of a share"
            and run.version in {4, 5}
        ),
    ),
    Difference(
        name="Long error texts",
        of=ANSWER,
        where=titled(ApiKey.DESCRIBE_PRODUCERS, "of a long name"),
        expected=with_short_texts,
    ),
    Difference(
        name="Long error texts",
        of=ANSWER,
        # no text of a broker has room for it: then all partitions fail
        where=titled(ApiKey.DESCRIBE_PRODUCERS, "of a name that no text can quote"),
    ),
    Difference(
        name="Long error texts",
        of=ANSWER,
        where=titled(ApiKey.STREAMS_GROUP_HEARTBEAT, "names that no text can quote"),
    ),
    Difference(
        name="Checks for any topic",
        of=AUDIT,
        where=titled(ApiKey.INIT_PRODUCER_ID, "idempotent", "with an id and no epoch"),
    ),
    Difference(
        name="Equal checks of one request",
        of=AUDIT,
        where=lambda run, asked: (
            run.story.api in ASKED_ITEM_BY_ITEM
            and gathered(asked.reference_audit) == gathered(asked.kustos_audit)
        ),
    ),
    Difference(
        name="Tokens for other owners",
        of=AUDIT,
        where=lambda run, asked: (
            asked.step.api == ApiKey.CREATE_DELEGATION_TOKEN
            and asked.reference_audit == asked.kustos_audit + asked.kustos_audit
        ),
    ),
    Difference(
        name="Unknown topic ids",
        of=AUDIT,
        where=lambda run, _: (
            (run.story.api, run.version)
            in {(ApiKey.OFFSET_COMMIT, 10), (ApiKey.OFFSET_FETCH, 10), (ApiKey.TXN_OFFSET_COMMIT, 6)}
            and run.story.title.endswith("a missing topic")
        ),
    ),
)


def excused(table: tuple[Difference, ...], of: str, run: Run, asked: Asked) -> list[Difference]:
    """Return the differences of a table that cover a request of a run."""
    return [each for each in table if each.of == of and each.where(run, asked)]
