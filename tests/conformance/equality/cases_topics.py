"""Metadata, Produce, Fetch, ListOffsets, DescribeTopicPartitions."""

from dataclasses import replace
from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Said, Step, Story, TopicId, one
from tests.conformance.equality.world import (
    ALL,
    CLUSTER,
    CREATOR,
    ELSEWHERE,
    EVERYBODY,
    FEW,
    MIXED,
    NOBODY,
    READER,
    SOME,
    SUPER,
    THREE,
    records,
)

METADATA, PRODUCE, FETCH = ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH
LIST_OFFSETS, PARTITIONS = ApiKey.LIST_OFFSETS, ApiKey.DESCRIBE_TOPIC_PARTITIONS
SINCE_IDS, SINCE_ALL_IS_NULL, SINCE_NO_CREATION = 12, 1, 4


def named(*names: str) -> list[dict[str, Any]]:
    """Return topics by name only."""
    return [{"name": name} for name in names]


def ided(*names: str) -> list[dict[str, Any]]:
    """Return topics by id only."""
    return [{"topic_id": TopicId(name), "name": None} for name in names]


OPERATIONS = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}


def metadata(title: str, users: tuple[str, ...], versions: tuple[int, int], **fields: Any) -> Story:
    """Return a story of one Metadata request that creates nothing unless it says so."""
    given = {"allow_auto_topic_creation": False} | fields
    return Story(title=title, steps=(Step(api=METADATA, fields=given),), users=users, versions=versions)


METADATA_STORIES = (
    metadata("all topics", EVERYBODY, (1, 13), topics=None),
    metadata("all topics the old way", FEW, (0, 0), topics=[]),
    metadata("no topics", FEW, (1, 13), topics=[]),
    metadata("all topics with operations", EVERYBODY, (8, 13), topics=None, **OPERATIONS),
    metadata("two topics by name", EVERYBODY, (0, 13), topics=named("orders", "pay-secret")),
    metadata("a name twice", FEW, (0, 13), topics=named("orders", "other", "orders", "other")),
    metadata("names with operations", EVERYBODY, (8, 13), topics=named("orders", "hidden"), **OPERATIONS),
    metadata("a missing topic", EVERYBODY, (4, 13), topics=named("pay-missing", "orders"), **OPERATIONS),
    metadata("an impossible name", FEW, (4, 13), topics=named("no/such name", "")),
    metadata("by id", EVERYBODY, (12, 13), topics=ided("orders", "pay-secret", "nosuch"), **OPERATIONS),
    metadata("an id twice", FEW, (12, 13), topics=ided("orders", "orders", "other")),
    metadata("an unknown id", THREE, (12, 13), topics=ided("nosuch")),
    metadata("ids and names", FEW, (12, 13), topics=[*named("other"), *ided("orders")]),
    metadata(
        "an id beside its name", FEW, (10, 13), topics=[{"name": "orders", "topic_id": TopicId("orders")}]
    ),
    metadata("neither id nor name", FEW, (10, 13), topics=[{"name": None}, *named("orders")]),
    metadata("an internal topic", FEW, (4, 13), topics=named("__consumer_offsets")),
)


def produced(*names: str, data: bytes | None = None, index: int = 0) -> list[dict[str, Any]]:
    """Return what a Produce sends: one batch to one partition of each topic."""
    batch = records(b"value") if data is None else data
    return [
        {
            "name": name,
            "topic_id": TopicId(name),
            "partition_data": [{"index": index, "records": batch}],
        }
        for name in names
    ]


def produce(title: str, users: tuple[str, ...], topics: list[dict[str, Any]], **fields: Any) -> Story:
    """Return a story of one Produce."""
    given = {"acks": -1, "timeout": 5000, "topic_data": topics} | fields
    return one(title, PRODUCE, users, **given)


def silent(title: str, users: tuple[str, ...], topics: list[dict[str, Any]], **fields: Any) -> Story:
    """Return a story of a Produce that awaits no answer."""
    given = {"acks": 0, "timeout": 5000, "topic_data": topics} | fields
    steps = (Step(api=PRODUCE, fields=given, silent=True),)
    return Story(title=title, steps=steps, users=users, versions=(8, 13))


TWO_PARTITIONS = [
    {
        "name": "orders",
        "topic_id": TopicId("orders"),
        "partition_data": [{"index": index, "records": records(b"value")} for index in (0, 1)],
    },
    *produced("pay-secret"),
]
MADE_UP_TRANSACTION = records(b"value", transactional=True, producer_id=9_999)
WHOLE = records(b"value")
MALFORMED = {
    "ends too early": WHOLE[:-3],
    "is no more than its length": WHOLE[:12],
    "is shorter than a length": WHOLE[:7],
    "has a wrong checksum": WHOLE[:-1] + b"!",
    "is of a later magic": WHOLE[:16] + b"\x09" + WHOLE[17:],
    "is of an early magic": WHOLE[:16] + b"\x01" + WHOLE[17:],
    "says that it is tiny": WHOLE[:8] + b"\0\0\0\1" + WHOLE[12:],
    "says that it has no length": WHOLE[:8] + b"\xff\xff\xff\xff" + WHOLE[12:],
    "is one of two": WHOLE + WHOLE,
    "has half a batch behind it": WHOLE + MADE_UP_TRANSACTION[:40],
    "is a control batch": WHOLE[:22] + b"\x20" + WHOLE[23:],
}
"""Payloads that a broker refuses, each by its defect."""

LATEST = (11, 13)
"""Enough versions of Produce to see with and without topic ids; a payload is read alike in all."""

PRODUCE_STORIES = (
    produce("to one", EVERYBODY, produced("orders")),
    produce("to several", (*FEW, READER), produced("orders", "pay-secret", "other", "hidden")),
    produce("with one acknowledgement", FEW, produced("orders", "pay-secret"), acks=1),
    produce("to two partitions", FEW, TWO_PARTITIONS),
    produce("to a missing topic", FEW, produced("pay-missing", "orders")),
    produce("to a missing partition", FEW, produced("orders", index=17)),
    produce("nothing", FEW, []),
    produce("an impossible acknowledgement", FEW, produced("orders", "other"), acks=7),
    produce("in nobody's transaction", FEW, produced("orders", "other", data=MADE_UP_TRANSACTION)),
    produce(
        "in a denied transaction", FEW, produced("orders", data=MADE_UP_TRANSACTION), transactional_id="x-1"
    ),
    produce(
        "in an allowed transaction",
        FEW,
        produced("orders", "other", data=MADE_UP_TRANSACTION),
        transactional_id="t-1",
    ),
    produce(
        # to a partition that no other story reads: Kafka takes it
        "a transactional id without need",
        FEW,
        produced("hidden", index=2),
        transactional_id="x-1",
    ),
    produce("an empty payload", FEW, produced("orders", "other", data=b"")),
    silent("to one without an answer", FEW, produced("orders")),
    silent("to several without an answer", FEW, produced("orders", "other")),
    silent("in a denied transaction without an answer", FEW, produced("orders", data=MADE_UP_TRANSACTION)),
)

MALFORMED_STORIES = (
    *[
        replace(produce(f"a batch that {what}", FEW, produced("orders", "other", data=data)), versions=LATEST)
        for what, data in MALFORMED.items()
    ],
    *[
        replace(silent(f"a batch that {what}", (SUPER, SOME), produced("orders", data=data)), versions=LATEST)
        for what, data in MALFORMED.items()
    ],
)
"""Played when what was written has been compared: Kafka stores some of it, kustos none."""


def fetched(*names: str, partitions: tuple[int, ...] = (0,), offset: int = 0) -> list[dict[str, Any]]:
    """Return what a Fetch asks for."""
    wanted = [
        {
            "partition": index,
            "fetch_offset": offset,
            "partition_max_bytes": 1_000_000,
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
        }
        for index in partitions
    ]
    return [{"topic": name, "topic_id": TopicId(name), "partitions": wanted} for name in names]


def dropped(*names: str, partitions: tuple[int, ...] = (0,)) -> list[dict[str, Any]]:
    """Return the partitions that leave a Fetch session."""
    return [{"topic": name, "topic_id": TopicId(name), "partitions": list(partitions)} for name in names]


def fetching(topics: list[dict[str, Any]], **fields: Any) -> Step:
    """Return a Fetch that waits for nothing."""
    given = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1_000_000, "topics": topics}
    return Step(api=FETCH, fields=given | {"session_epoch": -1} | fields)


def fetch(title: str, users: tuple[str, ...], *steps: Step, versions: tuple[int, int] | None = None) -> Story:
    """Return a story of Fetches."""
    return Story(title=title, steps=steps, users=users, versions=versions)


SESSION = Said(0, ("session_id",))
AT_END = 1_000_000
FETCH_STORIES = (
    fetch("one topic", EVERYBODY, fetching(fetched("orders"))),
    fetch("several topics", (*FEW, READER), fetching(fetched("orders", "pay-secret", "other", "hidden"))),
    fetch("two partitions", FEW, fetching(fetched("orders", "hidden", partitions=(0, 1)))),
    fetch("a missing topic", FEW, fetching(fetched("pay-missing", "orders", "other"))),
    fetch("a missing partition", FEW, fetching(fetched("orders", "other", partitions=(17,)))),
    fetch("past the end", FEW, fetching(fetched("orders", "pay-in", offset=AT_END))),
    fetch("nothing", FEW, fetching([])),
    fetch("a topic twice", FEW, fetching([*fetched("orders"), *fetched("other"), *fetched("orders")])),
    fetch(
        "as a follower",
        (NOBODY, SOME, ALL),
        fetching(fetched("orders"), replica_id=7, replica_state={"replica_id": 7}),
    ),
    fetch("an unknown session", FEW, fetching([], session_id=4711, session_epoch=3), versions=(7, 18)),
    fetch(
        "a session that grows and shrinks",
        FEW,
        fetching(fetched("orders", "pay-secret"), session_epoch=0),
        fetching([], session_id=SESSION, session_epoch=1),
        fetching(fetched("pay-in", "other"), session_id=SESSION, session_epoch=2),
        fetching(
            [], session_id=SESSION, session_epoch=3, forgotten_topics_data=dropped("orders", "pay-secret")
        ),
        fetching([], session_id=SESSION, session_epoch=4),
        fetching([], session_id=SESSION, session_epoch=9),
        fetching([], session_id=SESSION, session_epoch=-1),
        fetching([], session_id=SESSION, session_epoch=5),
        versions=(7, 18),
    ),
    fetch(
        "a session of another's",
        (SOME, NOBODY),
        fetching(fetched("orders"), session_epoch=0),
        Step(api=FETCH, fields=dict(fetching([], session_id=SESSION, session_epoch=1).fields), user=READER),
        versions=(12, 13),
    ),
)


def listed(*names: str, partitions: tuple[int, ...] = (0,), timestamp: int = -1) -> list[dict[str, Any]]:
    """Return what a ListOffsets asks for."""
    wanted = [
        {"partition_index": index, "timestamp": timestamp, "current_leader_epoch": -1} for index in partitions
    ]
    return [{"name": name, "partitions": wanted} for name in names]


def offsets(title: str, users: tuple[str, ...], topics: list[dict[str, Any]], **fields: Any) -> Story:
    """Return a story of one ListOffsets."""
    return one(title, LIST_OFFSETS, users, **{"replica_id": -1, "topics": topics} | fields)


OFFSET_STORIES = (
    offsets("the earliest", EVERYBODY, listed("orders", "pay-secret", timestamp=-2)),
    offsets("of two partitions", FEW, listed("orders", "hidden", partitions=(0, 1), timestamp=-2)),
    offsets("of a missing topic", FEW, listed("pay-missing", "orders", "gone")),
    offsets("of a topic twice", FEW, [*listed("orders"), *listed("other"), *listed("orders")]),
    offsets("of a partition twice", FEW, listed("orders", "other", partitions=(0, 0))),
    offsets("of nothing", FEW, []),
)


WRITTEN = (
    Story(
        title="of all that was written",
        steps=(
            Step(
                api=LIST_OFFSETS,
                fields={
                    "replica_id": -1,
                    "topics": listed("orders", "other", "hidden", "pay-in", "pay-secret"),
                },
                settles=True,
                good=True,
            ),
            fetching(fetched("orders", "other", "hidden", "pay-in", "pay-secret")),
        ),
        users=(SUPER,),
        versions=(7, 8),
    ),
)
"""What the Produces left behind: as many records, and the same."""

CLOSING = (
    Story(
        title="that there are in the end",
        steps=(Step(api=METADATA, fields={"topics": None}, settles=True, good=True),),
        users=(SUPER,),
        versions=(8, 8),
    ),
    Story(
        title="that there are in the end",
        steps=(Step(api=ApiKey.LIST_GROUPS, fields={}, settles=True),),
        users=(SUPER,),
        versions=(5, 5),
    ),
)


def partitions(title: str, users: tuple[str, ...], *names: str, **fields: Any) -> Story:
    """Return a story of one DescribeTopicPartitions."""
    return one(
        title, PARTITIONS, users, **{"topics": named(*names), "response_partition_limit": 2000} | fields
    )


def cursor(topic: str, partition: int) -> dict[str, Any]:
    """Return where a page begins."""
    return {"topic_name": topic, "partition_index": partition}


PARTITION_STORIES = (
    partitions("all", EVERYBODY),
    partitions("by name", EVERYBODY, "orders", "pay-secret", "hidden", "pay-missing"),
    partitions("a name twice", FEW, "orders", "orders", "other"),
    partitions("all two by two", EVERYBODY, response_partition_limit=2),
    partitions("the next page", EVERYBODY, response_partition_limit=2, cursor=cursor("orders", 1)),
    partitions("a page from a hidden topic", FEW, response_partition_limit=3, cursor=cursor("hidden", 1)),
    partitions("a page from nowhere", FEW, cursor=cursor("nowhere", 0)),
    partitions("a named page", FEW, "orders", "other", cursor=cursor("orders", 1)),
    partitions("a named page of a missing name", FEW, "orders", "other", cursor=cursor("pay-in", 0)),
    partitions("a negative page", FEW, cursor=cursor("orders", -1)),
    partitions("a page past the partitions", FEW, "orders", "other", cursor=cursor("orders", 9)),
    partitions("no limit at all", FEW, "orders", response_partition_limit=0),
)

READING = METADATA_STORIES + FETCH_STORIES + OFFSET_STORIES + PARTITION_STORIES


def creating(
    title: str,
    users: tuple[str, ...],
    *names: str,
    made: tuple[str, ...] = (),
    versions: tuple[int, int] = (0, 13),
) -> Story:
    """Return a story of topics that are asked for, and of what there is afterwards: `made` and no more."""
    asked = Step(
        api=METADATA, fields={"topics": named(*names), "allow_auto_topic_creation": True, **OPERATIONS}
    )
    # versions before 4 create what they look for
    fields = {"topics": named(*made), "allow_auto_topic_creation": False}
    there = Step(api=METADATA, fields=fields, user=SUPER, settles=True, good=True, version=8)
    look = replace(there, fields=fields | {"topics": named(*names)}, good=False)
    return Story(title=title, steps=(asked, there, look), users=users, versions=versions)


TWO = ("pay-auto-{run}", "auto-{run}")
MADE_AND_SEEN = ("made-auto-{run}", "seen-auto-{run}")
AUTO_CREATION = (
    creating("topics that are not there", (SUPER,), *TWO, made=TWO),
    creating("topics that are not there", (SOME,), *TWO, made=TWO[:1]),
    creating("topics that are not there", (NOBODY,), *TWO),
    creating("topics of a prefix", (CREATOR,), *MADE_AND_SEEN, made=MADE_AND_SEEN[:1]),
    creating("topics with the cluster's right", (CLUSTER,), *TWO, "orders", made=TWO, versions=(4, 13)),
    creating("topics with no right", (MIXED, READER, ELSEWHERE), *TWO, "orders", versions=(3, 5)),
)
"""What `auto.create.topics.enable` makes of a question."""
