"""Transactions: what a producer asks for in one, and what an administrator asks about them."""

from collections.abc import Mapping
from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Made, Said, Step, Story, TopicId, one, step
from tests.conformance.equality.world import (
    ALL,
    CLUSTER,
    EVERYBODY,
    FEW,
    MIXED,
    NOBODY,
    SOME,
    SUPER,
    THREE,
    records,
)

INIT, ADD, OFFSETS = ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN
COMMIT, END, MARKERS = ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS
DESCRIBE, LIST, PRODUCERS = (
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.DESCRIBE_PRODUCERS,
)
MINE, STRANGE = "t-{run}", "x-1"
NO_PRODUCER = {"producer_id": 4711, "producer_epoch": 0}
"""Whom no coordinator knows: what is allowed ends with its error."""

LONG_MS = 900_000
"""Until a coordinator aborts a transaction by itself: longer than the tests take."""


def adding(topics: dict[str, list[int]], name: str = MINE, producer: Mapping[str, Any] = NO_PRODUCER) -> Step:
    """Return an AddPartitionsToTxn, in the form of clients and in that of brokers."""
    given = dict(producer)
    named = [{"name": topic, "partitions": indexes} for topic, indexes in topics.items()]
    old = {
        "v3_and_below_transactional_id": name,
        "v3_and_below_topics": named,
        **{f"v3_and_below_{field}": value for field, value in given.items()},
    }
    batch = {"transactional_id": name, "verify_only": False, "topics": named, **given}
    return Step(api=ADD, fields=old | {"transactions": [batch]})


def add(title: str, users: tuple[str, ...], topics: dict[str, list[int]], name: str = MINE) -> Story:
    """Return a story of one AddPartitionsToTxn of a producer that is none."""
    return Story(title=title, steps=(adding(topics, name),), users=users)


OPEN, SHUT = "pay-txn", "x-txn"
TWICE = [{"name": OPEN, "partitions": [0]}, {"name": SHUT, "partitions": [0, 0]}] * 2
ADDITIONS = (
    add("of some partitions", EVERYBODY, {OPEN: [0, 1]}),
    add(
        "of denied ones among others",
        EVERYBODY,
        {OPEN: [0, 1, 17, -1], SHUT: [0], "pay-missing": [0], "gone": [3]},
    ),
    add("of missing ones", FEW, {OPEN: [0, 17], "pay-missing": [0]}),
    add("of an internal topic", FEW, {OPEN: [0], "__consumer_offsets": [0], "__transaction_state": [0]}),
    add("of no partition of a denied topic", FEW, {OPEN: [0], SHUT: []}),
    add("of nothing", FEW, {}),
    add("to a strange transaction", (*FEW, ALL), {OPEN: [0]}, STRANGE),
    add("to a nameless transaction", FEW, {OPEN: [0]}, ""),
    Story(
        title="of topics twice",
        steps=(
            step(
                ADD,
                v3_and_below_transactional_id=MINE,
                v3_and_below_topics=TWICE,
                v3_and_below_producer_id=4711,
                v3_and_below_producer_epoch=0,
            ),
        ),
        users=FEW,
        versions=(0, 3),
    ),
    Story(
        title="only verified, and two at once",
        steps=(
            step(
                ADD,
                transactions=[
                    {
                        "transactional_id": name,
                        "verify_only": name == STRANGE,
                        "topics": [{"name": OPEN, "partitions": [0]}],
                        **NO_PRODUCER,
                    }
                    for name in (MINE, STRANGE)
                ],
            ),
        ),
        users=(*FEW, CLUSTER, ALL),
        versions=(4, 5),
    ),
)


def offsets(title: str, users: tuple[str, ...], name: str, group: str) -> Story:
    """Return a story of one AddOffsetsToTxn."""
    return one(title, OFFSETS, users, transactional_id=name, group_id=group, **NO_PRODUCER)


GROUPS_ADDED = (
    offsets("of a group", EVERYBODY, MINE, "g-open"),
    offsets("of a closed group", FEW, MINE, "g-closed"),
    offsets("of a strange group", FEW, MINE, "x-1"),
    offsets("to a strange transaction", FEW, STRANGE, "g-open"),
)


def committing(*names: str, **fields: Any) -> Step:
    """Return a TxnOffsetCommit of a first partition of each topic."""
    wanted = [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}]
    given = {
        "transactional_id": MINE,
        "group_id": "g-{run}",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": name, "topic_id": TopicId(name), "partitions": wanted} for name in names],
    }
    return Step(api=COMMIT, fields=given | NO_PRODUCER | fields)


def commit(title: str, users: tuple[str, ...], *names: str, **fields: Any) -> Story:
    """Return a story of one TxnOffsetCommit."""
    return Story(title=title, steps=(committing(*names, **fields),), users=users)


COMMITS = (
    commit("to some topics", EVERYBODY, "orders", "pay-in", "hidden"),
    commit("to a missing topic", FEW, "pay-missing", "orders", "gone"),
    commit("to a closed group", FEW, "orders", group_id="g-closed"),
    commit("in a strange transaction", (*FEW, ALL), "orders", transactional_id=STRANGE),
    commit("to a topic twice", FEW, "orders", "hidden", "orders"),
    commit("of nothing", FEW),
)

ENDS = (
    one("of nobody", END, EVERYBODY, transactional_id=MINE, committed=True, **NO_PRODUCER),
    one("of a strange one", END, (*FEW, ALL), transactional_id=STRANGE, committed=False, **NO_PRODUCER),
    one("of a nameless one", END, FEW, transactional_id="", committed=True, **NO_PRODUCER),
)


def marked(title: str, users: tuple[str, ...], *producers: int) -> Story:
    """Return a story of one WriteTxnMarkers to a partition that is not there, which changes nothing."""
    named = [{"name": OPEN, "partition_indexes": [17, 18]}, {"name": "pay-missing", "partition_indexes": [0]}]
    markers = [
        {
            "producer_id": producer,
            "producer_epoch": 0,
            "transaction_result": False,
            "topics": named,
            "coordinator_epoch": 0,
        }
        for producer in producers
    ]
    return one(title, MARKERS, users, markers=markers)


MARKED = (
    marked("without the right", (NOBODY, SOME, MIXED), 1, 2),
    marked("with the right", (SUPER, ALL, CLUSTER), 1, 2),
    marked("none", (NOBODY, SOME)),
)

BEGUN, EPOCH = Said(1, ("producer_id",)), Said(1, ("producer_epoch",))
PRODUCER = {"producer_id": BEGUN, "producer_epoch": EPOCH}


def beginning() -> Step:
    """Return the request for the producer of a transaction."""
    fields = {
        "transactional_id": MINE,
        "transaction_timeout": LONG_MS,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    return Step(api=INIT, fields=fields, version=4)


def batch_in_transaction(producer_id: int | None, epoch: int | None) -> bytes:
    """Return a batch of this producer's transaction; one that is none where there is no producer."""
    if producer_id is None or producer_id < 0:
        return records(b"value", transactional=True, producer_id=9_999)
    return records(b"value", transactional=True, producer_id=producer_id, producer_epoch=epoch or 0)


def writing(*names: str, version: int) -> Step:
    """Return a Produce in the transaction."""
    batch = Made(batch_in_transaction, (BEGUN, EPOCH))
    topics = [{"name": name, "partition_data": [{"index": 0, "records": batch}]} for name in names]
    fields = {"transactional_id": MINE, "acks": -1, "timeout": 5000, "topic_data": topics}
    return Step(api=ApiKey.PRODUCE, fields=fields, version=version)


SEEN = (
    step(DESCRIBE, transactional_ids=[MINE]),
    *[step(DESCRIBE, transactional_ids=[MINE, STRANGE], user=user) for user in (CLUSTER, ALL)],
    step(PRODUCERS, topics=[{"name": name, "partition_indexes": [0, 1, 5]} for name in (OPEN, SHUT)]),
)
"""What may be seen of a transaction while it is open."""


def is_complete(answer: dict[str, Any]) -> bool:
    """Return whether no partition waits for the end of its transaction."""
    return not any(state["topics"] for state in answer["transaction_states"])


SETTLED = tuple(
    Step(api=DESCRIBE, fields={"transactional_ids": [MINE]}, user=user, settles=True, until=is_complete)
    for user in (SUPER, ALL)
)
"""What its coordinator says of it in the end."""


def ending(committed: bool) -> Step:
    """Return the end of the transaction."""
    return Step(api=END, fields={"transactional_id": MINE, "committed": committed, **PRODUCER})


WRITERS = (SUPER, ALL, SOME, NOBODY, MIXED)
LIVES = (
    Story(
        title="a life with partitions and offsets",
        steps=(
            adding({OPEN: [0]}),
            beginning(),
            adding({OPEN: [0], SHUT: [0]}, producer=PRODUCER),
            adding({OPEN: [0, 1]}, producer=PRODUCER),
            writing(OPEN, SHUT, version=11),
            *SEEN,
            Step(api=OFFSETS, fields={"transactional_id": MINE, "group_id": "g-{run}", **PRODUCER}),
            committing("orders", "hidden", **PRODUCER),
            ending(committed=True),
            *SETTLED,
            writing(OPEN, version=11),
        ),
        users=WRITERS,
        versions=(0, 3),
    ),
    Story(
        title="a life with partitions that a broker adds",
        steps=(
            Step(api=END, fields={"transactional_id": MINE, "committed": True, **NO_PRODUCER}),
            beginning(),
            writing(OPEN, SHUT, version=12),
            *SEEN,
            committing("orders", "hidden", **PRODUCER),
            ending(committed=False),
            *SETTLED,
        ),
        users=WRITERS,
        versions=(5, 5),
    ),
)

DESCRIPTIONS = (
    one("some", DESCRIBE, EVERYBODY, transactional_ids=["t-one", "x-1", "t-missing"]),
    one("one twice", DESCRIBE, FEW, transactional_ids=["t-one", "x-1", "t-one"]),
    one("a nameless one", DESCRIBE, FEW, transactional_ids=[""]),
    one("none", DESCRIBE, FEW, transactional_ids=[]),
)


def listed(title: str, users: tuple[str, ...], **fields: Any) -> Story:
    """Return a story of one ListTransactions."""
    given = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    return Story(title=title, steps=(Step(api=LIST, fields=given | fields, settles=True),), users=users)


LISTS = (
    listed("all", EVERYBODY),
    listed("empty ones", FEW, state_filters=["Empty"]),
    listed("of an unknown state", FEW, state_filters=["Nonsense"]),
    listed("of a producer that is none", FEW, producer_id_filters=[4_711_000]),
    listed("of a pattern", FEW, transactional_id_pattern="t-[0-4].*"),
    listed("of a pattern that nothing matches", FEW, transactional_id_pattern="[0-4]"),
    listed("of a pattern of a part of an id", FEW, transactional_id_pattern="t"),
    listed("of an empty pattern", FEW, transactional_id_pattern=""),
    listed("of a pattern and a state", FEW, transactional_id_pattern="(?i)T-.*", state_filters=["Empty"]),
    listed("of a pattern and what is no state", FEW, transactional_id_pattern="t.*", state_filters=["None"]),
    listed("of denied ids by a pattern", (SOME, NOBODY, MIXED), transactional_id_pattern="[^t].*|t-.+"),
    *[listed(f"of an impossible pattern {wrong}", THREE, transactional_id_pattern=wrong) for wrong in "([*"],
)


def producers(title: str, users: tuple[str, ...], *names: str) -> Story:
    """Return a story of one DescribeProducers."""
    topics = [{"name": name, "partition_indexes": [0, 17]} for name in names]
    return one(title, PRODUCERS, users, topics=topics)


WRITING = (
    producers("of some topics", EVERYBODY, "orders", "pay-secret", "hidden", "pay-missing", "gone"),
    producers("of a topic twice", FEW, "orders", "hidden", "orders"),
    producers("of impossible topics", FEW, "no/such", "", "..", "x" * 250, "hidden"),
    producers("of a long name", FEW, "hidden", "x" * 3_000),
    producers("of a name that no text can quote", FEW, "hidden", "x" * 32_760),
    producers("of nothing", FEW),
)


def ends_of(isolation: int) -> Step:
    """Return the question where the topics of transactions end."""
    wanted = [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}]
    topics = [{"name": name, "partitions": wanted} for name in (OPEN, SHUT)]
    fields = {"replica_id": -1, "isolation_level": isolation, "topics": topics}
    return Step(api=ApiKey.LIST_OFFSETS, fields=fields, settles=True, good=True)


LEFT = (
    Story(
        title="of all transactions",
        steps=(ends_of(1), ends_of(0)),
        users=(SUPER,),
        versions=(7, 7),
    ),
)
"""What the transactions left behind: as many records and ends, none of them open."""

STORIES = ADDITIONS + GROUPS_ADDED + COMMITS + ENDS + MARKED + DESCRIPTIONS + WRITING + LIVES + LISTS + LEFT
