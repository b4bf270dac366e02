"""The form of denials in each API, before and after every version that changes it.

Expected values: `getErrorResponse` of each request class, and the handlers, of Kafka 4.3.1.
"""

from typing import Any

import pytest

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from testkit.protocol.random_requests import ALL_ALLOWED, UNKNOWN_ID, allow, batch
from tests.unit.protocol.protocol_requests import ask, connection, forwarded

ALPHA, BRAVO, HIDDEN = "alpha-topic", "bravo-topic", "hidden-gamma"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ_ALPHA = allow(TOPIC, ALPHA, AclOperation.READ)
WRITE_ALPHA = allow(TOPIC, ALPHA, AclOperation.WRITE)
IDS = connection().model.topics


def produced(version: int, *names: str, records: bytes = batch(), acks: int = -1) -> dict[str, Any]:
    partitions = [{"index": 0, "records": records}]
    key = "name" if version < 13 else "topic_id"
    return {
        "acks": acks,
        "transactional_id": None,
        "topic_data": [
            {key: name if version < 13 else IDS.get(name, UNKNOWN_ID), "partition_data": partitions}
            for name in names
        ],
    }


class TestProduce:
    @pytest.mark.parametrize("version", [3, 8, 9, 12])
    def test_a_denied_topic_is_answered_by_partition_and_not_sent(self, version: int) -> None:
        outcome, answer = ask(connection(WRITE_ALPHA), 0, version, **produced(version, HIDDEN, ALPHA))
        assert [topic["name"] for topic in forwarded(outcome)["topic_data"]] == [ALPHA]
        denied, kept = answer["responses"]
        assert denied["name"] == HIDDEN
        assert kept["name"] == ALPHA
        (partition,) = denied["partition_responses"]
        assert partition["error_code"] == 29
        assert partition["base_offset"] == -1
        assert partition["log_append_time"] == -1
        assert partition.get("log_start_offset", -1) == -1

    def test_known_ids_have_names_and_unknown_ids_are_not_authorized(self) -> None:
        outcome, answer = ask(connection(WRITE_ALPHA), 0, 13, **produced(13, ALPHA, "nobody", HIDDEN))
        codes = [topic["partition_responses"][0]["error_code"] for topic in answer["responses"]]
        assert codes == [0, 100, 29]
        assert outcome.opened is not None
        assert "nobody" not in [decided.name for decided in outcome.opened.exchange.decided]

    def test_a_denied_produce_without_acks_closes_after_the_allowed_part_is_sent(self) -> None:
        outcome, _ = ask(connection(WRITE_ALPHA), 0, 9, **produced(9, ALPHA, HIDDEN, acks=0))
        assert outcome.closed is not None
        assert outcome.response is None
        assert [topic["name"] for topic in forwarded(outcome)["topic_data"]] == [ALPHA]

    def test_produce_without_acks_is_not_answered(self) -> None:
        outcome, _ = ask(connection(WRITE_ALPHA), 0, 9, **produced(9, ALPHA, acks=0))
        assert (outcome.closed, outcome.response, len(outcome.forwarded)) == (None, None, 1)

    @pytest.mark.parametrize("ready", [True, False])
    def test_a_fully_denied_produce_without_acks_is_not_answered(self, ready: bool) -> None:
        outcome, _ = ask(connection(ready=ready), 0, 9, **produced(9, HIDDEN, acks=0))
        assert outcome.closed is not None
        assert (outcome.response, outcome.forwarded) == (None, [])

    @pytest.mark.parametrize("records", [b"junk", batch(length=48), batch(length=90), batch(magic=3), None])
    def test_malformed_records_are_not_forwarded(self, records: bytes | None) -> None:
        fields = produced(9, ALPHA)
        fields["topic_data"][0]["partition_data"][0]["records"] = records
        outcome, answer = ask(connection(WRITE_ALPHA), 0, 9, **fields)
        assert outcome.forwarded == []
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == 87


class TestMetadata:
    @pytest.mark.behaviour("B133", "B170")
    @pytest.mark.parametrize("version", [1, 4, 9, 12, 13])
    def test_a_hidden_topic_name_is_denied_without_details(self, version: int) -> None:
        _, answer = ask(connection(READ_ALPHA), 3, version, topics=[{"name": HIDDEN}, {"name": ALPHA}])
        denied, kept = answer["topics"]
        assert (denied["name"], denied["error_code"], denied["partitions"]) == (HIDDEN, 29, [])
        assert denied.get("topic_id", bytes(16)) == bytes(16)
        assert (kept["name"], kept["error_code"]) == (ALPHA, 0)

    @pytest.mark.behaviour("B112", "B170")
    def test_a_hidden_topic_id_does_not_reveal_its_name(self) -> None:
        asked = [{"topic_id": topic_id, "name": None} for topic_id in (IDS[HIDDEN], UNKNOWN_ID, IDS[ALPHA])]
        _, answer = ask(connection(READ_ALPHA), 3, 12, topics=asked)
        assert [(t["name"], t["error_code"]) for t in answer["topics"]] == [
            (None, 29),
            (None, 100),
            (ALPHA, 0),
        ]

    def test_entries_without_an_id_are_ignored_in_requests_with_ids(self) -> None:
        asked = [{"topic_id": IDS[ALPHA], "name": None}, {"name": HIDDEN}, {"name": None}]
        _, answer = ask(connection(READ_ALPHA), 3, 12, topics=asked)
        assert [topic["name"] for topic in answer["topics"]] == [ALPHA]

    @pytest.mark.behaviour("B128", "B133")
    @pytest.mark.parametrize(("version", "all_topics"), [(0, []), (1, None), (12, None)])
    def test_all_topics_are_limited_to_describable_topics(self, version: int, all_topics: Any) -> None:
        _, answer = ask(connection(READ_ALPHA), 3, version, topics=all_topics)
        assert [topic["name"] for topic in answer["topics"]] == [ALPHA]

    def test_an_empty_list_means_no_topics_since_version_1(self) -> None:
        _, answer = ask(connection(*ALL_ALLOWED), 3, 1, topics=[])
        assert answer["topics"] == []

    @pytest.mark.behaviour("B123")
    @pytest.mark.parametrize("version", [0, 3, 4, 13])
    def test_metadata_creates_no_topic_without_the_right(self, version: int) -> None:
        driver = connection(allow(TOPIC, "fresh-topic", AclOperation.DESCRIBE))
        outcome, answer = ask(driver, 3, version, topics=[{"name": "fresh-topic"}])
        assert [(t["name"], t["error_code"]) for t in answer["topics"]] == [("fresh-topic", 29)]
        assert "fresh-topic" not in driver.model.topics
        assert len(outcome.forwarded) == 1

    @pytest.mark.behaviour("B121", "B122")
    @pytest.mark.parametrize("version", [0, 3, 4, 13])
    @pytest.mark.parametrize("on", [(CLUSTER, CLUSTER_NAME), (TOPIC, "fresh-topic")])
    def test_metadata_creates_a_topic_with_the_right(
        self, version: int, on: tuple[ResourceType, str]
    ) -> None:
        driver = connection(
            allow(TOPIC, "fresh-topic", AclOperation.DESCRIBE), allow(*on, AclOperation.CREATE)
        )
        _, answer = ask(driver, 3, version, topics=[{"name": "fresh-topic"}, {"name": HIDDEN}])
        # as a real controller, the model answers before the topic is there
        assert [t["error_code"] for t in answer["topics"]] == [3, 29]
        assert "fresh-topic" in driver.model.topics

    @pytest.mark.parametrize("version", [3, 12])
    def test_only_the_allowed_one_of_two_missing_topics_is_created(self, version: int) -> None:
        driver = connection(
            allow(TOPIC, "*", AclOperation.DESCRIBE), allow(TOPIC, "fresh-topic", AclOperation.CREATE)
        )
        asked = [{"name": name} for name in ("other-topic", "fresh-topic")]
        outcome, answer = ask(driver, 3, version, topics=asked)
        assert [t["name"] for t in forwarded(outcome, 1)["topics"]] == ["fresh-topic"]
        assert [t["error_code"] for t in answer["topics"]] == [29, 3]
        assert "other-topic" not in driver.model.topics

    def test_a_client_that_disables_auto_creation_creates_no_topic(self) -> None:
        driver = connection(*ALL_ALLOWED)
        _, answer = ask(driver, 3, 4, topics=[{"name": "fresh-topic"}], allow_auto_topic_creation=False)
        assert answer["topics"][0]["error_code"] == 3
        assert "fresh-topic" not in driver.model.topics

    def test_brokers_have_the_address_of_the_gateway(self) -> None:
        _, answer = ask(connection(), 3, 1, topics=[])
        assert [(b["host"], b["port"]) for b in answer["brokers"]] == [("gateway", 9001)]

    @pytest.mark.behaviour("B152")
    @pytest.mark.parametrize("version", [8, 10])
    def test_authorized_cluster_operations_are_absent_without_describe(self, version: int) -> None:
        fields = {"topics": [], "include_cluster_authorized_operations": True}
        assert ask(connection(), 3, version, **fields)[1]["cluster_authorized_operations"] == 0
        create = allow(CLUSTER, CLUSTER_NAME, AclOperation.ALTER)
        _, answer = ask(connection(create), 3, version, **fields)
        assert answer["cluster_authorized_operations"] == 1 << AclOperation.ALTER | 1 << AclOperation.DESCRIBE

    def test_version_13_has_a_top_level_error_before_the_acls_are_loaded(self) -> None:
        _, answer = ask(connection(ready=False), 3, 13, topics=[{"name": ALPHA}])
        assert answer["error_code"] == -1
        assert [(t["name"], t["error_code"]) for t in answer["topics"]] == [(ALPHA, -1)]


class TestFetch:
    @pytest.mark.parametrize("version", [4, 7, 12])
    def test_partitions_fail_before_the_acls_are_loaded_and_since_7_the_top_level(self, version: int) -> None:
        topics = [{"topic": ALPHA, "partitions": [{"partition": 2}]}]
        outcome, answer = ask(connection(ready=False), 1, version, replica_id=-1, topics=topics)
        assert outcome.forwarded == []
        assert answer["responses"][0]["partitions"][0]["error_code"] == -1
        assert answer.get("error_code", -1) == -1

    def test_only_the_top_level_fails_since_13(self) -> None:
        topics = [{"topic_id": IDS[ALPHA], "partitions": [{"partition": 2}]}]
        _, answer = ask(connection(ready=False), 1, 13, replica_id=-1, topics=topics)
        assert (answer["error_code"], answer["responses"]) == (-1, [])

    @pytest.mark.behaviour("B115")
    @pytest.mark.parametrize("version", [4, 12])
    def test_a_follower_needs_the_right_on_the_cluster_not_the_topic(self, version: int) -> None:
        topics = [{"topic": ALPHA, "partitions": [{"partition": 0}]}]
        outcome, answer = ask(connection(READ_ALPHA), 1, version, replica_id=1, topics=topics)
        assert outcome.forwarded == []
        assert answer["responses"][0]["partitions"][0]["error_code"] == 29
        action = allow(CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)
        outcome, _ = ask(connection(action), 1, version, replica_id=1, topics=topics)
        assert len(outcome.forwarded) == 1

    def test_a_tagged_replica_state_marks_a_follower(self) -> None:
        topics = [{"topic_id": IDS[ALPHA], "partitions": [{"partition": 0}]}]
        fields = {"replica_state": {"replica_id": 1}, "topics": topics}
        outcome, answer = ask(connection(READ_ALPHA), 1, 15, **fields)
        assert outcome.forwarded == []
        assert answer["responses"][0]["partitions"][0]["error_code"] == 29


class TestGroups:
    @pytest.mark.behaviour("B171")
    @pytest.mark.parametrize(("version", "top"), [(1, False), (2, True), (7, True)])
    def test_offset_fetch_of_one_group(self, version: int, top: bool) -> None:
        fields = {"group_id": "group-one", "topics": [{"name": ALPHA, "partition_indexes": [0, 1]}]}
        outcome, answer = ask(connection(READ_ALPHA), 9, version, **fields)
        assert outcome.forwarded == []
        if top:
            assert (answer["error_code"], answer["topics"]) == (30, [])
        else:
            partitions = answer["topics"][0]["partitions"]
            assert [(p["error_code"], p["committed_offset"]) for p in partitions] == [(30, -1)] * 2

    @pytest.mark.behaviour("B132")
    def test_offset_fetch_decides_each_group_separately(self) -> None:
        describe = allow(GROUP, "group-one", AclOperation.DESCRIBE)
        topics = [{"name": HIDDEN, "partition_indexes": [3]}, {"name": ALPHA, "partition_indexes": [0]}]
        groups = [{"group_id": g, "topics": topics} for g in ("group-two", "group-one")]
        outcome, answer = ask(connection(READ_ALPHA, describe), 9, 8, groups=groups)
        assert [group["group_id"] for group in forwarded(outcome)["groups"]] == ["group-one"]
        denied, kept = answer["groups"]
        assert (denied["error_code"], denied["topics"]) == (30, [])
        codes = [(t["name"], t["partitions"][0]["error_code"]) for t in kept["topics"]]
        assert codes == [(ALPHA, 0), (HIDDEN, 29)], "as a broker lists them"

    @pytest.mark.behaviour("B131")
    @pytest.mark.parametrize("version", [2, 8, 10])
    def test_all_offsets_are_limited_to_visible_topics(self, version: int) -> None:
        driver = connection(READ_ALPHA, allow(GROUP, "group-one", AclOperation.DESCRIBE))
        one = {"group_id": "group-one", "topics": None}
        _, answer = ask(driver, 9, version, **(one if version < 8 else {"groups": [one]}))
        topics = (answer if version < 8 else answer["groups"][0])["topics"]
        names = [t["name"] if version < 10 else driver.model.names[t["topic_id"]] for t in topics]
        assert names == [ALPHA]

    def test_a_duplicate_group_is_answered_twice(self) -> None:
        driver = connection(READ_ALPHA, allow(GROUP, "group-one", AclOperation.DESCRIBE))
        both = [
            [{"name": ALPHA, "partition_indexes": [0]}],
            [{"name": HIDDEN, "partition_indexes": [1]}],
            None,
        ]
        groups = [{"group_id": "group-one", "topics": topics} for topics in both]
        _, answer = ask(driver, 9, 8, groups=groups)
        assert [[t["name"] for t in group["topics"]] for group in answer["groups"]] == [
            [ALPHA],
            [HIDDEN],
            [ALPHA],
        ]

    @pytest.mark.parametrize("version", [1, 7, 8, 10])
    def test_offset_fetch_before_the_acls_are_loaded(self, version: int) -> None:
        topic = {"name": ALPHA} if version < 10 else {"topic_id": IDS[ALPHA]}
        one = {"group_id": "group-one", "topics": [topic | {"partition_indexes": [0]}]}
        _, answer = ask(connection(ready=False), 9, version, **(one if version < 8 else {"groups": [one]}))
        if version >= 8:
            assert [(g["group_id"], g["error_code"]) for g in answer["groups"]] == [("group-one", -1)]
        elif version >= 2:
            assert answer["error_code"] == -1
        else:
            assert answer["topics"][0]["partitions"][0]["error_code"] == -1

    @pytest.mark.parametrize(("version", "name"), [(0, ""), (5, ""), (6, ""), (7, None), (9, None)])
    def test_join_group(self, version: int, name: str | None) -> None:
        _, answer = ask(connection(), 11, version, group_id="group-one")
        assert (answer["error_code"], answer["generation_id"], answer["members"]) == (30, -1, [])
        assert answer["protocol_name"] == name

    @pytest.mark.behaviour("B159")
    def test_a_described_group_with_a_hidden_topic_is_replaced(self) -> None:
        groups = [allow(GROUP, g, AclOperation.DESCRIBE) for g in ("group-one", "group-two")]
        driver = connection(*groups, READ_ALPHA, allow(TOPIC, BRAVO, AclOperation.DESCRIBE))
        asked = ["group-two", "group-three", "group-one"]
        outcome, answer = ask(driver, 69, 0, group_ids=asked, include_authorized_operations=True)
        assert [(g["group_id"], g["error_code"]) for g in answer["groups"]] == [
            ("group-two", 29),
            ("group-three", 30),
            ("group-one", 0),
        ]
        assert answer["groups"][0]["members"] == []
        assert answer["groups"][0]["authorized_operations"] == -(2**31)
        assert answer["groups"][2]["authorized_operations"] == 1 << AclOperation.DESCRIBE
        assert outcome.response is not None
        assert HIDDEN.encode() not in outcome.response

    @pytest.mark.behaviour("B136")
    def test_listed_groups_are_limited_to_describable_groups(self) -> None:
        _, answer = ask(connection(allow(GROUP, "group-two", AclOperation.READ)), 16, 4)
        assert [group["group_id"] for group in answer["groups"]] == ["group-two"]
        _, answer = ask(connection(allow(CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE)), 16, 4)
        assert len(answer["groups"]) == 3


class TestCoordinators:
    @pytest.mark.parametrize(
        ("version", "key_type", "code"), [(0, None, 30), (1, 1, 53), (3, 0, 30), (3, 9, 42)]
    )
    def test_one_key(self, version: int, key_type: int | None, code: int) -> None:
        fields = {"key": "group-one"} | ({} if key_type is None else {"key_type": key_type})
        outcome, answer = ask(connection(), 10, version, **fields)
        assert outcome.forwarded == []
        assert (answer["error_code"], answer["node_id"], answer["host"], answer["port"]) == (code, -1, "", -1)

    def test_many_keys(self) -> None:
        driver = connection(allow(GROUP, "group-one", AclOperation.READ))
        _, answer = ask(driver, 10, 4, key_type=0, coordinator_keys=["group-two", "group-one"])
        assert [(c["key"], c["error_code"], c["host"]) for c in answer["coordinators"]] == [
            ("group-two", 30, ""),
            ("group-one", 0, "gateway"),
        ]

    @pytest.mark.parametrize(("version", "code"), [(3, 42), (5, 42), (6, 31)])
    def test_share_coordinators_are_for_brokers(self, version: int, code: int) -> None:
        fields: dict[str, Any] = {"key": "g:t:0"} if version < 4 else {"coordinator_keys": ["g:t:0", "h:t:0"]}
        outcome, answer = ask(connection(), 10, version, key_type=2, **fields)
        assert outcome.forwarded == []
        codes = [answer["error_code"]] if version < 4 else [c["error_code"] for c in answer["coordinators"]]
        assert set(codes) == {code}
