"""A model of an upstream cluster that trusts every client: topics, groups, fetch sessions (KIP-227).

It answers whole frames, which it reads and writes with kustos's codecs. The checker finds requests that must
not have arrived here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any

from kustos.wire import (
    ZERO_UUID,
    Message,
    MessageCodec,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
)
from testkit.protocol.administration import DONE
from testkit.protocol.shares import SHARED, ShareSession
from testkit.tap.share_answers import is_member

INVALID_REQUEST = 42
UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, INVALID_TOPIC = 3, 100, 17
SESSION_NOT_FOUND, INVALID_EPOCH, TOPIC_ID_ERROR = 70, 71, 106
PARTITIONS = 3
"""How many each topic has."""
MAX_EPOCH = 2**31 - 1


@dataclass
class Session:
    """A broker's fetch session."""

    uses_ids: bool
    partitions: dict[tuple[str | bytes, int], None]
    epoch: int = 1


@dataclass
class Model:
    """The cluster's state. `auto_creates`: its `auto.create.topics.enable`."""

    topics: dict[str, bytes] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    """By group name: the topics for which it has committed offsets and assignments."""
    subscribed: dict[str, dict[str, tuple[list[str], str]]] = field(default_factory=dict)
    """Group → member id → the topics that it named last, and its expression."""
    described_with: int = 0
    """The error of each description of consumer groups."""
    made_by_streams: dict[str, list[str]] = field(default_factory=dict)
    """Group → the internal topics in its topology."""
    transactions: dict[str, list[str]] = field(default_factory=dict)
    """By transactional id: the topics in it."""
    auto_creates: bool = True
    sessions: dict[int, Session] = field(default_factory=dict)
    shares: dict[tuple[str, str], ShareSession] = field(default_factory=dict)
    """By group and member id."""
    next_session: int = 100
    random: Random = field(default_factory=lambda: Random(1))

    @property
    def names(self) -> dict[bytes, str]:
        return {topic_id: name for name, topic_id in self.topics.items()}

    def create(self, name: str) -> None:
        self.topics[name] = sha256(name.encode()).digest()[:16]

    def answer(self, frame: bytes) -> bytes | None:
        """Return the response frame, without length prefix; None if the client expects no response."""
        api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        codec = request_codec(api_key, version)
        header = read_request_header(frame, codec.flexible)
        request = codec.decode(frame, header.body_offset).message
        if api_key == 0 and request.acks == 0:
            return None
        made = response_codec(api_key, version)
        response = ANSWERS[api_key](self, request, made)
        return response_frame(api_key, made, header.correlation_id, made.encode(response))[4:]

    def code_of(self, topic: Message) -> int:
        if topic.get("topic_id", ZERO_UUID) != ZERO_UUID:
            return 0 if topic.topic_id in self.names else UNKNOWN_TOPIC_ID
        return 0 if topic.get("name", topic.get("topic")) in self.topics else UNKNOWN_TOPIC

    def mirrored(self, request: Message, made: MessageCodec, inner: tuple[str, str, str, str]) -> Message:
        """Answer topics and partitions one by one."""
        items, partitions, index, answers = inner
        topics, below = ("responses", "index") if items == "topic_data" else ("topics", "partition_index")
        element = made.root.ELEMENTS[topics]
        return made.root.fit(**{
            topics: [
                element.fit(
                    name=topic.get("name"),
                    topic_id=topic.get("topic_id"),
                    **{
                        answers: [
                            element.ELEMENTS[answers].fit(**{
                                below: getattr(partition, index) if index else partition,
                                "error_code": self.code_of(topic),
                            })
                            for partition in getattr(topic, partitions)
                        ]
                    },
                )
                for topic in request.get(items) or ()
            ]
        })  # fmt: skip

    def metadata(self, request: Message, made: MessageCodec) -> Message:
        names = self.names
        topics = made.root.ELEMENTS["topics"]
        response = made.root(brokers=[made.root.ELEMENTS["brokers"].fit(node_id=1, host="upstream", port=1)])
        response.topics = []
        asked: list[tuple[str | None, bytes]]
        if request.topics is None or (made.version == 0 and not request.topics):
            asked = [(name, ZERO_UUID) for name in self.topics]
        else:
            asked = [(topic.name, topic.get("topic_id", ZERO_UUID)) for topic in request.topics]
        for name, topic_id in asked:
            if topic_id != ZERO_UUID:
                code = 0 if topic_id in names else UNKNOWN_TOPIC_ID
                name = names.get(topic_id)
            else:
                assert name is not None
                code = 0 if name in self.topics else INVALID_TOPIC if "!" in name else UNKNOWN_TOPIC
                if (
                    code == UNKNOWN_TOPIC
                    and request.get("allow_auto_topic_creation", True)
                    and self.auto_creates
                ):
                    self.create(name)
                topic_id = self.topics.get(name, ZERO_UUID)
            count = PARTITIONS if code == 0 else 0
            made_partitions = [topics.ELEMENTS["partitions"].fit(partition_index=n) for n in range(count)]
            response.topics.append(
                topics.fit(error_code=code, name=name, topic_id=topic_id, partitions=made_partitions)
            )
        return response

    def offset_fetch(self, request: Message, made: MessageCodec) -> Message:
        batched = "groups" in request.FIELDS
        root = made.root.ELEMENTS["groups"] if batched else made.root
        topic = root.ELEMENTS["topics"]
        partition = topic.ELEMENTS["partitions"]
        answers = []
        for group in request.groups if batched else [request]:
            if group.topics is None:
                known = self.groups.get(group.group_id, [])
                items = [(name, self.topics.get(name, b"\x99" * 16), [0, 1]) for name in known]
            else:
                items = [(t.get("name"), t.get("topic_id"), t.partition_indexes) for t in group.topics]
            topics = [
                topic.fit(name=n, topic_id=i, partitions=[partition.fit(partition_index=p) for p in ps])
                for n, i, ps in items
            ]
            answers.append(root.fit(group_id=group.group_id if batched else "", topics=topics))
        return made.root(groups=answers) if batched else answers[0]

    def coordinators(self, request: Message, made: MessageCodec) -> Message:
        if "coordinators" not in made.root.FIELDS:
            return made.root.fit(node_id=1, host="upstream", port=1)
        item = made.root.ELEMENTS["coordinators"]
        return made.root(
            coordinators=[item(key=k, node_id=1, host="upstream", port=1) for k in request.coordinator_keys]
        )

    def described_groups(self, request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["groups"]
        groups = []
        for name in request.get("groups") or request.get("group_ids") or ():
            group = item.fit(group_id=name, authorized_operations=123, error_code=0)
            if name not in self.groups:
                group.error_code = 69
            elif "assignment" in (member := item.ELEMENTS["members"]).FIELDS:
                assignment = member.ELEMENTS["assignment"]
                topics = assignment.ELEMENTS["topic_partitions"]
                listed = [topics(topic_name=n, topic_id=self.topics[n]) for n in self.groups[name]]
                target = assignment(topic_partitions=listed)
                where = "target_assignment" if "target_assignment" in member.FIELDS else "assignment"
                group.members = [member(member_id="m", **{where: target})]
            groups.append(group)
        return made.root(groups=groups)

    def described_consumers(self, request: Message, made: MessageCodec) -> Message:
        described = self.described_groups(request, made)
        for group in described.groups:
            if self.described_with:
                group.error_code, group.members = self.described_with, []
            elif group.group_id in self.subscribed:
                member = made.root.ELEMENTS["groups"].ELEMENTS["members"]
                group.error_code = 0
                group.members += [
                    member(
                        member_id=member_id,
                        subscribed_topic_names=names,
                        subscribed_topic_regex=expression or None,
                    )
                    for member_id, (names, expression) in self.subscribed[group.group_id].items()
                ]
        return described

    def heartbeat(self, request: Message, made: MessageCodec) -> Message:
        members = self.subscribed.setdefault(request.group_id, {})
        names, regex = members.get(request.member_id, ([], ""))
        if request.member_epoch < 0:
            members.pop(request.member_id, None)
        else:
            said_names, said_regex = request.subscribed_topic_names, request.get("subscribed_topic_regex")
            members[request.member_id] = (
                names if said_names is None else said_names,
                regex if said_regex is None else said_regex,
            )
        return self.plain(request, made)

    def share_heartbeat(self, request: Message, made: MessageCodec) -> Message:
        return made.root(error_code=0 if is_member(request.member_id) else INVALID_REQUEST)

    def markers(self, request: Message, made: MessageCodec) -> Message:
        marker = made.root.ELEMENTS["markers"]
        topic_type = marker.ELEMENTS["topics"]
        partition = topic_type.ELEMENTS["partitions"]

        def written(topic: Message) -> Message:
            code = self.code_of(topic)
            ends = [partition(partition_index=index, error_code=code) for index in topic.partition_indexes]
            return topic_type(name=topic.name, partitions=ends)

        return made.root(
            markers=[
                marker(producer_id=each.producer_id, topics=list(map(written, each.topics)))
                for each in request.markers
            ]
        )

    def described_streams(self, request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["groups"]
        topology = item.ELEMENTS["topology"]
        part = topology.ELEMENTS["subtopologies"]
        info = part.ELEMENTS["state_changelog_topics"]
        groups = []
        for name in request.group_ids:
            group = item(
                group_id=name, authorized_operations=123, error_code=0 if name in self.groups else 69
            )
            if name in self.groups:
                made_topics = [info(name=each) for each in self.made_by_streams.get(name, ())]
                of_group = part(source_topics=self.groups[name], state_changelog_topics=made_topics)
                group.topology = topology(subtopologies=[of_group])
            groups.append(group)
        return made.root(groups=groups)

    def created(self, request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["topics"]
        results = []
        for topic in request.topics:
            code = 36 if topic.name in self.topics else 0
            values: dict[str, Any] = {"num_partitions": PARTITIONS, "replication_factor": 1}
            if code == 0 and not request.validate_only:
                self.create(topic.name)
                values["topic_id"] = self.topics[topic.name]
            results.append(item.fit(name=topic.name, error_code=code, **values))
        return made.root(topics=results)

    def deleted(self, request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["responses"]
        asked = [(t.name, t.topic_id) for t in request.get("topics") or ()]
        asked += [(name, ZERO_UUID) for name in request.get("topic_names") or ()]
        results = []
        for name, topic_id in asked:
            known = name if name is not None else self.names.get(topic_id)
            code = 0 if known in self.topics else UNKNOWN_TOPIC_ID if name is None else UNKNOWN_TOPIC
            if known is not None:
                topic_id = self.topics.get(known, topic_id)
            results.append(item.fit(name=known, topic_id=topic_id, error_code=code))
        self.random.shuffle(results)
        return made.root(responses=results)

    def topic_partitions(self, request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["topics"]
        names = sorted({topic.name for topic in request.topics} or self.topics)
        if request.cursor is not None:
            names = [name for name in names if name >= request.cursor.topic_name]
        limit = max(1, request.response_partition_limit)
        topics = [item(name=n, topic_id=self.topics.get(n, ZERO_UUID)) for n in names[:limit]]
        for topic in topics:
            topic.error_code = 0 if topic.name in self.topics else UNKNOWN_TOPIC
        cursor = made.root.ELEMENTS["next_cursor"]
        following = cursor(topic_name=names[limit]) if len(names) > limit else None
        return made.root(topics=topics, next_cursor=following)

    def fetch(self, request: Message, made: MessageCodec) -> Message:
        """Serve a Fetch as FetchManager.newContext does."""
        asked = {
            (topic.get("topic", topic.get("topic_id")), partition.partition): None
            for topic in request.topics
            for partition in topic.partitions
        }
        forgotten = [
            (topic.get("topic", topic.get("topic_id")), index)
            for topic in request.get("forgotten_topics_data") or ()
            for index in topic.partitions
        ]
        session_id, epoch = request.get("session_id", 0), request.get("session_epoch", -1)
        uses_ids = made.version >= 13
        if epoch in {0, -1}:
            self.sessions.pop(session_id, None)
            opened = 0
            if epoch == 0 and asked:
                opened, self.next_session = self.next_session, self.next_session + 1
                self.sessions[opened] = Session(uses_ids, asked)
            return self.fetched(made, asked, opened)
        session = self.sessions.get(session_id)
        if session is None or session.epoch != epoch or session.uses_ids != uses_ids:
            code = SESSION_NOT_FOUND if session is None else (
                INVALID_EPOCH if session.epoch != epoch else TOPIC_ID_ERROR
            )  # fmt: skip
            return made.root.fit(error_code=code)
        session.partitions |= asked
        for partition in forgotten:
            session.partitions.pop(partition, None)
        if not session.partitions:
            del self.sessions[session_id]
            return self.fetched(made, asked, 0)
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        return self.fetched(made, session.partitions, session_id)

    def fetched(self, made: MessageCodec, partitions: dict[Any, None], session_id: int) -> Message:
        element = made.root.ELEMENTS["responses"]
        below = element.ELEMENTS["partitions"]
        topics: dict[Any, list[Message]] = {}
        for topic, index in partitions:
            known = topic in self.topics or topic in self.names
            code = 0 if known else UNKNOWN_TOPIC if isinstance(topic, str) else UNKNOWN_TOPIC_ID
            record = below.fit(partition_index=index, error_code=code, records=b"")
            topics.setdefault(topic, []).append(record)
        name = "topic" if "topic" in element.FIELDS else "topic_id"
        responses = [element(**{name: topic, "partitions": items}) for topic, items in topics.items()]
        return made.root.fit(session_id=session_id, responses=responses)

    def configs(self, request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["results"]
        return made.root(
            results=[
                item(resource_type=r.resource_type, resource_name=r.resource_name) for r in request.resources
            ]
        )

    def listed_groups(self, _request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["groups"]
        return made.root(groups=[item(group_id=name) for name in self.groups])

    def cluster(self, _request: Message, made: MessageCodec) -> Message:
        broker = made.root.ELEMENTS["brokers"](broker_id=1, host="upstream", port=1)
        return made.root(
            brokers=[broker], cluster_id="small-world", controller_id=1, cluster_authorized_operations=77
        )

    def partitions_of_transaction(self, request: Message, made: MessageCodec) -> Message:
        if "error_code" in made.root.FIELDS:
            return made.root()
        result = made.root.ELEMENTS["results_by_topic_v3_and_below"]
        partition = result.ELEMENTS["results_by_partition"]
        return made.root(
            results_by_topic_v3_and_below=[
                result(
                    name=topic.name,
                    results_by_partition=[partition(partition_index=index) for index in topic.partitions],
                )
                for topic in request.v3_and_below_topics
            ]
        )

    def described_transactions(self, request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["transaction_states"]
        topic = item.ELEMENTS["topics"]
        states = []
        for name in request.transactional_ids:
            topics = [topic(topic=each, partitions=[0]) for each in self.transactions.get(name, ())]
            states.append(item(transactional_id=name, topics=topics))
        return made.root(transaction_states=states)

    def listed_transactions(self, _request: Message, made: MessageCodec) -> Message:
        item = made.root.ELEMENTS["transaction_states"]
        return made.root(transaction_states=[item(transactional_id=name) for name in self.transactions])

    def plain(self, _request: Message, made: MessageCodec) -> Message:
        return made.root()


def _mirror(*inner: str) -> Callable[[Model, Message, MessageCodec], Message]:
    return lambda model, request, made: model.mirrored(request, made, inner)  # type: ignore[arg-type]


def _done(
    answer: Callable[[Message, MessageCodec], Message],
) -> Callable[[Model, Message, MessageCodec], Message]:
    return lambda _model, request, made: answer(request, made)


ANSWERS: dict[int, Callable[[Model, Message, MessageCodec], Message]] = {
    0: _mirror("topic_data", "partition_data", "index", "partition_responses"),
    1: Model.fetch,
    2: _mirror("topics", "partitions", "partition_index", "partitions"),
    3: Model.metadata,
    8: _mirror("topics", "partitions", "partition_index", "partitions"),
    9: Model.offset_fetch,
    10: Model.coordinators,
    **dict.fromkeys(
        (11, 12, 13, 14, 22, 25, 26, 35, 46, 48, 57, 64, 71, 72, 74, 80, 81, 88, 93, 94), Model.plain
    ),
    15: Model.described_groups,
    16: Model.listed_groups,
    19: Model.created,
    20: Model.deleted,
    21: _mirror("topics", "partitions", "partition_index", "partitions"),
    24: Model.partitions_of_transaction,
    27: Model.markers,
    28: _mirror("topics", "partitions", "partition_index", "partitions"),
    32: Model.configs,
    60: Model.cluster,
    47: _mirror("topics", "partitions", "partition_index", "partitions"),
    61: _mirror("topics", "partition_indexes", "", "partitions"),
    65: Model.described_transactions,
    66: Model.listed_transactions,
    68: Model.heartbeat,
    69: Model.described_consumers,
    76: Model.share_heartbeat,
    77: Model.described_groups,
    89: Model.described_streams,
    75: Model.topic_partitions,
    **{key: _done(answer) for key, answer in DONE.items()},
    **SHARED,
}
