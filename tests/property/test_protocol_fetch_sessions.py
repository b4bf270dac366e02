"""Theorem about fetch sessions (KIP-227): every Fetch is decided as on a broker with an authorizer.

Two brokers get the same requests. The reference is a model of Kafka's broker, whose session also keeps the
denied partitions and decides about all of them on each Fetch. The other is the guard in front of a model that
trusts every client. Whatever happens in between (grants, revocations, wrong epochs, foreign sessions, several
sessions, closed ones), both must answer the same partitions with the same codes.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.fetch_sessions import SESSIONS_PER_CONNECTION
from kustos.wire import Message, request_codec
from testkit.protocol.cluster_model import MAX_EPOCH, Model, Session
from testkit.protocol.driver import HOST, PRINCIPAL, Driver
from testkit.protocol.random_requests import EXISTING, UNKNOWN_ID, allow, frame_of, model
from testkit.tap.answers import Coded
from testkit.tap.checker import Client
from testkit.tap.frames import code, read_response, topic_key

NAMES = [*EXISTING[:4], "missing-topic"]
PARTITIONS = st.lists(
    st.tuples(st.sampled_from([*NAMES, "unknown-id"]), st.integers(0, 2)), max_size=5, unique=True
)
Partition = tuple[str | bytes, int]
FOREIGN = 9999
"""A session of another client at the same broker."""


class ReferenceBroker:
    """The content and responses of Kafka's sessions, by the session ids of the guarded upstream."""

    def __init__(self) -> None:
        self.partitions: dict[int, dict[Partition, None]] = {}
        self.epochs: dict[int, int] = {}
        self.uses_ids: dict[int, bool] = {}

    def error(self, session_id: int, epoch: int, version: int) -> int:
        if session_id not in self.epochs:
            return 70
        if self.epochs[session_id] != epoch:
            return 71
        return 0 if self.uses_ids[session_id] == (version >= 13) else 106

    def close(self, session_id: int) -> None:
        self.partitions.pop(session_id, None)
        self.epochs.pop(session_id, None)


class FetchSessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world: Model = model()
        self.driver = Driver(self.world, [allow(ResourceType.TOPIC, n, AclOperation.READ) for n in NAMES[:2]])
        self.world.sessions[FOREIGN] = Session(False, {("secrets-of-others", 0): None}, epoch=5)
        self.reference = ReferenceBroker()
        self.order: list[int] = []

    # -- steps of a history

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def change_acls(self, names: set[str]) -> None:
        self.driver.replace_acls([allow(ResourceType.TOPIC, name, AclOperation.READ) for name in names])

    @rule(name=st.sampled_from(NAMES))
    def delete_or_create_a_topic(self, name: str) -> None:
        if name in self.world.topics:
            del self.world.topics[name]
        else:
            self.world.create(name)

    @rule(version=st.integers(4, 18), asked=PARTITIONS, closes=st.booleans(), data=st.data())
    def full_fetch(self, version: int, asked: list[Partition], closes: bool, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from([0, FOREIGN, *self.reference.epochs])) if version >= 7 else 0
        epoch = -1 if closes or version < 7 else 0
        partitions = self.named(asked, version)
        session_id, answered, error = self.send(version, partitions, [], old, epoch)
        assert error == 0
        self.reference.close(old)
        self.hold(answered, partitions, whole=True)
        if session_id:
            assert epoch == 0
            self.reference.close(session_id)
            self.reference.partitions[session_id] = dict.fromkeys(partitions)
            self.reference.epochs[session_id] = 1
            self.reference.uses_ids[session_id] = version >= 13
            self.order = [kept for kept in self.order if kept in self.reference.epochs] + [session_id]
            for evicted in self.order[:-SESSIONS_PER_CONNECTION]:
                self.reference.close(evicted)

    @precondition(lambda self: self.reference.epochs)
    @rule(
        version=st.integers(7, 18),
        asked=PARTITIONS,
        forgotten=PARTITIONS,
        wrong=st.sampled_from([None] * 8 + ["epoch", "id", "far"]),
        fits=st.booleans(),
        data=st.data(),
    )
    def incremental_fetch(
        self,
        version: int,
        asked: list[Partition],
        forgotten: list[Partition],
        wrong: str | None,
        fits: bool,
        data: st.DataObject,
    ) -> None:
        session_id = data.draw(st.sampled_from(list(self.reference.epochs)))
        if fits:
            version = max(version, 13) if self.reference.uses_ids[session_id] else min(version, 12)
        epoch = self.reference.epochs[session_id]
        if wrong == "epoch":
            epoch = epoch + 1 if epoch < MAX_EPOCH else 5
        elif wrong == "far":
            epoch = -7
        if wrong == "id":
            epoch = 5
        sent_id = FOREIGN if wrong == "id" else session_id
        partitions, gone = self.named(asked, version), self.named(forgotten, version)
        expected_error = self.reference.error(sent_id, epoch, version)
        got_id, answered, error = self.send(version, partitions, gone, sent_id, epoch)
        assert error == expected_error
        if error:
            return
        held = self.reference.partitions[session_id] | dict.fromkeys(partitions)
        for partition in gone:
            held.pop(partition, None)
        self.hold(answered, list(held), whole=False)
        if got_id == 0:
            # without the denied partitions upstream's session is empty; the client begins again
            assert not any(refusal is None for _, refusal in self.decided(list(held)))
            self.reference.close(session_id)
            return
        assert got_id == session_id
        self.reference.partitions[session_id] = held
        self.reference.epochs[session_id] = 1 if epoch == MAX_EPOCH else epoch + 1

    @precondition(lambda self: self.reference.epochs)
    @rule(version=st.integers(7, 18))
    def empty_incremental_fetch(self, version: int) -> None:
        session_id = next(iter(self.reference.epochs))
        uses_ids = self.reference.uses_ids[session_id]
        version = max(version, 13) if uses_ids else min(version, 12)
        held = list(self.reference.partitions[session_id])
        got_id, answered, error = self.send(version, [], [], session_id, self.reference.epochs[session_id])
        assert error == 0
        self.hold(answered, held, whole=False)
        if got_id == 0:
            self.reference.close(session_id)
        else:
            epoch = self.reference.epochs[session_id]
            self.reference.epochs[session_id] = 1 if epoch == MAX_EPOCH else epoch + 1

    @precondition(lambda self: self.reference.epochs)
    @rule()
    def epochs_come_near_their_end(self) -> None:
        session_id = next(iter(self.reference.epochs))
        self.reference.epochs[session_id] = MAX_EPOCH
        self.world.sessions[session_id].epoch = MAX_EPOCH
        kept = self.driver.guard.fetch_sessions.find(session_id)
        assert kept is not None
        kept.epoch = MAX_EPOCH

    @precondition(lambda self: self.reference.epochs)
    @rule()
    def upstream_forgets_a_session(self) -> None:
        session_id = next(iter(self.reference.epochs))
        version = 13 if self.reference.uses_ids[session_id] else 12
        del self.world.sessions[session_id]
        _, _, error = self.send(version, [], [], session_id, self.reference.epochs[session_id])
        assert error == 70
        self.reference.close(session_id)

    # -- helpers

    def named(self, partitions: list[Partition], version: int) -> list[Partition]:
        if version < 13:
            return [(name, index) for name, index in partitions if name != "unknown-id"]
        made = model()
        made.create("missing-topic")
        ids = made.topics | {"unknown-id": UNKNOWN_ID}
        return [(ids[str(name)], index) for name, index in partitions]

    def send(
        self, version: int, asked: list[Partition], forgotten: list[Partition], session_id: int, epoch: int
    ) -> tuple[int, Coded, int]:
        codec = request_codec(1, version)
        request = codec.root.fit(session_id=session_id, session_epoch=epoch, max_bytes=1)
        if "replica_id" in request.FIELDS:
            request.replica_id = -1
        request.topics = grouped(codec.root.ELEMENTS["topics"], asked, as_items=True)
        if "forgotten_topics_data" in request.FIELDS:
            made = codec.root.ELEMENTS["forgotten_topics_data"]
            request.forgotten_topics_data = grouped(made, forgotten, as_items=False)
        frame = frame_of(1, version, request)
        outcome, found = self.driver.checked(
            frame, session_partitions=self.session(session_id, epoch, asked, forgotten)
        )
        assert outcome.closed is None
        assert outcome.response is not None
        _, body = read_response(outcome.response, 1, version)
        error = code(body) if hasattr(body, "error_code") else 0
        assert error or not found, found
        answered: Coded = [
            ((topic_key(topic), partition.partition_index), code(partition))
            for topic in body.responses
            for partition in topic.partitions
        ]
        return int(getattr(body, "session_id", 0)), answered, error

    def session(
        self, session_id: int, epoch: int, asked: list[Partition], forgotten: list[Partition]
    ) -> list[Partition] | None:
        if epoch in {0, -1}:
            return None
        held = self.reference.partitions.get(session_id, {}) | dict.fromkeys(asked)
        return [partition for partition in held if partition not in forgotten]

    def decided(self, partitions: list[Partition]) -> Coded:
        client = Client(PRINCIPAL, HOST, self.driver.acls, self.world.names)
        return [(key, client.topic_refusal(AclOperation.READ, key[0])) for key in partitions]

    def hold(self, answered: Coded, partitions: list[Partition], *, whole: bool) -> None:
        """Compare with the reference: refusals always, the others as upstream answers them."""
        expected: Coded = []
        for key, refusal in self.decided(partitions):
            known = key[0] in self.world.topics or key[0] in self.world.names
            expected.append((key, (0 if known else 3) if refusal is None else refusal))
        assert sorted(answered, key=repr) == sorted(expected, key=repr), whole

    @invariant()
    def upstream_holds_only_requested_partitions(self) -> None:
        for session_id, session in self.driver.guard.fetch_sessions.by_id.items():
            if session_id in self.world.sessions:
                assert session.upstream == set(self.world.sessions[session_id].partitions)

    @invariant()
    def upstream_never_serves_what_may_not_be_read(self) -> None:
        assert not self.driver.seen

    @invariant()
    def another_clients_session_is_untouched(self) -> None:
        assert self.world.sessions[FOREIGN].epoch == 5


def grouped(made: type[Message], partitions: list[Partition], *, as_items: bool) -> list[Message]:
    topics: dict[str | bytes, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    field = "topic" if "topic" in made.FIELDS else "topic_id"
    items: list[Message] = []
    for topic, found in topics.items():
        element = made.ELEMENTS.get("partitions")
        below = [element.fit(partition=i) for i in found] if as_items and element is not None else None
        items.append(made(**{field: topic, "partitions": found if below is None else below}))
    return items


TestFetchSessions = FetchSessions.TestCase
TestFetchSessions.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
