"""The form of denials in the APIs of administrators, and of requests that are illegal after a login.

Expected values: the handlers and request classes of Kafka 4.3.1.
"""

from typing import Any

import pytest

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.protocol import RefusedFrameError
from testkit.protocol.driver import OWN_SUPER_USERS
from testkit.protocol.random_requests import ALL_ALLOWED, UNKNOWN_ID, allow
from tests.unit.protocol.protocol_requests import ask, connection, forwarded, frame

ALPHA, BRAVO, HIDDEN = "alpha-topic", "bravo-topic", "hidden-gamma"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
IDS = connection().model.topics


class TestTopics:
    @pytest.mark.behaviour("B120", "B211")
    def test_creation_is_decided_for_each_topic(self) -> None:
        driver = connection(allow(TOPIC, "fresh-topic", AclOperation.CREATE))
        names = ["fresh-topic", "other-topic", "twice", "twice", "__cluster_metadata"]
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
        outcome, answer = ask(driver, 19, 7, topics=topics)
        assert [topic["name"] for topic in forwarded(outcome)["topics"]] == ["fresh-topic"]
        fresh, other, twice, metadata = answer["topics"]
        assert (fresh["error_code"], fresh["topic_config_error_code"]) == (0, 29)
        assert (fresh["num_partitions"], fresh["replication_factor"], fresh["configs"]) == (-1, -1, [])
        assert (other["error_code"], other["error_message"]) == (29, "Authorization failed.")
        assert (twice["error_code"], twice["error_message"]) == (42, "Duplicate topic name.")
        assert metadata["error_code"] == 42
        assert set(driver.model.topics) & set(names) == {"fresh-topic"}

    @pytest.mark.behaviour("B139", "B182")
    @pytest.mark.parametrize("version", [1, 5])
    def test_deletion_by_name_does_not_reveal_hidden_topics(self, version: int) -> None:
        driver = connection(
            *[allow(TOPIC, name, AclOperation.DESCRIBE) for name in (BRAVO, "nowhere")],
            allow(TOPIC, ALPHA, AclOperation.DELETE),
        )
        names = [HIDDEN, "unknown-secret", "nowhere", BRAVO, ALPHA, ALPHA[:-1] + "x"]
        outcome, answer = ask(driver, 20, version, topic_names=names)
        assert forwarded(outcome)["topic_names"] == [ALPHA]
        codes = {item["name"]: item["error_code"] for item in answer["responses"]}
        assert codes == {
            HIDDEN: 29,
            "unknown-secret": 29,
            "nowhere": 3,
            BRAVO: 29,
            ALPHA: 0,
            ALPHA[:-1] + "x": 29,
        }

    @pytest.mark.behaviour("B182")
    def test_deletion_by_id_does_not_reveal_hidden_names(self) -> None:
        driver = connection(
            allow(TOPIC, BRAVO, AclOperation.DESCRIBE), allow(TOPIC, ALPHA, AclOperation.DELETE)
        )
        ids = [IDS[HIDDEN], IDS[BRAVO], IDS[ALPHA], UNKNOWN_ID]
        outcome, answer = ask(driver, 20, 6, topics=[{"name": None, "topic_id": each} for each in ids])
        answers = {item["topic_id"]: (item["name"], item["error_code"]) for item in answer["responses"]}
        assert answers == {
            IDS[HIDDEN]: (None, 29),
            IDS[BRAVO]: (BRAVO, 29),
            IDS[ALPHA]: (ALPHA, 0),
            UNKNOWN_ID: (None, 100),
        }
        assert outcome.response is not None
        assert HIDDEN.encode() not in outcome.response

    def test_a_topic_unknown_to_the_broker_is_deleted_by_the_controller(self) -> None:
        driver = connection(allow(TOPIC, "just-made", AclOperation.DELETE))
        outcome, answer = ask(driver, 20, 5, topic_names=["just-made"])
        assert forwarded(outcome)["topic_names"] == ["just-made"]
        assert [(item["name"], item["error_code"]) for item in answer["responses"]] == [("just-made", 3)]

    def test_deletion_by_name_also_needs_describe(self) -> None:
        driver = connection(
            allow(TOPIC, ALPHA, AclOperation.DELETE), allow(TOPIC, ALPHA, AclOperation.DESCRIBE, deny=True)
        )
        outcome, answer = ask(driver, 20, 5, topic_names=[ALPHA])
        assert outcome.forwarded == []
        assert [(item["name"], item["error_code"]) for item in answer["responses"]] == [(ALPHA, 29)]

    def test_deletion_with_a_duplicate_or_with_both_or_no_identifiers_is_invalid(self) -> None:
        topics = [
            {"name": ALPHA},
            {"name": ALPHA},
            {"name": None, "topic_id": IDS[BRAVO]},
            {"name": None, "topic_id": IDS[BRAVO]},
            {"name": BRAVO, "topic_id": IDS[BRAVO]},
            {"name": None},
        ]
        outcome, answer = ask(connection(*ALL_ALLOWED), 20, 6, topics=topics)
        assert outcome.forwarded == []
        assert [item["error_code"] for item in answer["responses"]] == [42] * 4
        assert {(item["name"], item["topic_id"]) for item in answer["responses"]} == {
            (ALPHA, bytes(16)),
            (None, IDS[BRAVO]),
            (BRAVO, IDS[BRAVO]),
            (None, bytes(16)),
        }

    @pytest.mark.parametrize("version", [1, 5, 6])
    def test_deletion_fails_before_the_acls_are_loaded(self, version: int) -> None:
        fields: dict[str, Any] = {"topics": [{"name": ALPHA}]} if version >= 6 else {"topic_names": [ALPHA]}
        outcome, answer = ask(connection(ready=False), 20, version, **fields)
        assert outcome.forwarded == []
        assert [(item["name"], item["error_code"]) for item in answer["responses"]] == [(ALPHA, -1)]


class TestDescribeTopicPartitions:
    VISIBLE = (allow(TOPIC, "prefixed", AclOperation.DESCRIBE), allow(TOPIC, ALPHA, AclOperation.DESCRIBE))

    def test_pages_contain_only_visible_topics(self) -> None:
        driver = connection(*self.VISIBLE)
        cursor: dict[str, Any] | None = None
        seen: list[str] = []
        for _ in range(3):
            outcome, answer = ask(driver, 75, 0, topics=[], response_partition_limit=1, cursor=cursor)
            assert outcome.response is not None
            assert HIDDEN.encode() not in outcome.response
            seen += [topic["name"] for topic in answer["topics"]]
            cursor = answer["next_cursor"]
        assert seen == [ALPHA, "prefixed-one", "prefixed-two"]
        assert cursor is None

    def test_a_cursor_at_a_hidden_topic_starts_after_it_and_does_not_reveal_it(self) -> None:
        driver = connection(*self.VISIBLE)
        answers = []
        for name in (HIDDEN, HIDDEN[:-1] + "b"):
            cursor = {"topic_name": name, "partition_index": 1}
            outcome, answer = ask(driver, 75, 0, topics=[], response_partition_limit=9, cursor=cursor)
            assert forwarded(outcome)["cursor"] is None
            assert [topic["name"] for topic in answer["topics"]] == ["prefixed-one", "prefixed-two"]
            answers.append(answer)
        assert answers[0] == answers[1], "an existing hidden topic looks like a missing one"

    def test_denied_topics_are_reported_by_name(self) -> None:
        topics = [{"name": name} for name in (HIDDEN, ALPHA, "nowhere")]
        _, answer = ask(connection(*self.VISIBLE), 75, 0, topics=topics, response_partition_limit=9)
        assert {t["name"]: (t["error_code"], t["topic_id"]) for t in answer["topics"]} == {
            HIDDEN: (29, bytes(16)),
            "nowhere": (29, bytes(16)),
            ALPHA: (0, IDS[ALPHA]),
        }

    @pytest.mark.parametrize("cursor", [(HIDDEN, 0), (ALPHA, -1)])
    def test_an_inconsistent_cursor_is_an_invalid_request(self, cursor: tuple[str, int]) -> None:
        fields = {"cursor": dict(zip(("topic_name", "partition_index"), cursor, strict=True))}
        outcome, answer = ask(connection(*ALL_ALLOWED), 75, 0, topics=[{"name": ALPHA}], **fields)
        assert outcome.forwarded == []
        assert [(t["name"], t["error_code"]) for t in answer["topics"]] == [(ALPHA, 42)]


CONFIG_CODES = {2: 29, 4: 31, 8: 31, 16: 31, 32: 30}


class TestConfigs:
    @pytest.mark.behaviour("B167")
    @pytest.mark.parametrize("version", [1, 4])
    def test_each_type_needs_its_own_right(self, version: int) -> None:
        resources = [{"resource_type": kind, "resource_name": "1"} for kind in CONFIG_CODES]
        outcome, answer = ask(connection(), 32, version, resources=resources)
        assert outcome.forwarded == []
        assert {item["resource_type"]: item["error_code"] for item in answer["results"]} == CONFIG_CODES
        messages = {item["error_code"]: item["error_message"] for item in answer["results"]}
        assert messages[29] == "Topic authorization failed."

    def test_describe_configs_on_the_cluster_opens_brokers_not_topics(self) -> None:
        driver = connection(allow(CLUSTER, CLUSTER_NAME, AclOperation.ALTER_CONFIGS))
        resources = [{"resource_type": kind, "resource_name": "1"} for kind in CONFIG_CODES]
        outcome, answer = ask(driver, 32, 4, resources=resources)
        assert [r["resource_type"] for r in forwarded(outcome)["resources"]] == [4, 8, 16]
        assert [item["error_code"] for item in answer["results"]] == [29, 0, 0, 0, 30]

    def test_broker_configs_show_the_authorizer_of_the_gateway(self) -> None:
        driver = connection(*ALL_ALLOWED)
        resources = [{"resource_type": 4, "resource_name": "1"}, {"resource_type": 2, "resource_name": ALPHA}]
        outcome, answer = ask(driver, 32, 4, resources=resources)
        assert [r["resource_type"] for r in forwarded(outcome)["resources"]] == [4, 2]
        broker, topic = ({each["name"]: each["value"] for each in r["configs"]} for r in answer["results"])
        assert broker["super.users"] == OWN_SUPER_USERS
        assert "super.users" not in topic

    def test_authorizer_settings_are_not_requested_from_upstream(self) -> None:
        keys = [["super.users"], ["super.users", "log.dirs"], ["log.dirs"]]
        resources = [
            {"resource_type": 4, "resource_name": str(number), "configuration_keys": each}
            for number, each in enumerate(keys)
        ]
        outcome, answer = ask(connection(*ALL_ALLOWED), 32, 4, resources=resources)
        assert [r["resource_name"] for r in forwarded(outcome)["resources"]] == ["1", "2"]
        own = [
            [each["value"] for each in r["configs"] if each["name"] == "super.users"]
            for r in answer["results"]
        ]
        assert own == [[OWN_SUPER_USERS], [OWN_SUPER_USERS], []]

    @pytest.mark.parametrize("kind", [0, 1, 3, 64, -1])
    def test_an_unknown_type_rejects_the_whole_request(self, kind: int) -> None:
        resources = [{"resource_type": each, "resource_name": ALPHA} for each in (2, kind)]
        outcome, answer = ask(connection(*ALL_ALLOWED), 32, 4, resources=resources)
        assert outcome.forwarded == []
        assert [item["error_code"] for item in answer["results"]] == [42, 42]


ACL = {
    "resource_type": 2,
    "resource_name": "a",
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
}
ACL |= {"operation": 3, "permission_type": 3}
FILTER = {"resource_type_filter": 2, "resource_name_filter": None, "pattern_type_filter": 3}
FILTER |= {"principal_filter": None, "host_filter": None, "operation": 3, "permission_type": 3}
DELETION = {"name": "zoe", "mechanism": 1}
UPSERTION = {"name": "adam", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}


class TestAclsAndScram:
    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_acl_requests_are_refused_as_a_whole(self, version: int) -> None:
        for api_key, fields, results in (
            (30, {"creations": [ACL, ACL]}, "results"),
            (31, {"filters": [FILTER, FILTER]}, "filter_results"),
        ):
            outcome, answer = ask(connection(), api_key, version, **fields)
            assert outcome.served is None
            assert [item["error_code"] for item in answer[results]] == [31, 31]
        outcome, answer = ask(connection(), 29, version, **FILTER)
        assert (answer["error_code"], answer["resources"], outcome.served) == (31, [], None)

    @pytest.mark.behaviour("B346")
    @pytest.mark.parametrize(
        "field", ["resource_type", "resource_pattern_type", "operation", "permission_type"]
    )
    def test_an_unknown_code_in_a_creation_closes_the_connection(self, field: str) -> None:
        outcome, _ = ask(connection(*ALL_ALLOWED), 30, 3, creations=[ACL, ACL | {field: 0}])
        assert outcome.closed is not None
        assert outcome.served is None

    @pytest.mark.behaviour("B346")
    @pytest.mark.parametrize("api_key", [29, 31])
    @pytest.mark.parametrize(
        "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
    )
    def test_an_unknown_code_in_a_filter_closes_the_connection(self, api_key: int, field: str) -> None:
        wrong = FILTER | {field: 0}
        fields = wrong if api_key == 29 else {"filters": [FILTER, wrong]}
        outcome, _ = ask(connection(*ALL_ALLOWED), api_key, 3, **fields)
        assert outcome.closed is not None

    @pytest.mark.behaviour("B193")
    @pytest.mark.parametrize(("ready", "code"), [(True, 31), (False, -1)])
    def test_scram_results_name_each_user_once_and_sorted(self, ready: bool, code: int) -> None:
        fields = {"deletions": [DELETION, DELETION], "upsertions": [UPSERTION]}
        outcome, answer = ask(connection(ready=ready), 51, 0, **fields)
        assert outcome.served is None
        assert [(r["user"], r["error_code"]) for r in answer["results"]] == [("adam", code), ("zoe", code)]

    @pytest.mark.behaviour("B198")
    def test_describing_scram_users_needs_the_right_on_the_cluster(self) -> None:
        outcome, answer = ask(connection(), 50, 0, users=None)
        assert (outcome.served, answer["error_code"], answer["results"]) == (None, 31, [])


class TestProducerIds:
    @pytest.mark.behaviour("B146", "B147", "B148")
    @pytest.mark.parametrize(
        "acl",
        [
            allow(CLUSTER, CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE),
            allow(TOPIC, "wherever", AclOperation.WRITE),
        ],
    )
    def test_any_write_right_suffices_without_a_transaction(self, acl: Any) -> None:
        _, answer = ask(connection(), 22, 0, transactional_id=None)
        assert (answer["error_code"], answer["producer_id"], answer["producer_epoch"]) == (31, -1, -1)
        assert ask(connection(acl), 22, 0, transactional_id=None)[1]["error_code"] == 0


class TestTheRest:
    @pytest.mark.parametrize("api_key", [17, 36])
    def test_sasl_requests_are_illegal_after_authentication(self, api_key: int) -> None:
        fields: dict[str, Any] = {"mechanism": "PLAIN"} if api_key == 17 else {"auth_bytes": b"token"}
        outcome, answer = ask(connection(*ALL_ALLOWED), api_key, 1, **fields)
        assert answer["error_code"] == 34
        assert (
            answer.get("error_message", "after").endswith("after successful authentication") or api_key == 17
        )
        assert outcome.forwarded == []

    def test_an_unknown_version_of_api_versions_is_answered_in_version_0(self) -> None:
        asked = bytearray(frame(18, 3, client_software_name="a", client_software_version="1"))
        asked[2:4] = (99).to_bytes(2, "big")
        outcome = connection().run(bytes(asked))
        assert outcome.response is not None
        assert outcome.response[4:6] == (35).to_bytes(2, "big")
        assert outcome.response[6:] == b"\0\0\0\1" + (18).to_bytes(2, "big") + b"\0\0\0\5"

    @pytest.mark.parametrize("name", ["", "-a", "a-", "a b", "ä", "a\n"])
    def test_an_invalid_software_name_is_an_invalid_request(self, name: str) -> None:
        for fields in ((name, "1"), ("a", name)):
            _, answer = ask(
                connection(), 18, 3, client_software_name=fields[0], client_software_version=fields[1]
            )
            assert answer["error_code"] == 42
            assert answer["api_keys"] == []

    @pytest.mark.parametrize(
        ("api_key", "version"), [(4, 0), (58, 0), (21, 2), (78, 1), (0, 2), (1, 19), (999, 0)]
    )
    def test_an_unsupported_request_closes_the_connection(self, api_key: int, version: int) -> None:
        start = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
        with pytest.raises(RefusedFrameError):
            connection(*ALL_ALLOWED).guard.open(start + bytes(40))

    def test_a_heartbeat_with_a_hidden_topic_is_denied_without_details(self) -> None:
        driver = connection(
            allow(GROUP, "group-one", AclOperation.READ), allow(TOPIC, ALPHA, AclOperation.READ)
        )
        fields = {"group_id": "group-one", "member_epoch": 0, "rebalance_timeout": 1000}
        for names, code in (([ALPHA], 0), ([ALPHA, HIDDEN], 29), (None, 0), ([], 0)):
            outcome, answer = ask(driver, 68, 0, subscribed_topic_names=names, **fields)
            assert answer["error_code"] == code
            assert bool(outcome.forwarded) == (code == 0)

    def test_an_error_contains_no_cluster_operations(self) -> None:
        driver = connection(*ALL_ALLOWED)
        _, answer = ask(driver, 60, 1, include_cluster_authorized_operations=True)
        assert answer["cluster_authorized_operations"] > 0
        assert answer["brokers"][0]["host"] == "gateway"
