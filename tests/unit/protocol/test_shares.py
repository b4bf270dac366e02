"""Share groups: the rights that each request needs, the form of denials, and sessions.

Expected values: `KafkaApis` and `SharePartitionManager`, Kafka 4.3.1.
"""

from typing import Any

import pytest

from kustos.protocol import limit_answer
from kustos.wire import request_codec
from testkit.protocol.driver import Driver
from testkit.protocol.random_requests import frame_of
from testkit.protocol.shares import RECORD
from tests.unit.protocol.protocol_requests import (
    ALPHA,
    GROUP_NAME,
    ask,
    built,
    codes,
    connection,
    forwarded,
    may,
)

HEARTBEAT, DESCRIBE, FETCH, ACKNOWLEDGE = 76, 77, 78, 79
OFFSETS, ALTER, DELETE = 90, 91, 92
BRAVO, HIDDEN = "bravo-topic", "hidden-gamma"
TOPIC_DENIED, GROUP_DENIED, INVALID_REQUEST, UNKNOWN_TOPIC_ID = 29, 30, 42, 100
NOT_FOUND, INVALID_EPOCH = 122, 123
INITIAL, FINAL = 0, -1
ACCEPTED = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
MEMBER = {"group_id": GROUP_NAME, "member_id": "member"}


def wanted(driver: Driver, *names: str, batches: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """Return the first partition of each topic, with acknowledgements if any are given."""
    return [
        {
            "topic_id": driver.model.topics.get(name, b"\x42" * 16),
            "partitions": [{"partition_index": 0, "acknowledgement_batches": batches or []}],
        }
        for name in names
    ]


def fetch(driver: Driver, epoch: int, *names: str, **fields: Any) -> tuple[Any, dict[str, Any]]:
    """Fetch records; return the outcome and the answer."""
    batches = fields.pop("batches", None)
    given = {**MEMBER, "share_session_epoch": epoch, "topics": wanted(driver, *names, batches=batches)}
    return ask(driver, FETCH, 2, **given | fields)


def codes_by_topic(driver: Driver, answer: dict[str, Any], field: str = "error_code") -> dict[str, int]:
    """Return the error codes of an answer by topic."""
    names = driver.model.names
    return {
        names.get(topic["topic_id"], "unknown"): each[field]
        for topic in answer["responses"]
        for each in topic["partitions"]
    }


@pytest.mark.behaviour("B160")
def test_a_heartbeat_needs_read_on_the_group_and_describe_on_its_topics() -> None:
    fields = {**MEMBER, "member_epoch": 0, "subscribed_topic_names": [ALPHA, ALPHA]}
    for missing, code in ((0, GROUP_DENIED), (1, TOPIC_DENIED)):
        acls = [may("READ", "GROUP"), may("DESCRIBE")]
        assert codes(ask(connection(*acls), HEARTBEAT, 1, **fields)[1]) == set()
        del acls[missing]
        outcome, answer = ask(connection(*acls, may("DESCRIBE", "GROUP")), HEARTBEAT, 1, **fields)
        assert (answer["error_code"], outcome.forwarded) == (code, [])


@pytest.mark.parametrize("member_id", ["", "m" * 37])
def test_an_invalid_member_is_rejected_by_upstream_without_its_topics(member_id: str) -> None:
    fields = {"group_id": GROUP_NAME, "member_id": member_id, "subscribed_topic_names": [HIDDEN]}
    outcome, _ = ask(connection(may("READ", "GROUP")), HEARTBEAT, 1, **fields)
    assert forwarded(outcome)["member_id"] == member_id
    assert forwarded(outcome)["subscribed_topic_names"] is None
    outcome, answer = ask(connection(), HEARTBEAT, 1, **fields)
    assert (outcome.forwarded, answer["error_code"]) == ([], GROUP_DENIED)


@pytest.mark.behaviour("B160")
def test_a_described_group_with_a_hidden_topic_is_replaced() -> None:
    group = may("DESCRIBE", "GROUP")
    both = [may("DESCRIBE"), may("DESCRIBE", name=BRAVO)]
    fields = {"group_ids": [GROUP_NAME]}
    _, answer = ask(connection(group, *both), DESCRIBE, 1, **fields)
    assert [each["error_code"] for each in answer["groups"]] == [0]
    assert answer["groups"][0]["members"]
    _, answer = ask(connection(group, both[0]), DESCRIBE, 1, **fields)
    assert [each["error_code"] for each in answer["groups"]] == [TOPIC_DENIED]
    assert not answer["groups"][0]["members"]
    _, answer = ask(connection(*both), DESCRIBE, 1, **fields)
    assert [each["error_code"] for each in answer["groups"]] == [GROUP_DENIED]


class TestFetching:
    @pytest.mark.behaviour("B160")
    @pytest.mark.parametrize("version", [1, 2])
    def test_needs_read_on_the_group_and_on_each_topic(self, version: int) -> None:
        driver = connection()
        fields = {**MEMBER, "share_session_epoch": INITIAL, "topics": wanted(driver, ALPHA)}
        outcome, answer = ask(driver, FETCH, version, **fields)
        assert (answer["error_code"], outcome.forwarded) == (GROUP_DENIED, [])
        driver = connection(may("READ", "GROUP"), may("DESCRIBE"), may("READ", name=BRAVO))
        outcome, answer = ask(driver, FETCH, version, **fields | {"topics": wanted(driver, ALPHA, BRAVO)})
        assert codes_by_topic(driver, answer) == {ALPHA: TOPIC_DENIED, BRAVO: 0}
        assert [each["partitions"][0]["records"] for each in answer["responses"]] == [RECORD, b""]
        assert forwarded(outcome)["topics"] == wanted(driver, BRAVO)

    def test_the_answer_shows_the_gateway_and_no_broker(self) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        _, answer = fetch(driver, INITIAL, ALPHA)
        assert [(each["host"], each["port"]) for each in answer["node_endpoints"]] == [("gateway", 9001)]

    def test_a_session_of_denied_partitions_keeps_its_epoch_and_gets_later_grants(self) -> None:
        group = may("READ", "GROUP")
        driver = connection(group)
        outcome, answer = fetch(driver, INITIAL, ALPHA)
        assert codes_by_topic(driver, answer) == {ALPHA: TOPIC_DENIED}
        assert forwarded(outcome)["topics"] == []
        outcome, answer = fetch(driver, 1)
        assert codes_by_topic(driver, answer) == {ALPHA: TOPIC_DENIED}
        driver.replace_acls([group, may("READ")])
        outcome, answer = fetch(driver, 2)
        assert codes_by_topic(driver, answer) == {ALPHA: 0}
        assert forwarded(outcome)["topics"] == wanted(driver, ALPHA)
        driver.replace_acls([group])
        outcome, answer = fetch(driver, 3)
        assert codes_by_topic(driver, answer) == {ALPHA: TOPIC_DENIED}
        [gone] = forwarded(outcome)["forgotten_topics_data"]
        assert gone == {"topic_id": driver.model.topics[ALPHA], "partitions": [0]}

    def test_an_unknown_topic_does_not_fail_the_others(self) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        _, answer = fetch(driver, INITIAL, ALPHA, "nowhere")
        assert codes_by_topic(driver, answer) == {ALPHA: 0, "unknown": UNKNOWN_TOPIC_ID}

    def test_acknowledgements_of_denied_topics_never_go_upstream(self) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        fetch(driver, INITIAL, ALPHA)
        outcome, answer = fetch(driver, 1, ALPHA, HIDDEN, batches=ACCEPTED)
        assert forwarded(outcome)["topics"] == wanted(driver, ALPHA, batches=ACCEPTED)
        assert codes_by_topic(driver, answer, "acknowledge_error_code") == {ALPHA: 0, HIDDEN: TOPIC_DENIED}
        outcome, answer = fetch(driver, FINAL, HIDDEN, batches=ACCEPTED)
        assert codes_by_topic(driver, answer) == {HIDDEN: 0}
        assert codes_by_topic(driver, answer, "acknowledge_error_code") == {HIDDEN: TOPIC_DENIED}

    @pytest.mark.parametrize("epoch", [FINAL, 1, 4])
    def test_a_session_of_another_connection_cannot_be_continued(self, epoch: int) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        fetch(driver, INITIAL, ALPHA)
        other = connection(may("READ", "GROUP"), may("READ"))
        other.model.shares = driver.model.shares
        for api_key in (FETCH, ACKNOWLEDGE):
            outcome, answer = ask(other, api_key, 2, **MEMBER, share_session_epoch=epoch)
            assert (answer["error_code"], outcome.forwarded) == (NOT_FOUND, [])

    def test_unrequested_partitions_close_the_connection(self) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        fetch(driver, INITIAL, ALPHA)
        # another connection of the same member begins again with what it may read
        [session] = driver.model.shares.values()
        session.partitions = {(driver.model.topics[HIDDEN], 0): None}
        outcome, answer = fetch(driver, 1)
        assert answer == {}
        assert "not allowed" in (outcome.closed or "")

    def test_a_low_budget_lowers_the_maximum_bytes(self) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        fields = {**MEMBER, "share_session_epoch": INITIAL, "max_bytes": 1 << 20}
        message = built(request_codec(FETCH, 2).root, fields | {"topics": wanted(driver, ALPHA)})
        opened = driver.guard.open(frame_of(FETCH, 2, message))
        assert not isinstance(opened, bytes)
        limit_answer(opened, lambda wanted_bytes: wanted_bytes // 4)
        codec = request_codec(FETCH, 2)
        sent = opened.upstream_frame(None)[4:]
        assert codec.decode(sent, opened.exchange.header.body_offset).message.max_bytes == 1 << 18


class TestAcknowledging:
    @pytest.mark.behaviour("B160")
    @pytest.mark.parametrize("version", [1, 2])
    def test_needs_read_on_the_group_and_on_each_topic(self, version: int) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        fetch(driver, INITIAL, ALPHA)
        topics = wanted(driver, ALPHA, HIDDEN, batches=ACCEPTED)
        outcome, answer = ask(driver, ACKNOWLEDGE, version, **MEMBER, share_session_epoch=1, topics=topics)
        assert codes_by_topic(driver, answer) == {ALPHA: 0, HIDDEN: TOPIC_DENIED}
        assert forwarded(outcome)["topics"] == wanted(driver, ALPHA, batches=ACCEPTED)
        driver.replace_acls([may("READ"), may("DESCRIBE", "GROUP")])
        outcome, answer = ask(driver, ACKNOWLEDGE, version, **MEMBER, share_session_epoch=2, topics=topics)
        assert (answer["error_code"], outcome.forwarded) == (GROUP_DENIED, [])

    def test_acknowledging_increments_the_epoch(self) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        fetch(driver, INITIAL, ALPHA)
        for epoch, code in ((0, INVALID_EPOCH), (2, INVALID_EPOCH), (1, 0), (1, INVALID_EPOCH), (2, 0)):
            _, answer = ask(driver, ACKNOWLEDGE, 2, **MEMBER, share_session_epoch=epoch)
            assert answer["error_code"] == code
        assert fetch(driver, 3)[1]["error_code"] == 0

    def test_invalid_offsets_are_reported_before_authorization(self) -> None:
        driver = connection(may("READ", "GROUP"), may("READ"))
        fetch(driver, INITIAL, ALPHA)
        wrong = [{"first_offset": 3, "last_offset": 1, "acknowledge_types": [1]}]
        topics = wanted(driver, HIDDEN, batches=wrong)
        _, answer = ask(driver, ACKNOWLEDGE, 2, **MEMBER, share_session_epoch=1, topics=topics)
        assert codes_by_topic(driver, answer) == {HIDDEN: INVALID_REQUEST}


class TestOffsets:
    @pytest.mark.behaviour("B162")
    @pytest.mark.parametrize("version", [0, 1])
    def test_describing_offsets_needs_describe_on_the_group_and_the_topic(self, version: int) -> None:
        asked: list[dict[str, Any]]
        asked = [{"group_id": GROUP_NAME, "topics": [{"topic_name": ALPHA, "partitions": [0]}]}]
        acls = [may("DESCRIBE", "GROUP"), may("DESCRIBE")]
        _, answer = ask(connection(*acls), OFFSETS, version, groups=asked)
        assert codes(answer) == set()
        _, answer = ask(connection(acls[0]), OFFSETS, version, groups=asked)
        [partition] = answer["groups"][0]["topics"][0]["partitions"]
        assert (partition["error_code"], partition["start_offset"]) == (TOPIC_DENIED, -1)
        outcome, answer = ask(connection(acls[1]), OFFSETS, version, groups=asked)
        assert (codes(answer), outcome.forwarded) == ({GROUP_DENIED}, [])
        asked = [{"group_id": GROUP_NAME, "topics": None}]
        _, answer = ask(connection(*acls), OFFSETS, version, groups=asked)
        assert [each["topic_name"] for each in answer["groups"][0]["topics"]] == [ALPHA]

    @pytest.mark.behaviour("B162")
    def test_altering_offsets_needs_read_on_the_group_and_the_topic(self) -> None:
        topics = [{"topic_name": ALPHA, "partitions": [{"partition_index": 0, "start_offset": 5}]}]
        fields = {"group_id": GROUP_NAME, "topics": topics}
        self.needs(ALTER, fields, may("READ", "GROUP"))

    @pytest.mark.behaviour("B162")
    def test_deleting_offsets_needs_delete_on_the_group_and_read_on_the_topic(self) -> None:
        fields = {"group_id": GROUP_NAME, "topics": [{"topic_name": ALPHA}]}
        self.needs(DELETE, fields, may("DELETE", "GROUP"))

    def needs(self, api_key: int, fields: dict[str, Any], group: Any) -> None:
        """Check that a request needs the right on the group and READ on the topic to be forwarded."""
        outcome, answer = ask(connection(group, may("READ")), api_key, 0, **fields)
        assert codes(answer) == set()
        assert forwarded(outcome) == built(request_codec(api_key, 0).root, fields).to_dict()
        outcome, answer = ask(connection(group, may("DESCRIBE")), api_key, 0, **fields)
        assert codes(answer) == {TOPIC_DENIED}
        assert forwarded(outcome)["topics"] == []
        outcome, answer = ask(connection(may("READ"), may("DESCRIBE", "GROUP")), api_key, 0, **fields)
        assert (answer["error_code"], outcome.forwarded) == (GROUP_DENIED, [])
