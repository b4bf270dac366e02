"""Re-decides what the share sessions of one connection (KIP-932) held upstream, as a tap saw it."""

from dataclasses import dataclass, field
from typing import Any

from testkit.tap.client import Client, Op, Violation
from testkit.tap.frames import code

FETCH = 78
INITIAL, FINAL = 0, -1
Partition = tuple[bytes, int]
Member = tuple[str, str]


@dataclass
class SharesUpstream:
    """The sessions that upstream keeps for one connection, by group and member."""

    held: dict[Member, set[Partition]] = field(default_factory=dict)

    def judge(self, body: Any, client: Client) -> list[Violation]:
        """Return why a ShareFetch must not have been there, for all that its session holds."""
        if body.share_session_epoch != INITIAL and member_of(body) not in self.held:
            return [Violation("share_fetch", "a session is the connection's own", repr(member_of(body)))]
        return [
            Violation("share_fetch", "no session upstream holds what may not be read", repr(key))
            for key in self.after(body)
            if client.topic_refusal(Op.READ, key[0]) is not None
        ]

    def after(self, body: Any) -> set[Partition]:
        """Return the partitions of a session once a ShareFetch has changed it."""
        named = named_partitions(body.topics)
        if body.share_session_epoch in {INITIAL, FINAL}:
            return named
        gone = {
            (topic.topic_id.bytes, index)
            for topic in body.forgotten_topics_data
            for index in topic.partitions
        }
        return (self.held[member_of(body)] | named) - gone

    def learn(self, body: Any, answer: Any) -> list[Violation]:
        """Take note of what upstream answered, and return what it must not have."""
        if code(answer):
            self.held.pop(member_of(body), None)
            return []
        after = self.after(body)
        allowed = after | named_partitions(body.topics)
        if body.share_session_epoch == FINAL:
            self.held.pop(member_of(body), None)
        else:
            self.held[member_of(body)] = after
        return [
            Violation("share_fetch", "nothing comes that was not asked for", repr(key))
            for key in named_partitions(answer.responses) - allowed
        ]


def member_of(body: Any) -> Member:
    return str(body.group_id), str(body.member_id)


def named_partitions(topics: Any) -> set[Partition]:
    return {(topic.topic_id.bytes, each.partition_index) for topic in topics for each in topic.partitions}
