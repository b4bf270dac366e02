"""Requests of administrators: the rights that each needs, and the form of denials.

Expected values: `KafkaApis`, `ControllerApis` and `ConfigAdminManager`, Kafka 4.3.1.
"""

from typing import Any

import pytest

from kustos.acl import AclBinding
from testkit.protocol import cluster_model
from testkit.protocol.random_requests import ALL_ALLOWED
from tests.unit.protocol.protocol_requests import (
    ALPHA,
    GROUP_NAME,
    ask,
    codes,
    connection,
    forwarded,
    frame,
    may,
    needs,
    refusals,
)

HIDDEN, BRAVO = "hidden-gamma", "bravo-topic"
TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED = 29, 30, 31
INVALID_REQUEST, FAILED, GROUP_NOT_FOUND = 42, -1, 69
PARTITION = [{"partition_index": 0}]


@pytest.mark.behaviour("B140")
@pytest.mark.parametrize("version", [0, 2])
def test_deleting_records_needs_delete(version: int) -> None:
    topics = [{"name": ALPHA, "partitions": [{"partition_index": 0, "offset": 1}]}]
    others = [may("WRITE"), may("ALTER"), may("DELETE", name=BRAVO), may("DELETE", "CLUSTER")]
    needs(21, version, {"topics": topics}, [may("DELETE")], TOPIC_DENIED, *others)
    _, answer = ask(connection(), 21, version, topics=topics)
    assert answer["topics"][0]["partitions"][0]["low_watermark"] == -1


@pytest.mark.behaviour("B118")
@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("acl", [may("DESCRIBE"), may("CLUSTER_ACTION", "CLUSTER")])
def test_epochs_are_returned_to_replicas_and_with_describe(acl: AclBinding, version: int) -> None:
    topics = [{"topic": ALPHA, "partitions": [{"partition": 0}]}]
    others = [may("CREATE"), may("DESCRIBE", "CLUSTER"), may("DESCRIBE", name=BRAVO)]
    needs(23, version, {"topics": topics}, [acl], TOPIC_DENIED, *others)


@pytest.mark.behaviour("B137")
@pytest.mark.parametrize("version", [0, 2])
def test_deleting_a_group_needs_delete_on_it(version: int) -> None:
    others = [may("READ", "GROUP"), may("DELETE", "CLUSTER"), may("DELETE", "GROUP", "group-two")]
    fields = {"groups_names": [GROUP_NAME]}
    needs(42, version, fields, [may("DELETE", "GROUP")], GROUP_DENIED, *others)


def test_a_duplicate_group_is_deleted_once() -> None:
    names = ["group-two", GROUP_NAME, "group-two", GROUP_NAME]
    outcome, answer = ask(connection(may("DELETE", "GROUP")), 42, 2, groups_names=names)
    assert forwarded(outcome)["groups_names"] == [GROUP_NAME]
    results = {each["group_id"]: each["error_code"] for each in answer["results"]}
    assert (results, len(answer["results"])) == ({"group-two": GROUP_DENIED, GROUP_NAME: 0}, 2)
    assert outcome.opened is not None
    counted = [each.action.reference_count for each in outcome.opened.exchange.granted]
    assert counted == [1]


USED: dict[str, Any] = {"group_id": GROUP_NAME, "topics": [{"name": ALPHA, "partitions": PARTITION}]}


class TestOffsets:
    @pytest.mark.behaviour("B138")
    def test_deleting_them_needs_delete_on_the_group_and_read_on_the_topic(self) -> None:
        needed = [may("DELETE", "GROUP"), may("READ")]
        assert refusals(needed, 47, 0, USED) == set()
        assert refusals(needed[1:], 47, 0, USED) == {GROUP_DENIED}
        for other in (may("READ", "GROUP"), may("DESCRIBE", "GROUP")):
            assert refusals([other, needed[1]], 47, 0, USED) == {GROUP_DENIED}
        for fewer in (needed[:1], [needed[0], may("DESCRIBE")], [needed[0], may("DELETE")]):
            outcome, answer = ask(connection(*fewer), 47, 0, **USED)
            assert codes(answer) == {TOPIC_DENIED}
            # upstream is asked whether the group itself is at fault
            assert [forwarded(outcome)["topics"]] == [[]]

    def test_an_error_of_the_group_takes_the_place_of_all_refusals(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        driver = connection(may("DELETE", "GROUP"), may("READ"))
        monkeypatch.setitem(
            cluster_model.ANSWERS, 47, lambda _model, _request, made: made.root(error_code=GROUP_NOT_FOUND)
        )
        topics = [{"name": name, "partitions": PARTITION} for name in (ALPHA, HIDDEN)]
        _, answer = ask(driver, 47, 0, group_id=GROUP_NAME, topics=topics)
        assert (answer["error_code"], answer["topics"]) == (GROUP_NOT_FOUND, [])


class TestCreatePartitions:
    @pytest.mark.behaviour("B141")
    @pytest.mark.parametrize("version", [0, 3])
    def test_adding_partitions_needs_alter(self, version: int) -> None:
        others = [may("CREATE"), may("ALTER", "CLUSTER"), may("ALTER_CONFIGS"), may("ALTER", name=BRAVO)]
        fields = {"topics": [{"name": ALPHA, "count": 9}]}
        needs(37, version, fields, [may("ALTER")], TOPIC_DENIED, *others)

    @pytest.mark.behaviour("B183")
    @pytest.mark.parametrize("version", [0, 3])
    def test_denied_and_duplicate_topics_have_different_errors(self, version: int) -> None:
        names = (HIDDEN, BRAVO, ALPHA, BRAVO)
        topics = [{"name": name, "count": 9} for name in names]
        outcome, answer = ask(connection(may("ALTER"), may("ALTER", name=BRAVO)), 37, version, topics=topics)
        results = [(each["name"], each["error_code"], each["error_message"]) for each in answer["results"]]
        assert results == [
            (HIDDEN, TOPIC_DENIED, None),
            (BRAVO, INVALID_REQUEST, "Duplicate topic name."),
            (ALPHA, 0, None),
        ]
        assert [topic["name"] for topic in forwarded(outcome)["topics"]] == [ALPHA]


TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, UNKNOWN_OPERATION = 0, 1, 7
RIGHTS = {
    TOPIC: may("ALTER_CONFIGS"),
    BROKER: may("ALTER_CONFIGS", "CLUSTER"),
    LOGGER: may("ALTER_CONFIGS", "CLUSTER"),
    METRICS: may("ALTER_CONFIGS", "CLUSTER"),
    GROUP: may("ALTER_CONFIGS", "GROUP"),
}
NAMES = {TOPIC: ALPHA, BROKER: "1", LOGGER: "1", METRICS: "mine", GROUP: GROUP_NAME}
DENIED = {TOPIC: TOPIC_DENIED, GROUP: GROUP_DENIED}


def altered(api_key: int, kind: int, *names: str, value: str | None = "1", **fields: Any) -> dict[str, Any]:
    operation = {"config_operation": SET} if api_key == 44 else {}
    configs = [{"name": name, "value": value} | operation | fields for name in names]
    return {"resource_type": kind, "resource_name": NAMES.get(kind, "x"), "configs": configs}


class TestAlterConfigs:
    @pytest.mark.behaviour("B117", "B156", "B168")
    @pytest.mark.parametrize("api_key", [33, 44])
    @pytest.mark.parametrize("kind", NAMES)
    def test_each_kind_of_resource_needs_its_own_right(self, api_key: int, kind: int) -> None:
        fields = {"resources": [altered(api_key, kind, "a")]}
        if (api_key, kind) == (33, LOGGER):
            # the older API has never known loggers
            outcome, answer = ask(connection(*ALL_ALLOWED), api_key, 2, **fields)
            assert (codes(answer), outcome.forwarded) == ({INVALID_REQUEST}, [])
            return
        others = [may("DESCRIBE_CONFIGS"), may("ALTER"), may("ALTER", "CLUSTER"), may("WRITE")]
        others += [right for other, right in RIGHTS.items() if right != RIGHTS[kind]]
        others.append(may("CLUSTER_ACTION", "CLUSTER"))
        for version in (0, 1):
            needs(api_key, version, fields, [RIGHTS[kind]], DENIED.get(kind, CLUSTER_DENIED), *others)

    @pytest.mark.behaviour("B181")
    @pytest.mark.parametrize("api_key", [33, 44])
    def test_each_resource_has_its_own_error(self, api_key: int) -> None:
        resources = [
            altered(api_key, TOPIC, "a"),
            altered(api_key, GROUP, "a"),
            altered(api_key, BROKER, "a"),
            altered(api_key, METRICS, "a"),
            altered(api_key, METRICS, "b"),
            altered(api_key, 77, "a"),
        ]
        driver = connection(RIGHTS[TOPIC], RIGHTS[METRICS])
        outcome, answer = ask(driver, api_key, 1, resources=resources)
        results = [(each["error_code"], each["error_message"] or None) for each in answer["responses"]]
        twice = (INVALID_REQUEST, "Each resource must appear at most once.")
        assert results == [
            (0, None),
            (GROUP_DENIED, "Group authorization failed."),
            (0, None),
            twice,
            twice,
            (INVALID_REQUEST, "Unknown resource type 77"),
        ]
        kinds = [resource["resource_type"] for resource in forwarded(outcome, -1)["resources"]]
        assert kinds == [TOPIC, BROKER]

    @pytest.mark.parametrize("api_key", [33, 44])
    @pytest.mark.parametrize(
        ("resource", "reason"),
        [
            ((TOPIC, "a", "a"), "Error due to duplicate config keys"),
            ((BROKER, "super.users"), "Cannot update these configs here: super.users"),
            (
                (BROKER, "b", "listeners", "advertised.listeners"),
                "Cannot update these configs here: advertised.listeners, listeners",
            ),
            (
                (BROKER, "listener.security.protocol.map"),
                "Cannot update these configs here: listener.security.protocol.map",
            ),
        ],
    )
    def test_an_invalid_alteration_of_a_broker_is_told_only_to_those_who_may_alter_it(
        self, api_key: int, resource: tuple[Any, ...], reason: str
    ) -> None:
        fields = {"resources": [altered(api_key, *resource)]}
        outcome, answer = ask(connection(*ALL_ALLOWED), api_key, 1, **fields)
        [result] = answer["responses"]
        assert (result["error_code"], result["error_message"]) == (INVALID_REQUEST, reason)
        assert outcome.forwarded == []
        assert outcome.opened is not None
        of_broker = resource[0] == BROKER
        assert [each.decision.allowed for each in outcome.opened.exchange.decided] == [True] * of_broker
        _, answer = ask(connection(), api_key, 1, **fields)
        [result] = answer["responses"]
        refusal = (CLUSTER_DENIED, None) if of_broker else (INVALID_REQUEST, reason)
        assert (result["error_code"], result["error_message"]) == refusal

    def test_only_a_removed_setting_has_no_value(self) -> None:
        driver = connection(*ALL_ALLOWED)
        for operation, reason in ((DELETE, None), (SET, "Null value not supported for : a")):
            resource = altered(44, TOPIC, "a", value=None, config_operation=operation)
            _, answer = ask(driver, 44, 1, resources=[resource])
            assert (answer["responses"][0]["error_message"] or None) == reason

    @pytest.mark.parametrize("name", ["one", "1x", " 1"])
    def test_a_broker_id_is_a_number(self, name: str) -> None:
        resource = altered(44, BROKER, "a") | {"resource_name": name}
        _, answer = ask(connection(*ALL_ALLOWED), 44, 1, resources=[resource])
        assert answer["responses"][0]["error_message"] == f"Node id must be an integer, but it is: {name}"

    def test_an_unknown_operation_reaches_no_controller(self) -> None:
        resources = [
            altered(44, GROUP, "a"),
            altered(44, TOPIC, "a", config_operation=UNKNOWN_OPERATION),
        ]
        outcome, answer = ask(connection(*ALL_ALLOWED), 44, 1, resources=resources)
        assert [each["error_code"] for each in answer["responses"]] == [FAILED] * 2
        assert outcome.forwarded == []


TOPIC_PARTITIONS = [{"topic": ALPHA, "partitions": [0]}]
OF_THE_CLUSTER: dict[str, tuple[int, int, dict[str, Any], str]] = {
    "elect leaders": (43, 2, {"topic_partitions": TOPIC_PARTITIONS}, "ALTER"),
    "elect leaders at first": (43, 0, {"topic_partitions": TOPIC_PARTITIONS}, "ALTER"),
    "reassign": (45, 1, {"topics": [{"name": ALPHA, "partitions": PARTITION}]}, "ALTER"),
    "unregister": (64, 0, {"broker_id": 5}, "ALTER"),
    "update features": (57, 2, {"feature_updates": [{"feature": "share.version"}]}, "ALTER"),
    "add a voter": (80, 1, {"cluster_id": None, "listeners": []}, "ALTER"),
    "remove a voter": (81, 0, {"cluster_id": None}, "ALTER"),
    "move logs": (34, 2, {"dirs": [{"path": "/", "topics": [{"name": ALPHA, "partitions": [0]}]}]}, "ALTER"),
    "list reassignments": (46, 0, {"topics": None}, "DESCRIBE"),
    "describe the quorum": (55, 2, {"topics": []}, "DESCRIBE"),
    "describe logs": (35, 5, {"topics": None}, "DESCRIBE"),
    "list resources": (74, 1, {"resource_types": []}, "DESCRIBE_CONFIGS"),
    "describe quotas": (48, 1, {"components": []}, "DESCRIBE_CONFIGS"),
    "alter quotas": (49, 1, {"entries": [{"entity": [], "ops": []}]}, "ALTER_CONFIGS"),
}
EVERY_RIGHT = {"ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DELETE"}
IMPLIED = {"DESCRIBE": {"ALTER", "DELETE"}, "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"}}


@pytest.mark.behaviour("B177", "B178", "B179")
@pytest.mark.parametrize("which", OF_THE_CLUSTER)
def test_cluster_administration_needs_the_right_on_the_cluster(which: str) -> None:
    api_key, version, fields, operation = OF_THE_CLUSTER[which]
    others = EVERY_RIGHT - {operation} - IMPLIED.get(operation, set())
    elsewhere = [may("ALL"), may("ALL", "GROUP")]
    rights = [may(other, "CLUSTER") for other in sorted(others)]
    needs(api_key, version, fields, [may(operation, "CLUSTER")], CLUSTER_DENIED, *elsewhere, *rights)


@pytest.mark.parametrize(("api_key", "fields"), [(71, {}), (72, {"subscription_id": 3, "metrics": b"m"})])
def test_every_client_may_send_its_metrics(api_key: int, fields: dict[str, Any]) -> None:
    sent = frame(api_key, 0, **fields)
    outcome = connection().run(sent)
    assert outcome.forwarded == [sent]


@pytest.mark.behaviour("B177")
def test_a_refused_quota_names_its_entity() -> None:
    entities = [
        [{"entity_type": "user", "entity_name": "alice"}, {"entity_type": "client-id", "entity_name": None}],
        [{"entity_type": "ip", "entity_name": "::1"}],
    ]
    entries = [{"entity": entity, "ops": [{"key": "k", "value": 1.0}]} for entity in entities]
    _, answer = ask(connection(), 49, 1, entries=entries)
    assert [each["entity"] for each in answer["entries"]] == entities
    assert {each["error_code"] for each in answer["entries"]} == {CLUSTER_DENIED}


@pytest.mark.parametrize("version", [1, 2])
def test_logs_are_hidden_in_versions_without_an_error_code(version: int) -> None:
    outcome, answer = ask(connection(), 35, version, topics=None)
    assert (answer["results"], outcome.forwarded) == ([], [])


class TestAddresses:
    def test_controllers_are_shown_without_their_addresses(self) -> None:
        outcome, answer = ask(connection(may("DESCRIBE", "CLUSTER")), 55, 2, topics=[])
        assert answer["nodes"] == [{"node_id": 1, "listeners": []}]
        assert outcome.response is not None
        assert b"upstream" not in outcome.response

    @pytest.mark.parametrize("keys", [None, ["advertised.listeners", "num.partitions"]])
    def test_settings_with_addresses_have_no_value(
        self, keys: list[str] | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def described(_model: object, request: Any, made: Any) -> Any:
            result = made.root.ELEMENTS["results"]
            config = result.ELEMENTS["configs"]
            synonym = config.ELEMENTS["synonyms"]
            settings = {"advertised.listeners": "PLAINTEXT://upstream:9092", "num.partitions": "7"}
            configs = [
                config(name=name, value=value, synonyms=[synonym(name=name, value=value)])
                for name, value in settings.items()
            ]
            return made.root(
                results=[
                    result(
                        resource_type=each.resource_type, resource_name=each.resource_name, configs=configs
                    )
                    for each in request.resources
                ]
            )

        monkeypatch.setitem(cluster_model.ANSWERS, 32, described)
        resource = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": keys}
        outcome, answer = ask(connection(may("DESCRIBE_CONFIGS", "CLUSTER")), 32, 4, resources=[resource])
        shown = {each["name"]: each for each in answer["results"][0]["configs"]}
        assert shown["num.partitions"]["value"] == "7"
        hidden = shown["advertised.listeners"]
        assert (hidden["value"], hidden["is_sensitive"], hidden["synonyms"][0]["value"]) == (None, True, None)
        assert outcome.response is not None
        assert b"upstream" not in outcome.response


@pytest.mark.parametrize("api_key", [52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82, 94, 999, 10_000, -1])
def test_controller_and_unknown_requests_close_the_connection(api_key: int) -> None:
    start = frame(18, 0)[4:]
    outcome = connection(*ALL_ALLOWED).run(api_key.to_bytes(2, "big", signed=True) + b"\0\0" + start)
    assert outcome.closed is not None
    assert (outcome.response, outcome.forwarded) == (None, [])
