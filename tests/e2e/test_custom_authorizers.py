"""Custom authorizers before a real Kafka: the example of the docs, one that is slow, settings reloaded."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from kio.static.primitive import i8

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.raw_client import RawClient
from testkit.kustos import KustosNode, KustosSettings
from testkit.paths import ROOT
from testkit.waiting import wait_until, whole_lines

USERS = {name: f"{name}-secret" for name in ("admin", "alice", "bob")}
PATIENCE_S = 60.0
METADATA, DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 3, 29, 30, 31


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("teams") / "teams.json"
    path.write_text(json.dumps({"payments": ["User:alice"]}))
    return path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, teams: Path) -> Iterator[GuardedCluster]:
    settings = KustosSettings(
        users=USERS,
        properties={
            "authorizer.class.name": "team_authorizer.TeamAuthorizer",
            "teams.file": str(teams),
            "super.users": "User:admin",
        },
    )
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")])
        )
        directory = tmp_path_factory.mktemp("scene")
        topics = ("payments.orders", "stock.items")
        yield stack.enter_context(GuardedCluster(directory, settings, topics=topics, taps_clients=False))


def produced(scene: GuardedCluster, user: str, topic: str) -> int | None:
    """Return the error code of a record that a user sends, None where it arrived."""
    codes: list[int | None] = []
    producer = Producer(scene.librdkafka(user))
    producer.produce(
        topic, b"x", on_delivery=lambda error, _: codes.append(None if error is None else error.code())
    )
    assert producer.flush(PATIENCE_S) == 0
    [code] = codes
    return code


def log(node: KustosNode) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(node.directory / "kustos.log")]


def reloaded(scene: GuardedCluster) -> dict[str, Any]:
    """Tell the node to read its settings again; return the line that says how it went."""
    server = scene.kustos.server
    assert server is not None
    known = len(log(scene.kustos))
    os.kill(server.pid, signal.SIGHUP)

    def told() -> list[dict[str, Any]]:
        return [line for line in log(scene.kustos)[known:] if "reloaded" in line["event"]]

    wait_until(lambda: bool(told()), what="the settings were read again")
    [line] = told()
    return line


def test_teams_decide(scene: GuardedCluster) -> None:
    assert produced(scene, "alice", "payments.orders") is None
    assert produced(scene, "alice", "stock.items") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert produced(scene, "bob", "payments.orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert produced(scene, "admin", "stock.items") is None


def test_acl_requests_are_answered_by_the_authorizer(scene: GuardedCluster) -> None:
    admin = AdminClient(scene.librdkafka("admin"))
    filter_of: Any = AclBindingFilter
    kinds = (AclOperation.ANY, AclPermissionType.ANY)
    every = filter_of(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, *kinds)
    listed = {(each.name, each.principal) for each in admin.describe_acls(every).result(PATIENCE_S)}
    assert listed == {("*", "User:*"), ("payments.", "User:alice")}
    one = ("t", ResourcePatternType.LITERAL, "User:x", "*", AclOperation.READ, AclPermissionType.ALLOW)
    [creation] = admin.create_acls([AclBinding(ResourceType.TOPIC, *one)]).values()
    with pytest.raises(KafkaException, match="teams are kept in a file") as refused:
        creation.result(PATIENCE_S)
    assert refused.value.args[0].code() == KafkaError.POLICY_VIOLATION
    assert "kafka_server_authorizer_acl_count 3.0" in scene.kustos.metrics()


def test_audit_events_say_that_a_custom_authorizer_decided(scene: GuardedCluster) -> None:
    assert produced(scene, "bob", "stock.items") == KafkaError.TOPIC_AUTHORIZATION_FAILED

    def denied() -> list[dict[str, Any]]:
        events = scene.kustos.audit_events()
        return [each for each in events if (each["principal_name"], each["decision"]) == ("bob", "DENIED")]

    wait_until(lambda: bool(denied()), what="the decision is on disk")
    assert {(each["rule"]["kind"], each["acl_offset"]) for each in denied()} == {("CustomAuthorizer", -1)}


def test_a_reload_puts_new_settings_in_force_and_wrong_ones_leave_the_old(
    scene: GuardedCluster, teams: Path
) -> None:
    fresh = teams.with_name("fresh.json")
    properties = scene.kustos.properties_file
    before = properties.read_text()
    try:
        fresh.write_text(json.dumps({"payments": ["User:alice", "bob"]}))
        properties.write_text(before.replace(str(teams), str(fresh)))
        refused = reloaded(scene)
        assert (refused["level"], "could not parse principal from `bob`" in refused["reason"]) == (
            "error",
            True,
        )
        assert produced(scene, "bob", "payments.orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert produced(scene, "alice", "payments.orders") is None
        fresh.write_text(json.dumps({"payments": ["User:bob"]}))
        assert reloaded(scene)["changed"] == ["teams.file"]
        assert produced(scene, "bob", "payments.orders") is None
        assert produced(scene, "alice", "payments.orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        properties.write_text(before)
        reloaded(scene)


def figure(page: str, name: str, labels: str) -> float:
    found = re.search(rf"^{name}{{{labels}}} (\S+)$", page, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def creation(name: str) -> dict[str, Any]:
    codes = {"resource_type": i8(2), "operation": i8(3), "permission_type": i8(3)}
    return {"creations": (AclCreation(resource_name=name, principal="User:a", host="*", **codes),)}


WHOLE_CLUSTER: dict[str, Any] = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
PURGATORY = "kafka_server_delayed_operation_purgatory_"
DELAYED = 'delayedOperation="AlterAcls"'


@pytest.mark.behaviour("B212")
def test_a_slow_change_waits_in_the_purgatory_and_holds_up_its_own_connection_only(
    scene: GuardedCluster, tmp_path: Path
) -> None:
    settings = KustosSettings(
        protocol="PLAINTEXT", properties={"authorizer.class.name": "tests.e2e.authorizers.Slow"}
    )
    with KustosNode(tmp_path, scene.kustos.upstream, settings) as node, ExitStack() as stack:
        slow, other = (stack.enter_context(RawClient(node.bootstrap, name)) for name in ("slow", "other"))
        slow.send(slow.request(CREATE_ACLS, 3, **creation("slow")))
        slow.send(slow.request(METADATA, 12, **WHOLE_CLUSTER))

        def delayed() -> float:
            return figure(node.metrics(), PURGATORY + "num_delayed_operations", DELAYED)

        wait_until(lambda: delayed() == 1, what="the change waits")
        assert figure(node.metrics(), PURGATORY + "purgatory_size", DELAYED) == 1
        assert other.ask(METADATA, 12, **WHOLE_CLUSTER).brokers
        assert {each.client_id for each in scene.upstream.exchanges} >= {"other"}
        assert "slow" not in {each.client_id for each in scene.upstream.exchanges}
        slow.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            slow.socket.recv(1)
        slow.socket.settimeout(PATIENCE_S)
        [released] = other.ask(CREATE_ACLS, 3, **creation("release")).results
        assert int(released.error_code) == 0
        answers = [slow.receive(), slow.receive()]
        assert [int.from_bytes(answer[:4], "big") for answer in answers] == [1, 2]
        wait_until(lambda: delayed() == 0, what="nothing waits any more")
        times = "kafka_network_request_metrics_"
        remote, local = (
            figure(node.metrics(), f"{times}{which}_time_ms_sum", 'request="CreateAcls"')
            for which in ("remote", "local")
        )
        assert remote > local > 0


def test_without_an_authorizer_the_acl_requests_are_answered_as_kafka_answers_them(
    scene: GuardedCluster, tmp_path: Path
) -> None:
    settings = KustosSettings(protocol="PLAINTEXT", properties={"kustos.authorization.mode": "off"})
    names = ("resource_name_filter", "principal_filter", "host_filter")
    codes = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    every: dict[str, Any] = dict.fromkeys(names) | dict.fromkeys(codes, i8(1))
    asked: list[tuple[int, dict[str, Any]]] = [
        (DESCRIBE_ACLS, every),
        (CREATE_ACLS, {"creations": creation("a")["creations"] * 2}),
        (DELETE_ACLS, {"filters": (DeleteAclsFilter(**every),)}),
    ]
    with KustosNode(tmp_path, scene.direct, settings) as node, ExitStack() as stack:
        ours, theirs = (stack.enter_context(RawClient(each, "c")) for each in (node.bootstrap, scene.direct))
        for api_key, fields in asked:
            answer = ours.ask(api_key, 3, **fields)
            assert answer == theirs.ask(api_key, 3, **fields)
            assert "No Authorizer is configured" in repr(answer)


def test_kafkas_first_authorizer_serves_the_acl_requests_from_its_file(
    scene: GuardedCluster, tmp_path: Path
) -> None:
    acls = tmp_path / "acls.json"
    properties = {
        "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
        "kustos.legacy.acl.file": str(acls),
    }
    users = ("ANONYMOUS",)
    settings = KustosSettings(protocol="PLAINTEXT", super_users=users, properties=properties)
    with KustosNode(tmp_path / "node", scene.direct, settings) as node:
        with RawClient(node.bootstrap, "client") as client:
            [result] = client.ask(CREATE_ACLS, 3, **creation("orders")).results
        assert int(result.error_code) == 0
        [(path, kept)] = json.loads(acls.read_text()).items()
        assert path == "/kafka-acl/Topic/orders"
        assert [each["principal"] for each in kept["acls"]] == ["User:a"]
        # as in Kafka, whose wrapper does not count either
        assert "kafka_server_authorizer_acl_count -1.0" in node.metrics()
