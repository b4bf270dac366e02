"""Requests that wait at the broker until a test lets them go: one for each API that can."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from kustos.acl import ResourceType
from testkit.guarded.cluster import Op, Type, acl
from testkit.late_passage import fields as frames
from testkit.late_passage.fields import (
    DELETE_RECORDS,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    JOIN_GROUP,
    METADATA,
    PRODUCE,
    SHARE_FETCH,
    SHARE_GROUP_HEARTBEAT,
    SYNC_GROUP,
    VERSIONS,
)
from testkit.late_passage.stage import Stage
from testkit.processes import freeze, thaw
from testkit.tap.frames import code, read_response
from testkit.waiting import wait_until

JOINING: Final = "PreparingRebalance"
FIRST: Final = b"first"


@dataclass(frozen=True)
class Head:
    """A request that will wait; `release` lets the broker answer it; `right` is what it needs."""

    api_key: int
    frame: bytes
    release: Callable[[], object]
    right: tuple[ResourceType, str]


class Member:
    """Another member of the group, at the broker itself."""

    def __init__(self, stage: Stage) -> None:
        wait_until(lambda: is_coordinated(stage), what="the group has a coordinator")
        self._client = stage.at_broker()
        self._group = stage.group
        self._id = ""
        self._generation = -1

    def join(self) -> None:
        """Join, or join again; return when the group is complete."""
        answer = self._client.ask(
            JOIN_GROUP, VERSIONS[JOIN_GROUP], **frames.join_group(self._group, self._id)
        )
        assert code(answer) == 0
        self._id, self._generation = str(answer.member_id), int(answer.generation_id)
        assert answer.leader == answer.member_id

    def sync(self) -> None:
        """Hand in what the leader assigns: nothing."""
        fields = frames.sync_group(self._group, self._generation, self._id)
        answer = self._client.ask(SYNC_GROUP, VERSIONS[SYNC_GROUP], **fields)
        assert code(answer) == 0


def is_coordinated(stage: Stage) -> bool:
    """Return whether the broker has read what it must know to lead groups."""
    found = stage.ask(stage.kafka, FIND_COORDINATOR, **frames.find_coordinator(stage.group))
    described = stage.ask(stage.kafka, DESCRIBE_GROUPS, **frames.describe_group(stage.group))
    return code(found) == code(described.groups[0]) == 0


def wait_joining(stage: Stage) -> None:
    """Return once the broker says that the group waits for members to join."""

    def waits() -> bool:
        answer = stage.ask(stage.kafka, DESCRIBE_GROUPS, **frames.describe_group(stage.group))
        return str(answer.groups[0].group_state) == JOINING

    wait_until(waits, what="the group waits for its members")


def joining(stage: Stage) -> Head:
    """A JoinGroup waits for another member to join again."""
    member = Member(stage)
    member.join()
    member.sync()
    frame = stage.request(JOIN_GROUP, **frames.join_group(stage.group))

    def release() -> None:
        wait_joining(stage)  # a member that came before the request would be a group without it
        member.join()

    return Head(JOIN_GROUP, frame, release, (Type.GROUP, stage.group))


def syncing(stage: Stage) -> Head:
    """The SyncGroup of a follower waits for the leader's."""
    member = Member(stage)
    member.join()
    member.sync()
    stage.send(stage.request(JOIN_GROUP, **frames.join_group(stage.group)))
    wait_joining(stage)
    member.join()
    _, joined = read_response(stage.client.receive(), JOIN_GROUP, VERSIONS[JOIN_GROUP])
    assert code(joined) == 0
    fields = frames.sync_group(stage.group, int(joined.generation_id), str(joined.member_id))
    return Head(SYNC_GROUP, stage.request(SYNC_GROUP, **fields), member.sync, (Type.GROUP, stage.group))


def fetching(stage: Stage) -> Head:
    """A Fetch waits for a first record."""
    topic = f"head-{stage.name}"
    stage.make_topic(topic, [stage.broker])
    stage.grant(acl(stage.user, Op.READ, Type.TOPIC, topic))
    frame = stage.request(FETCH, **frames.fetch(topic, max_wait_ms=frames.LONG_MS))
    return Head(FETCH, frame, partial(stage.write, FIRST, topic), (Type.TOPIC, topic))


def sharing(stage: Stage) -> Head:
    """A ShareFetch waits for a first record, of a partition that the group's coordinator has prepared."""
    topic, group = f"head-{stage.name}", f"share-{stage.group}"
    stage.make_topic(topic, [stage.broker])
    stage.grant(acl(stage.user, Op.READ, Type.GROUP, group))
    stage.grant(acl(stage.user, Op.READ, Type.TOPIC, topic))
    stage.ask(stage.kafka, INCREMENTAL_ALTER_CONFIGS, **frames.share_from_the_beginning(group))
    epochs = [0]

    def is_prepared() -> bool:
        fields = frames.share_heartbeat(group, epochs[-1], topic)
        answer = stage.ask(stage.kafka, SHARE_GROUP_HEARTBEAT, **fields)
        if code(answer):
            return False
        epochs.append(int(answer.member_epoch))
        return bool(answer.assignment is not None and answer.assignment.topic_partitions)

    wait_until(is_prepared, what="the member has a partition")
    described = stage.ask(stage.kafka, METADATA, **frames.metadata(topic))
    frame = stage.request(SHARE_FETCH, **frames.share_fetch(group, described.topics[0].topic_id))
    return Head(SHARE_FETCH, frame, partial(stage.write, FIRST, topic), (Type.TOPIC, topic))


def deleting(stage: Stage, follower: int, pid: int) -> Head:
    """A DeleteRecords waits for a follower that stands still."""
    topic = f"head-{stage.name}"
    stage.make_topic(topic, [stage.broker, follower])
    written = stage.ask(stage.kafka, PRODUCE, **frames.produce(topic, FIRST, acks=-1))
    assert code(written.responses[0].partition_responses[0]) == 0
    stage.grant(acl(stage.user, Op.DELETE, Type.TOPIC, topic))
    frame = stage.request(DELETE_RECORDS, **frames.delete_records(topic, 1))
    release = partial(thaw, pid)
    stage.finally_do(release)
    freeze(pid)
    return Head(DELETE_RECORDS, frame, release, (Type.TOPIC, topic))


def producing(stage: Stage, follower: int, pid: int) -> Head:
    """A Produce with acks=all waits for a follower that stands still."""
    topic = f"head-{stage.name}"
    stage.make_topic(topic, [stage.broker, follower])
    stage.grant(acl(stage.user, Op.WRITE, Type.TOPIC, topic))
    frame = stage.request(PRODUCE, **frames.produce(topic, FIRST, acks=-1))
    release = partial(thaw, pid)
    stage.finally_do(release)
    freeze(pid)
    return Head(PRODUCE, frame, release, (Type.TOPIC, topic))
