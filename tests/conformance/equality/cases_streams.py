"""Streams groups: members with a topology, and the topics that a broker makes for them (KIP-1071)."""

from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Said, Step, Story, one, step
from tests.conformance.equality.world import ALL, EVERYBODY, FEW, MIXED, NOBODY, SOME, SUPER

BEAT, DESCRIBE = ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE
TELL = ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
MEMBER = "AAAAAAAAQACAAAAAAAAAAA"
GROUP, SHARED = "g-streams-{run}", "g-shared-{run}"
MADE, FOREIGN = "pay-{run}-changelog", "other-{run}-changelog"
REPARTITION = "pay-{run}-repartition"


def topology(
    *sources: str, makes: tuple[str, ...] = (), repartitions: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a topology that reads topics, keeps changelogs, and may repartition what it reads."""

    def topic(name: str, partitions: int) -> dict[str, Any]:
        return {"name": name, "partitions": partitions, "replication_factor": 0, "topic_configs": []}

    first = {
        "subtopology_id": "0",
        "source_topics": list(sources),
        "state_changelog_topics": [topic(name, 0) for name in makes],
        "repartition_sink_topics": list(repartitions),
    }
    rest = {
        "subtopology_id": "1",
        "source_topics": [],
        "repartition_source_topics": [topic(name, 2) for name in repartitions],
    }
    return {"epoch": 0, "subtopologies": [first, *([rest] if repartitions else [])]}


def by_expression(*sources: str) -> dict[str, Any]:
    """Return a topology that also reads the topics of an expression."""
    of = topology(*sources, makes=(MADE,))
    of["subtopologies"][0]["source_topic_regex"] = ["", "pay-.*"]
    return of


def beat(group: str, epoch: Any, of: dict[str, Any] | None = None, member: str = MEMBER) -> dict[str, Any]:
    """Return a heartbeat of a member that has no tasks yet."""
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "endpoint_information_epoch": -1,
        "rebalance_timeout": 30_000 if of is not None else -1,
        "topology": of,
        "active_tasks": [] if of is not None else None,
        "standby_tasks": [] if of is not None else None,
        "warmup_tasks": [] if of is not None else None,
        "process_id": "process" if of is not None else None,
        "client_tags": [] if of is not None else None,
        "task_offsets": None,
        "task_end_offsets": None,
    }


def described(*groups: str, user: str | None = None) -> Step:
    """Return a description of groups."""
    asked = {"include_authorized_operations": True, "include_topology_description": True}
    return step(DESCRIBE, group_ids=list(groups), user=user, **asked)


def node(name: str, kind: int, *successors: str, **topics: Any) -> dict[str, Any]:
    """Return a node of a described topology."""
    nothing: dict[str, Any] = {"source_topics": [], "sink_topic": None, "stores": []}
    return nothing | {"name": name, "node_type": kind, "successors": list(successors)} | topics


def told(group: str, epoch: int = 0, member: str = MEMBER) -> dict[str, Any]:
    """Return the description of a topology that reads one topic and writes another one (KIP-1331)."""
    source, sink = node("source", 1, "sink", source_topics=["orders"]), node("sink", 3, sink_topic="hidden")
    whole = {"subtopologies": [{"subtopology_id": "0", "nodes": [source, sink]}], "global_stores": []}
    return {"group_id": group, "member_id": member, "topology_epoch": epoch, "topology_description": whole}


def seen(topic: str) -> Step:
    """Return the question for a topic, until it is there."""
    wanted = {"topics": [{"name": topic, "topic_id": bytes(16)}], "allow_auto_topic_creation": False}
    return Step(api=ApiKey.METADATA, version=4, fields=wanted, user=SUPER, settles=True, good=True)


def making(title: str, users: tuple[str, ...], of: dict[str, Any], *topics: str) -> Story:
    """Return a story of a member whose group gets topics of its own."""
    return Story(
        title=title,
        steps=(step(BEAT, **beat(GROUP, 0, of)), *map(seen, topics), step(BEAT, **beat(GROUP, -1))),
        users=users,
    )


STORIES = (
    one("a group of nobody", BEAT, EVERYBODY, **beat("g-closed", 0, topology("orders"))),
    one("a nameless group", BEAT, FEW, **beat("", 0, topology("orders"))),
    one("a hidden topic among others", BEAT, (SOME, MIXED), **beat(GROUP, 0, topology("orders", "hidden"))),
    one("a hidden changelog", BEAT, (SOME,), **beat(GROUP, 0, topology("orders", makes=("x-changelog",)))),
    one(
        "topics of Kafka's own",
        BEAT,
        (SUPER, SOME),
        **beat(GROUP, 0, topology("__consumer_offsets", "__transaction_state")),
    ),
    one("names of no topics", BEAT, (SUPER, SOME), **beat(GROUP, 0, topology("a b", "", "hidden", "x/y"))),
    one("names that no text can quote", BEAT, (SUPER, SOME), **beat(GROUP, 0, topology("x" * 32_760))),
    one("an expression of topics", BEAT, EVERYBODY, **beat(GROUP, 0, by_expression("orders"))),
    one("an expression of a stranger", BEAT, FEW, **beat(GROUP, 3, by_expression("orders"))),
    one("an expression of one who leaves", BEAT, FEW, **beat(GROUP, -1, by_expression("orders"))),
    one("an expression and a hidden topic", BEAT, (SOME, MIXED), **beat(GROUP, 0, by_expression("hidden"))),
    one("an expression and what is no topic", BEAT, (SUPER, SOME), **beat(GROUP, 0, by_expression("a b"))),
    one("a stranger", BEAT, FEW, **beat(GROUP, 3)),
    one("a stranger who leaves", BEAT, FEW, **beat(GROUP, -1)),
    one("no topology", BEAT, FEW, **beat(GROUP, 0)),
    one("a missing source", BEAT, (SUPER, SOME), **beat(GROUP, 0, topology("pay-missing", makes=(MADE,)))),
    Story(
        title="a member's life",
        steps=(
            step(BEAT, **beat(GROUP, 0, topology("orders", "pay-in"))),
            described(GROUP, "x-1"),
            *[described(GROUP, user=user) for user in (SUPER, MIXED, NOBODY)],
            step(BEAT, **beat(GROUP, Said(0, ("member_epoch",)))),
            step(BEAT, **beat(GROUP, -1)),
        ),
        users=(SUPER, SOME, ALL),
    ),
    Story(
        title="a group with a hidden topic",
        steps=(
            step(BEAT, user=SUPER, **beat(GROUP, 0, topology("orders", "hidden"))),
            described(GROUP, "g-none"),
            step(BEAT, user=SUPER, **beat(GROUP, -1)),
        ),
        users=(SOME, MIXED, ALL),
    ),
    making("a changelog is made", (SUPER, SOME, ALL), topology("orders", makes=(MADE,)), MADE),
    making(
        "topics between are made", (SUPER, SOME), topology("orders", repartitions=(REPARTITION,)), REPARTITION
    ),
    Story(
        title="a topic that may not be made",
        steps=(
            step(BEAT, **beat(SHARED, 0, topology("other", makes=(FOREIGN,)))),
            step(
                ApiKey.METADATA,
                topics=[{"name": FOREIGN, "topic_id": bytes(16)}],
                allow_auto_topic_creation=False,
                user=SUPER,
            ),
            # the group that only the broker has is gone again, since groups are listed later
            step(BEAT, **beat(SHARED, -1)),
            step(ApiKey.DELETE_GROUPS, user=SUPER, groups_names=[SHARED]),
        ),
        users=(MIXED,),
    ),
    Story(
        title="a member describes its topology",
        steps=(
            step(BEAT, **beat(GROUP, 0, topology("orders"))),
            step(TELL, **told(GROUP)),
            step(TELL, **told(GROUP, epoch=7)),
            step(TELL, **told(GROUP, member="stranger")),
            *[described(GROUP, user=user) for user in (SUPER, MIXED, NOBODY)],
            step(BEAT, **beat(GROUP, -1)),
        ),
        users=(SUPER, SOME, ALL),
    ),
    one("of a group of nobody", TELL, EVERYBODY, **told("g-closed")),
    one("of a group that is none", TELL, EVERYBODY, **told("g-none")),
    one("of a nameless group", TELL, FEW, **told("")),
    one("of groups that are none", DESCRIBE, EVERYBODY, group_ids=["g-none", "x-1", "g-void"]),
    one("of a group twice", DESCRIBE, FEW, group_ids=["g-none", "x-1", "g-none"]),
    one("of no group", DESCRIBE, FEW, group_ids=[]),
    one("of a nameless group", DESCRIBE, FEW, group_ids=[""]),
)
