"""Groups, their coordinators and offsets, and producer ids."""

from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Said, Step, Story, TopicId, one, step
from tests.conformance.equality.world import (
    ALL,
    EVERYBODY,
    FEW,
    MIXED,
    NOBODY,
    READER,
    SHARE_KEY,
    SOME,
    SUPER,
    THREE,
)

FIND, JOIN, SYNC = ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP
HEARTBEAT, LEAVE = ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP
COMMIT, OFFSETS = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH
LIST, DESCRIBE = ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS
CONSUMER, CONSUMERS = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE
PRODUCER = ApiKey.INIT_PRODUCER_ID


def find(title: str, users: tuple[str, ...], key_type: int, *keys: str, first: int = 0) -> Story:
    """Return a story of one FindCoordinator, which before version 4 asks for the first key only."""
    fields = {"key": keys[0] if keys else "", "key_type": key_type, "coordinator_keys": list(keys)}
    return Story(title=title, steps=(Step(api=FIND, fields=fields),), users=users, versions=(first, 6))


COORDINATOR_STORIES = (
    find("of a group", EVERYBODY, 0, "g-1"),
    find("of groups", FEW, 0, "g-1", "x-1", "g-closed", "g-open", first=4),
    find("of a group twice", FEW, 0, "g-1", "x-1", "g-1", first=4),
    find("of no group", FEW, 0, first=4),
    find("of a nameless group", FEW, 0, ""),
    find("of transactions", EVERYBODY, 1, "t-one", "x-1", first=1),
    find("of a share", FEW, 2, SHARE_KEY, first=1),
    find("of shares", FEW, 2, SHARE_KEY, "not a key", first=6),
    find("of something unknown", FEW, 9, "g-1", first=1),
)


SUBSCRIPTION = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x06orders" + b"\xff\xff\xff\xff"
"""What a consumer says that it reads: version 0, one topic, no data of its own."""


def joining(group: str, member: Any = "", **fields: Any) -> Step:
    """Return a JoinGroup of a consumer with one assignor."""
    given = {
        "group_id": group,
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }
    return step(JOIN, **given | fields)


def syncing(group: str, member: Any, generation: Any) -> Step:
    """Return a SyncGroup of the leader."""
    return step(
        SYNC,
        group_id=group,
        member_id=member,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": member, "assignment": b"all of it"}],
    )


def leaving(group: str, member: Any) -> Step:
    """Return a LeaveGroup of one member."""
    return step(LEAVE, group_id=group, member_id=member, members=[{"member_id": member}])


GROUP = "g-{run}"
LATE, EARLY = Said(1, ("member_id",)), Said(0, ("member_id",))
LATE_GENERATION, EARLY_GENERATION = Said(1, ("generation_id",)), Said(0, ("generation_id",))


def committed(*names: str, partitions: tuple[int, ...] = (0,)) -> list[dict[str, Any]]:
    """Return the offsets to commit."""
    wanted = [
        {
            "partition_index": index,
            "committed_offset": 1,
            "committed_leader_epoch": -1,
            "committed_metadata": "here",
        }
        for index in partitions
    ]
    return [{"name": name, "topic_id": TopicId(name), "partitions": wanted} for name in names]


def wanted(*names: str, partitions: tuple[int, ...] = (0,)) -> list[dict[str, Any]]:
    """Return the partitions whose offsets are asked for."""
    return [
        {"name": name, "topic_id": TopicId(name), "partition_indexes": list(partitions)} for name in names
    ]


def described(group: str) -> Step:
    """Return a DescribeGroups of one group."""
    return step(DESCRIBE, groups=[group], include_authorized_operations=True)


MEMBERSHIP = (
    Story(
        title="a member's life with a member id first",
        steps=(
            joining(GROUP),
            joining(GROUP, EARLY),
            syncing(GROUP, LATE, LATE_GENERATION),
            step(HEARTBEAT, group_id=GROUP, member_id=LATE, generation_id=LATE_GENERATION),
            step(
                COMMIT,
                group_id=GROUP,
                member_id=LATE,
                generation_id_or_member_epoch=LATE_GENERATION,
                topics=committed("orders", "pay-secret"),
            ),
            described(GROUP),
            leaving(GROUP, LATE),
        ),
        users=(SUPER, ALL, SOME, NOBODY),
        versions=(4, 9),
    ),
    Story(
        title="a member's life",
        steps=(
            joining(GROUP),
            syncing(GROUP, EARLY, EARLY_GENERATION),
            step(HEARTBEAT, group_id=GROUP, member_id=EARLY, generation_id=EARLY_GENERATION),
            described(GROUP),
            leaving(GROUP, EARLY),
        ),
        users=(SUPER, SOME, NOBODY),
        versions=(0, 3),
    ),
    Story(title="a closed group", steps=(joining("g-closed"),), users=(SOME, MIXED, READER)),
    Story(title="a nameless group", steps=(joining(""),), users=FEW),
    Story(title="a stranger", steps=(syncing("g-open", "stranger", 3),), users=FEW),
    Story(
        title="a stranger",
        steps=(step(HEARTBEAT, group_id="g-open", member_id="stranger", generation_id=3),),
        users=EVERYBODY,
    ),
    Story(title="a stranger", steps=(leaving("g-open", "stranger"),), users=EVERYBODY),
)


def commit(title: str, users: tuple[str, ...], group: str, topics: list[dict[str, Any]]) -> Story:
    """Return a story of one OffsetCommit of nobody in the group, which simple consumers do."""
    fields = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    return one(title, COMMIT, users, **fields)


COMMITS = (
    commit("to some topics", EVERYBODY, "g-open", committed("orders", "pay-in", "hidden")),
    commit("to a closed group", FEW, "g-closed", committed("orders", "hidden")),
    commit("to two partitions", FEW, "g-open", committed("orders", "hidden", "other", partitions=(0, 1))),
    commit("to a missing topic", FEW, "g-open", committed("pay-missing", "orders", "gone")),
    commit("to a topic twice", FEW, "g-open", committed("orders", "hidden", "orders")),
    commit("of nothing", FEW, "g-open", []),
    commit("to a nameless group", FEW, "", committed("orders")),
)


def fetch(
    title: str,
    users: tuple[str, ...],
    groups: tuple[str, ...],
    topics: list[dict[str, Any]] | None,
    versions: tuple[int, int] = (1, 10),
) -> Story:
    """Return a story of one OffsetFetch; before version 8 it asks for the first group only."""
    by_name = (
        None
        if topics is None
        else [{name: value for name, value in topic.items() if name != "topic_id"} for topic in topics]
    )
    fields = {
        "group_id": groups[0] if groups else "",
        "topics": by_name,
        "groups": [{"group_id": group, "topics": topics} for group in groups],
    }
    return Story(title=title, steps=(Step(api=OFFSETS, fields=fields),), users=users, versions=versions)


TWO_GROUPS = ("g-open", "g-closed")
FETCHES = (
    fetch("of some topics", EVERYBODY, ("g-open",), wanted("orders", "pay-secret", "hidden")),
    fetch("of a strange group", FEW, ("x-1",), wanted("orders", "other")),
    fetch("of all topics", EVERYBODY, ("g-open",), None, (2, 10)),
    fetch("of groups", FEW, ("g-open", "x-1", "g-closed"), wanted("orders", "hidden"), (8, 10)),
    fetch("of all topics of groups", FEW, ("x-1", "g-open"), None, (8, 10)),
    fetch("of a missing topic", FEW, ("g-open",), wanted("pay-missing", "gone", "orders", partitions=(0, 5))),
    fetch("of a topic twice", FEW, ("g-open",), wanted("orders", "hidden", "orders")),
    fetch("of a group twice", FEW, ("g-open", "x-1", "g-open"), wanted("orders"), (8, 10)),
    fetch("of nothing", FEW, ("g-open",), []),
    fetch("of no group", FEW, (), [], (8, 10)),
)

LISTS = (
    one("all", LIST, EVERYBODY),
    one("empty ones", LIST, FEW, states_filter=["Empty"], types_filter=["classic"]),
    one("of an unknown state", LIST, FEW, states_filter=["Nonsense"]),
)

OPERATIONS = {"include_authorized_operations": True}
DESCRIPTIONS = (
    one("some", DESCRIBE, EVERYBODY, groups=["g-open", "x-1", "g-closed", "g-none"]),
    one("some with operations", DESCRIBE, EVERYBODY, groups=["g-open", "x-1", "g-none"], **OPERATIONS),
    one("one twice", DESCRIBE, FEW, groups=["g-open", "x-1", "g-open"], **OPERATIONS),
    one("none", DESCRIBE, FEW, groups=[]),
    one("a nameless one", DESCRIBE, FEW, groups=[""]),
)


def beat(group: str, member: str, epoch: Any, *topics: str) -> dict[str, Any]:
    """Return a ConsumerGroupHeartbeat of a member that reads the topics."""
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "rebalance_timeout": 30_000,
        "subscribed_topic_names": list(topics),
        "topic_partitions": [],
    }


def consumers(title: str, users: tuple[str, ...], *groups: str) -> Story:
    """Return a story of one ConsumerGroupDescribe."""
    return one(title, CONSUMERS, users, group_ids=list(groups), include_authorized_operations=True)


MEMBER = "AAAAAAAAQACAAAAAAAAAAA"
PATTERN_GROUP = "g-open-{run}"


def by_pattern(group: str, epoch: Any, expression: str | None, *topics: str) -> dict[str, Any]:
    """Return a ConsumerGroupHeartbeat of a member that subscribes by regular expression."""
    return beat(group, MEMBER, epoch, *topics) | {"subscribed_topic_regex": expression}


def silent(group: str, epoch: Any) -> dict[str, Any]:
    """Return a ConsumerGroupHeartbeat of a member that says nothing of its topics."""
    return {"group_id": group, "member_id": MEMBER, "member_epoch": epoch, "topic_partitions": []}


def pattern(title: str, users: tuple[str, ...], expression: str, *topics: str, group: str = "x-1") -> Story:
    """Return a story of one heartbeat that joins."""
    fields = by_pattern(group, 0, expression, *topics)
    return Story(title=title, steps=(Step(api=CONSUMER, fields=fields),), users=users, versions=(1, 1))


def resolved(title: str, users: tuple[str, ...], expression: str, *topics: str, epoch: int) -> Story:
    """Return a story of a member by pattern, and of its group once a broker has resolved it in this epoch."""
    whole: dict[str, Any] = {"group_ids": [PATTERN_GROUP], "include_authorized_operations": False}
    joined = Said(0, ("member_epoch",))
    return Story(
        title=title,
        steps=(
            Step(api=CONSUMER, fields=by_pattern(PATTERN_GROUP, 0, expression, *topics)),
            # a broker resolves a moment later
            Step(
                api=CONSUMERS,
                fields=whole,
                user=SUPER,
                settles=True,
                parted=lambda said: bool(said["groups"][0]["group_epoch"] >= epoch),
            ),
            # and assigns anew a second after it did so before, at the earliest
            Step(
                api=CONSUMER,
                fields=by_pattern(PATTERN_GROUP, joined, expression, *topics),
                settles=True,
                parted=lambda said: said["member_epoch"] >= epoch,
            ),
            step(CONSUMERS, user=SUPER, **whole),
            Step(api=CONSUMER, fields=by_pattern(PATTERN_GROUP, -1, None)),
        ),
        users=users,
        versions=(1, 1),
    )


PATTERNS = (
    pattern("a pattern without the group", (NOBODY, READER), "orders|pay-.*"),
    pattern("a pattern and a denied topic", (SOME,), "orders", "hidden", group=PATTERN_GROUP),
    resolved("a pattern of some topics", (SUPER, SOME, ALL), "orders|pay-(in|secret)|hid.*|other", epoch=2),
    resolved("a pattern beside a topic", (SUPER, SOME), "pay-(in|secret)", "orders", epoch=3),
    pattern("what is no pattern", (SUPER, SOME), "orders|[", group=PATTERN_GROUP),
    pattern("a pattern of nothing", (SUPER, SOME), "nothing-.*", group=PATTERN_GROUP),
    Story(
        title="a member that says nothing of its topics",
        steps=tuple(
            Step(
                api=CONSUMER,
                fields=silent("g-open", epoch),
            )
            for epoch in (3, 0)
        ),
        users=(SUPER, SOME, NOBODY),
        versions=(0, 1),
    ),
    Story(
        title="a member on a connection for each heartbeat",
        steps=(
            Step(
                api=CONSUMER,
                fields=beat("g-parted-{run}", MEMBER, 0, "orders", "pay-in"),
                hang_up_after=True,
            ),
            Step(
                api=CONSUMER, fields=silent("g-parted-{run}", Said(0, ("member_epoch",))), hang_up_after=True
            ),
            Step(api=CONSUMER, fields=silent("g-parted-{run}", -1)),
        ),
        users=(SUPER, SOME),
        versions=(1, 1),
    ),
)

NEW_CONSUMERS = (
    one("a denied topic among others", CONSUMER, EVERYBODY, **beat("g-open", MEMBER, 0, "orders", "hidden")),
    one("a topic twice", CONSUMER, (NOBODY, SOME), **beat("x-1", MEMBER, 0, "orders", "orders")),
    one("a closed group", CONSUMER, (SOME, NOBODY, READER), **beat("g-closed", MEMBER, 0, "orders")),
    one("a nameless group", CONSUMER, FEW, **beat("", MEMBER, 0, "orders")),
    one("no topics", CONSUMER, (SUPER, SOME), **beat("g-empty-{run}", MEMBER, 0)),
    Story(
        title="a member's life",
        steps=(
            Step(api=CONSUMER, fields=beat("g-new-{run}", MEMBER, 0, "orders", "pay-in")),
            step(CONSUMERS, group_ids=["g-new-{run}", "x-1"], include_authorized_operations=True),
            *[
                step(CONSUMERS, group_ids=["g-new-{run}"], include_authorized_operations=True, user=user)
                for user in (SUPER, MIXED, NOBODY)
            ],
            Step(api=CONSUMER, fields=beat("g-new-{run}", MEMBER, -1, "orders", "pay-in")),
        ),
        users=(SUPER, SOME, ALL),
    ),
    *PATTERNS,
    consumers("some that are none", FEW, "g-none", "x-1"),
    consumers("one twice", FEW, "g-none", "x-1", "g-none"),
    consumers("no group", FEW),
)


def producer(title: str, users: tuple[str, ...], name: str | None, **fields: Any) -> Story:
    """Return a story of one InitProducerId."""
    given = {"transactional_id": name, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
    return one(title, PRODUCER, users, **given | fields)


PRODUCERS = (
    producer("idempotent", EVERYBODY, None),
    producer("of a transaction", EVERYBODY, "t-{run}"),
    producer("of a described transaction", FEW, "t-one"),
    producer("of a strange transaction", THREE, "x-1"),
    producer("of a nameless transaction", FEW, ""),
    producer("of a transaction in two phases", THREE, "t-{run}", enable2_pc=True),
    producer("with an impossible timeout", THREE, "t-{run}", transaction_timeout=-1),
    producer("with an id and no epoch", THREE, None, producer_id=5),
)

ASKING = COORDINATOR_STORIES + PRODUCERS
WITH_OFFSETS = COMMITS + FETCHES + LISTS + DESCRIPTIONS
JOINING = MEMBERSHIP + NEW_CONSUMERS
