"""Theorem about share sessions (KIP-932): every ShareFetch is decided as on a broker with an authorizer.

The reference is a model of Kafka's broker, whose session also keeps the denied partitions and decides about
all of them each time. The other is the guard in front of a model that trusts every client. Whatever happens
in between (grants, revocations, topics that go and come, wrong epochs, acknowledgements, a member that begins
again), both must answer the same partitions with the same codes, and upstream never serves what is denied.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from kustos.acl import AclBinding, AclOperation, ResourceType
from kustos.wire import read_response_header, request_codec, response_codec
from testkit.equality.stories import message_of
from testkit.protocol.driver import HOST, PRINCIPAL, Driver, Outcome
from testkit.protocol.random_requests import EXISTING, UNKNOWN_ID, allow, frame_of, model
from testkit.protocol.shares import FINAL, INITIAL, INVALID_EPOCH, INVALID_REQUEST, NOT_FOUND, ShareSession
from testkit.tap.checker import Client

FETCH, ACKNOWLEDGE = 78, 79
NAMES = [*EXISTING[:4], "missing-topic"]
GROUP = "group-one"
Partition = tuple[bytes, int]
PARTITIONS = st.lists(
    st.tuples(st.sampled_from([*NAMES, "unknown-id"]), st.integers(0, 2)), max_size=5, unique=True
)
MEMBERS = st.sampled_from(["one", "two"])
SECRET = (b"\x77" * 16, 0)


def rights(names: set[str]) -> list[AclBinding]:
    group = allow(ResourceType.GROUP, GROUP, AclOperation.READ)
    return [group, *[allow(ResourceType.TOPIC, name, AclOperation.READ) for name in sorted(names)]]


class ShareSessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = model()
        self.driver = Driver(self.world, rights(set(NAMES[:2])))
        self.reference: dict[str, ShareSession] = {}
        self.world.shares[GROUP, "stranger"] = ShareSession({SECRET: None}, epoch=3)

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def change_acls(self, names: set[str]) -> None:
        self.driver.replace_acls(rights(names))

    @rule(name=st.sampled_from(NAMES))
    def delete_or_create_a_topic(self, name: str) -> None:
        if name in self.world.topics:
            del self.world.topics[name]
        else:
            self.world.create(name)

    @rule(member=MEMBERS, asked=PARTITIONS, acknowledges=st.booleans())
    def begin(self, member: str, asked: list[tuple[str, int]], acknowledges: bool) -> None:
        named = self.named(asked)
        refused = acknowledges and bool(named)
        answer = self.fetch(member, INITIAL, named, [], acknowledges)
        assert answer["error_code"] == (INVALID_REQUEST if refused else 0)
        if not refused:
            self.reference[member] = ShareSession(dict.fromkeys(named))
            self.hold(answer, dict.fromkeys(named), {})

    @rule(
        member=MEMBERS,
        asked=PARTITIONS,
        forgotten=PARTITIONS,
        acknowledges=st.booleans(),
        late=st.sampled_from([0] * 6 + [1, -7]),
        renews=st.sampled_from([False, False, False, True]),
    )
    def go_on(
        self,
        member: str,
        asked: list[tuple[str, int]],
        forgotten: list[tuple[str, int]],
        acknowledges: bool,
        late: int,
        renews: bool,
    ) -> None:
        named, gone, session = self.named(asked), self.named(forgotten), self.reference.get(member)
        epoch = 1 if session is None else max(1, session.epoch + late) if late > 0 else (
            session.epoch if late == 0 else late
        )  # fmt: skip
        answer = self.fetch(member, epoch, named, gone, acknowledges, renews=renews)
        if session is None or session.epoch != epoch:
            assert answer["error_code"] == (NOT_FOUND if session is None else INVALID_EPOCH)
            return
        assert answer["error_code"] == 0
        session.partitions |= dict.fromkeys(named)
        for partition in gone:
            session.partitions.pop(partition, None)
        session.next()
        acknowledged = dict.fromkeys(named) if acknowledges else {}
        self.hold(answer, {} if renews else session.partitions, acknowledged)

    @rule(member=MEMBERS, asked=PARTITIONS, acknowledges=st.booleans())
    def end(self, member: str, asked: list[tuple[str, int]], acknowledges: bool) -> None:
        named = self.named(asked)
        answer = self.fetch(member, FINAL, named, [], acknowledges)
        if self.reference.pop(member, None) is None:
            assert answer["error_code"] == NOT_FOUND
        else:
            self.hold(answer, {}, dict.fromkeys(named) if acknowledges else {})

    @rule(member=MEMBERS, asked=PARTITIONS, ends=st.booleans())
    def acknowledge(self, member: str, asked: list[tuple[str, int]], ends: bool) -> None:
        named, session = self.named(asked), self.reference.get(member)
        epoch = FINAL if ends else 1 if session is None else session.epoch
        fields = {"group_id": GROUP, "member_id": member, "share_session_epoch": epoch}
        _, answer = ask(self.driver, ACKNOWLEDGE, 2, **fields, topics=topics(named, True))
        if session is None:
            assert answer["error_code"] == NOT_FOUND
            return
        if ends:
            del self.reference[member]
        else:
            session.next()
        assert codes(answer, "error_code") == self.expected(named)

    @rule(epoch=st.sampled_from([FINAL, 3]))
    def another_members_session_stays_as_it_is(self, epoch: int) -> None:
        for api_key in (FETCH, ACKNOWLEDGE):
            fields = {"group_id": GROUP, "member_id": "stranger", "share_session_epoch": epoch}
            outcome, answer = ask(self.driver, api_key, 2, **fields)
            assert answer["error_code"] == NOT_FOUND
            assert not outcome.forwarded
        assert self.world.shares[GROUP, "stranger"] == ShareSession({SECRET: None}, epoch=3)

    # -- the steps of a history

    def named(self, asked: list[tuple[str, int]]) -> list[Partition]:
        return [(self.world.topics.get(name, UNKNOWN_ID), index) for name, index in dict.fromkeys(asked)]

    def fetch(
        self,
        member: str,
        epoch: int,
        named: list[Partition],
        gone: list[Partition],
        acknowledges: bool,
        *,
        renews: bool = False,
    ) -> dict[str, Any]:
        named = list(dict.fromkeys(named))
        if epoch == INITIAL:
            acknowledges = acknowledges and bool(named)
        forgotten = [{"topic_id": topic_id, "partitions": [index]} for topic_id, index in gone]
        outcome, answer = ask(
            self.driver,
            FETCH,
            2,
            group_id=GROUP,
            member_id=member,
            share_session_epoch=epoch,
            topics=topics(named, acknowledges),
            forgotten_topics_data=forgotten,
            is_renew_ack=renews,
            max_bytes=0 if renews else 1 << 20,
        )
        client = self.client
        for key, session in self.world.shares.items():
            if key == (GROUP, member) and outcome.forwarded:
                denied = [p for p in session.partitions if client.topic_refusal(AclOperation.READ, p[0])]
                assert not denied, "upstream's session contains a denied partition"
        return answer

    @property
    def client(self) -> Client:
        return Client(PRINCIPAL, HOST, self.driver.acls, self.world.names)

    def expected(self, partitions: Any) -> dict[Partition, int]:
        client = self.client
        return {key: client.topic_refusal(AclOperation.READ, key[0]) or 0 for key in partitions}

    def hold(self, answer: dict[str, Any], fetched: Any, acknowledged: Any) -> None:
        expected = dict.fromkeys({**fetched, **acknowledged}, 0)
        assert codes(answer, "error_code") == expected | self.expected(fetched)
        assert codes(answer, "acknowledge_error_code") == expected | self.expected(acknowledged)
        assert all(each["host"] == "gateway" for each in answer["node_endpoints"])


def ask(driver: Driver, api_key: int, version: int, **fields: Any) -> tuple[Outcome, dict[str, Any]]:
    """Return the outcome of a request, and its answer as a dict."""
    message = message_of(request_codec(api_key, version).root, fields, lambda value: value)
    outcome = driver.run(frame_of(api_key, version, message))
    assert outcome.response is not None, outcome.closed
    _, body_at = read_response_header(outcome.response, True)
    return outcome, response_codec(api_key, version).decode(outcome.response, body_at).message.to_dict()


def topics(named: list[Partition], acknowledges: bool) -> list[dict[str, Any]]:
    batches = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}] if acknowledges else []
    return [
        {"topic_id": topic_id, "partitions": [{"partition_index": index, "acknowledgement_batches": batches}]}
        for topic_id, index in dict.fromkeys(named)
    ]


def codes(answer: dict[str, Any], field: str) -> dict[Partition, int]:
    found = [
        ((topic["topic_id"], each["partition_index"]), each[field])
        for topic in answer["responses"]
        for each in topic["partitions"]
    ]
    assert len(dict(found)) == len(found), "a partition is answered twice"
    return dict(found)


TestShareSessions = ShareSessions.TestCase
TestShareSessions.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
