"""Share groups: their members, what these fetch and acknowledge, and their offsets (KIP-932)."""

from typing import Any

from kustos.metadata.control import ConfigOperation, ConfigResourceType
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Step, Story, TopicId, one, step
from tests.conformance.equality.world import (
    ALL,
    EVERYBODY,
    FEW,
    MIXED,
    NOBODY,
    QUEUE,
    READER,
    SHUT_QUEUE,
    SOME,
    SUPER,
    THREE,
)

BEAT, DESCRIBE = ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE
FETCH, ACKNOWLEDGE = ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE
OFFSETS = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
ALTER, DELETE = ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS

GROUP = "g-shared-{run}"
MEMBER = "BAAAAAAAQACAAAAAAAAAAA"
STRANGER = "CAAAAAAAQACAAAAAAAAAAA"
LONG_MS, SHORT_MS = 10_000, 50
"""How long a broker waits for records that are there, and for some that are not."""

INITIAL, FINAL = 0, -1
"""The epochs of a member or of its session with which it begins and ends."""

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
MISSING = 17
"""No partition: what a broker says of one that its coordinator has not prepared depends on the moment."""

READERS = (SUPER, ALL, SOME, MIXED)
"""Who may read the group; the last two only some of the topics."""


def beat(
    group: str, member: str | None, epoch: int, *topics: str, user: str | None = None, **fields: Any
) -> Step:
    """Return a ShareGroupHeartbeat of a member that reads the topics."""
    given = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "subscribed_topic_names": list(topics),
    }
    return Step(api=BEAT, fields=given | fields, user=user)


def beating(title: str, users: tuple[str, ...], *args: Any, **fields: Any) -> Story:
    """Return a story of one ShareGroupHeartbeat."""
    return Story(title=title, steps=(beat(*args, **fields),), users=users)


def joining(*topics: str) -> tuple[Step, ...]:
    """Return what makes a member of a group, until it has partitions of all its topics."""

    def is_assigned(answer: Any) -> bool:
        assignment = answer["assignment"] or {"topic_partitions": []}
        return len(assignment["topic_partitions"]) == len(topics)

    again = beat(GROUP, MEMBER, JOINED, *topics)
    return (
        beat(GROUP, MEMBER, INITIAL, *topics, user=SUPER),
        Step(api=BEAT, fields=again.fields, user=SUPER, settles=True, until=is_assigned),
    )


JOINED = 2
"""The epoch of the first member of a group, before the coordinator has prepared its partitions."""

LEAVING = {"group_id": GROUP, "member_id": MEMBER, "member_epoch": FINAL, "subscribed_topic_names": None}
DESCRIBED = {"group_ids": [GROUP, "x-1"], "include_authorized_operations": True}
MEMBERS = (
    beating("a denied topic among others", EVERYBODY, "g-shared-1", MEMBER, 0, QUEUE, "hidden"),
    beating("a topic twice", (NOBODY, SOME), "x-1", MEMBER, 0, "orders", "orders"),
    beating("a nameless group", FEW, "", MEMBER, 0, QUEUE),
    beating("a nameless member", FEW, "g-shared-1", "", 0, "hidden"),
    beating("a member with a long name", FEW, "g-shared-1", "m" * 37, 0, "hidden"),
    beating("a stranger", (SUPER, SOME, MIXED), "g-shared-1", STRANGER, 3, subscribed_topic_names=None),
    beating("no topics", (SUPER, SOME), "g-shared-none-{run}", MEMBER, 0),
    Story(
        title="a member's life",
        steps=(
            beat("g-shared-{run}-own", MEMBER, INITIAL, QUEUE),
            *joining(QUEUE),
            *[Step(api=DESCRIBE, fields=DESCRIBED, user=user) for user in (SUPER, SOME, MIXED, NOBODY)],
            Step(api=BEAT, fields=LEAVING, user=SUPER),
        ),
        users=(SUPER, SOME),
    ),
    Story(
        title="a member of hidden topics",
        steps=(
            *joining(SHUT_QUEUE, QUEUE),
            *[Step(api=DESCRIBE, fields=DESCRIBED, user=user) for user in (SUPER, SOME, MIXED, NOBODY)],
            Step(api=BEAT, fields=LEAVING, user=SUPER),
        ),
        users=(SUPER,),
    ),
    one("some that are none", DESCRIBE, EVERYBODY, group_ids=["g-none", "x-1"]),
    one("one twice", DESCRIBE, FEW, group_ids=["g-none", "x-1", "g-none"]),
    one("no group", DESCRIBE, FEW, group_ids=[]),
    one("a nameless one", DESCRIBE, FEW, group_ids=[""], include_authorized_operations=True),
)


def batch(first: int, last: int, *types: int) -> dict[str, Any]:
    """Return one acknowledgement."""
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


def parts(*named: tuple[str, int] | tuple[str, int, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return partitions by topic, with their acknowledgements if there are any."""
    return [
        {
            "topic_id": TopicId(name),
            "partitions": [{"partition_index": index, "acknowledgement_batches": next(iter(batches), [])}],
        }
        for name, index, *batches in named
    ]


def fetch(
    epoch: int,
    *named: Any,
    forgotten: tuple[tuple[str, int], ...] = (),
    user: str | None = None,
    **fields: Any,
) -> Step:
    """Return a ShareFetch that hardly waits."""
    given = {
        "group_id": GROUP,
        "member_id": MEMBER,
        "share_session_epoch": epoch,
        "max_wait": SHORT_MS,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 100,
        "batch_size": 100,
        "topics": parts(*named),
        "forgotten_topics_data": [
            {"topic_id": TopicId(name), "partitions": [index]} for name, index in forgotten
        ],
    }
    return Step(api=FETCH, fields=given | fields, user=user)


def acknowledge(epoch: int, *named: Any, **fields: Any) -> Step:
    """Return a ShareAcknowledge."""
    given = {
        "group_id": GROUP,
        "member_id": MEMBER,
        "share_session_epoch": epoch,
        "topics": parts(*named),
    }
    return Step(api=ACKNOWLEDGE, fields=given | fields)


def from_the_beginning() -> tuple[Step, ...]:
    """Return what makes a group read what is there already."""
    config = {
        "name": "share.auto.offset.reset",
        "config_operation": int(ConfigOperation.SET),
        "value": "earliest",
    }
    resource = {"resource_type": int(ConfigResourceType.GROUP), "resource_name": GROUP}
    read = {**resource, "configuration_keys": [config["name"]]}

    def is_set(answer: Any) -> bool:
        return [each["value"] for each in answer["results"][0]["configs"]] == ["earliest"]

    return (
        Step(
            api=ApiKey.INCREMENTAL_ALTER_CONFIGS,
            fields={"resources": [{**resource, "configs": [config]}]},
            user=SUPER,
        ),
        Step(
            api=ApiKey.DESCRIBE_CONFIGS,
            fields={"resources": [read]},
            user=SUPER,
            settles=True,
            until=is_set,
        ),
    )


def fetching(title: str, users: tuple[str, ...], *steps: Step, **options: Any) -> Story:
    """Return a story whose first request is a ShareFetch of nothing, of a member that is another."""
    return Story(title=title, steps=(steps[0], *steps[1:]), users=users, **options)


BOTH = ((QUEUE, 0), (SHUT_QUEUE, 0))
TWICE = ((QUEUE, MISSING), (QUEUE, MISSING))
ACCEPTED = [batch(0, 0, ACCEPT)]
SESSIONS = (
    fetching("of strangers", EVERYBODY, fetch(5, (QUEUE, 0)), fetch(FINAL, (QUEUE, 0))),
    fetching("of a nobody", FEW, fetch(INITIAL, (QUEUE, 0), group_id=None)),
    fetching("of a nameless member", FEW, fetch(INITIAL, (QUEUE, 0), member_id="")),
    fetching("of an unknown member", FEW, fetch(INITIAL, (QUEUE, 0), member_id=None)),
    fetching("of a member with a long name", FEW, fetch(INITIAL, (QUEUE, 0), member_id="é" * 37)),
    fetching("of a strange group", FEW, fetch(INITIAL, (QUEUE, MISSING), group_id="x-1")),
    fetching(
        "with acknowledgements before all records",
        READERS,
        fetch(INITIAL, (QUEUE, 0, ACCEPTED), (SHUT_QUEUE, 0)),
        fetch(INITIAL, (QUEUE, 0), (SHUT_QUEUE, 0, ACCEPTED)),
    ),
    fetching("of a partition twice", READERS, fetch(INITIAL, *TWICE), fetch(1)),
    fetching(
        "that renews and waits",
        READERS,
        fetch(INITIAL, (SHUT_QUEUE, 7)),
        fetch(1, is_renew_ack=True),
        fetch(9, is_renew_ack=True, max_wait=0, min_bytes=0, max_bytes=0, max_records=0),
        fetch(1, is_renew_ack=True, max_wait=0, min_bytes=0, max_bytes=0, max_records=0),
        versions=(2, 2),
    ),
    fetching(
        "of denied partitions only",
        (SOME, MIXED),
        fetch(INITIAL, (SHUT_QUEUE, 0), ("orders", 9)),
        fetch(1),
        fetch(2, forgotten=((SHUT_QUEUE, 0),)),
        fetch(4),
        fetch(3, (SHUT_QUEUE, 0, ACCEPTED)),
        fetch(FINAL, (SHUT_QUEUE, 0, ACCEPTED), ("orders", 1)),
        fetch(4),
    ),
    fetching("of nothing", READERS, fetch(INITIAL), fetch(1), fetch(FINAL), fetch(2)),
    fetching(
        "of missing partitions",
        READERS,
        fetch(INITIAL, (QUEUE, MISSING), (SHUT_QUEUE, MISSING)),
        fetch(1, (QUEUE, 18, ACCEPTED), (SHUT_QUEUE, 18, ACCEPTED)),
        fetch(FINAL),
    ),
    fetching("of missing topics", (SUPER, SOME), fetch(INITIAL, ("gone", 0), (SHUT_QUEUE, 0))),
)

FAULTY = [
    [batch(1, 0, ACCEPT)],
    [batch(0, 1, ACCEPT), batch(0, 1, ACCEPT)],
    [batch(0, 1)],
    [batch(0, 1, ACCEPT, ACCEPT, ACCEPT)],
    [batch(0, 0, 9)],
    [batch(0, 0, -1)],
    [batch(0, 0, RENEW)],
    [batch(0, 0, ACCEPT), batch(1, 1, ACCEPT)],
    [batch(-1, -1, ACCEPT)],
    [batch(-2, -2, ACCEPT)],
    [],
]
"""Acknowledgements that brokers refuse, or not."""

LIVES = (
    Story(
        title="records that are shared",
        steps=(
            fetch(INITIAL, (SHUT_QUEUE, 5), member_id=STRANGER),
            *from_the_beginning(),
            *joining(QUEUE, SHUT_QUEUE),
            fetch(INITIAL, *BOTH, max_records=1, batch_size=1, max_wait=LONG_MS),
            fetch(1, (QUEUE, 0, ACCEPTED), (SHUT_QUEUE, 0, ACCEPTED), ("hidden", 1)),
            acknowledge(2, (QUEUE, 0, [batch(1, 1, RELEASE)]), (SHUT_QUEUE, 0, ACCEPTED)),
            acknowledge(2, (QUEUE, 0, ACCEPTED)),
            fetch(3, max_wait=LONG_MS),
            fetch(4, (QUEUE, 0, [batch(1, 1, REJECT)]), forgotten=((QUEUE, 0), ("hidden", 1))),
            acknowledge(FINAL, (QUEUE, 0, ACCEPTED), ("hidden", 0, ACCEPTED)),
            acknowledge(FINAL),
            fetch(5),
        ),
        users=(SOME,),
    ),
    Story(
        title="records of one topic",
        steps=(
            fetch(INITIAL, (QUEUE, 5), member_id=STRANGER),
            *from_the_beginning(),
            *joining(QUEUE),
            fetch(INITIAL, (QUEUE, 0), max_wait=LONG_MS),
            fetch(1, (QUEUE, 0, [batch(0, 1, ACCEPT, RELEASE)]), max_wait=LONG_MS),
            fetch(FINAL, (QUEUE, 0, [batch(1, 1, ACCEPT)])),
        ),
        users=READERS,
    ),
    *[
        Story(
            title=f"acknowledgements of the form {number}",
            steps=(
                fetch(INITIAL, (SHUT_QUEUE, 3)),
                fetch(1, (QUEUE, MISSING, faulty), (SHUT_QUEUE, 0, faulty), ("orders", MISSING)),
                acknowledge(2, (QUEUE, MISSING, faulty), (SHUT_QUEUE, 0, faulty)),
                fetch(FINAL, (QUEUE, MISSING, faulty), (SHUT_QUEUE, 0, faulty)),
            ),
            users=(SOME, MIXED),
        )
        for number, faulty in enumerate(FAULTY)
    ],
    Story(
        title="of another's session",
        steps=(
            fetch(INITIAL, (QUEUE, 1), user=SUPER),
            fetch(1, (QUEUE, 1)),
            acknowledge(2, (QUEUE, 0, ACCEPTED)),
            fetch(FINAL),
        ),
        users=(SOME,),
    ),
)

ACKNOWLEDGEMENTS = (
    Story(title="of strangers", steps=(acknowledge(3, (QUEUE, 0, ACCEPTED)),), users=EVERYBODY),
    Story(title="of the end of nothing", steps=(acknowledge(FINAL, (QUEUE, 0)),), users=FEW),
    Story(title="that begin", steps=(acknowledge(INITIAL, (QUEUE, 0)),), users=FEW),
    Story(title="of nobody", steps=(acknowledge(3, group_id=None),), users=FEW),
    Story(title="of a nameless member", steps=(acknowledge(3, member_id=""),), users=FEW),
    Story(title="of a strange group", steps=(acknowledge(3, group_id="x-1"),), users=FEW),
)


def offsets(*groups: tuple[str, list[str] | None]) -> Step:
    """Return a DescribeShareGroupOffsets of these topics of each group."""
    asked = [
        {
            "group_id": group,
            "topics": None if topics is None else [{"topic_name": n, "partitions": [0]} for n in topics],
        }
        for group, topics in groups
    ]
    return Step(api=OFFSETS, fields={"groups": asked})


def described(title: str, users: tuple[str, ...], *groups: tuple[str, list[str] | None]) -> Story:
    """Return a story of one DescribeShareGroupOffsets."""
    return Story(title=title, steps=(offsets(*groups),), users=users)


def altering(*topics: str, group: str = GROUP, partition: int = 0) -> Step:
    """Return an AlterShareGroupOffsets."""
    wanted = [{"partition_index": partition, "start_offset": 1}]
    given = [{"topic_name": name, "partitions": wanted} for name in topics]
    return step(ALTER, group_id=group, topics=given)


def deleting(*topics: str, group: str = GROUP) -> Step:
    """Return a DeleteShareGroupOffsets."""
    return step(DELETE, group_id=group, topics=[{"topic_name": name} for name in topics])


EVERY_TOPIC = (QUEUE, SHUT_QUEUE, "hidden", "pay-missing", "gone")
OF_GROUPS = (
    described("of some topics", EVERYBODY, ("g-shared-1", [*EVERY_TOPIC])),
    described("of all topics", EVERYBODY, ("g-shared-1", None)),
    described("of groups", FEW, ("g-shared-1", [QUEUE]), ("x-1", [QUEUE]), ("g-shared-2", None)),
    described("of a group twice", FEW, ("g-none", [QUEUE]), ("x-1", None), ("g-none", [SHUT_QUEUE])),
    described("of a topic twice", FEW, ("g-none", [QUEUE, SHUT_QUEUE, QUEUE])),
    described("of hidden topics only", (SOME, MIXED), ("g-none", [SHUT_QUEUE, "hidden"])),
    described("of nothing", FEW, ("g-none", [])),
    described("of no group", FEW),
    described("of a nameless group", FEW, ("", [QUEUE])),
)
CHANGES = (
    Story(title="of some topics", steps=(altering(*EVERY_TOPIC),), users=EVERYBODY),
    Story(title="of denied topics only", steps=(altering(SHUT_QUEUE),), users=(SOME, MIXED)),
    Story(title="of nothing", steps=(altering(),), users=FEW),
    Story(title="of a nameless group", steps=(altering(QUEUE, group=""),), users=FEW),
    Story(title="of some topics", steps=(deleting(*EVERY_TOPIC, group="g-shared-none"),), users=EVERYBODY),
    Story(title="of no group that is there", steps=(deleting(*EVERY_TOPIC),), users=THREE),
    Story(title="of nothing", steps=(deleting(),), users=FEW),
    Story(title="of a nameless group", steps=(deleting(QUEUE, group=""),), users=FEW),
    Story(
        title="a group's life",
        steps=(
            altering(QUEUE, SHUT_QUEUE, "gone"),
            offsets((GROUP, [QUEUE, SHUT_QUEUE])),
            offsets((GROUP, None)),
            *[
                Step(api=OFFSETS, fields=offsets((GROUP, None)).fields, user=user)
                for user in (SUPER, MIXED, READER)
            ],
            deleting(QUEUE, SHUT_QUEUE, "gone"),
            offsets((GROUP, None)),
        ),
        users=(SUPER, ALL, SOME),
    ),
)

STORIES = MEMBERS + SESSIONS + ACKNOWLEDGEMENTS + LIVES + CHANGES + OF_GROUPS
