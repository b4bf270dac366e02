"""Three listeners of one node, one in each mode: what passes, what is told, and who is not a guard."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from testkit.guarded.cluster import Op, Type, acl
from testkit.kafka import KafkaNode, make_topics
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.waiting import wait_until

USERS = {"ann": "ann-secret"}
MINE, OTHER = "modes-mine", "modes-other"
MODES = {"TRIAL": "shadow", "OPEN": "off"}
WAIT_S = 60.0


class Modes:
    """The node, and clients of its listeners."""

    def __init__(self, node: KustosNode, ports: dict[str, int]) -> None:
        self.node = node
        self.ports = ports

    def client(self, listener: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": f"{LOOPBACK}:{self.ports[listener]}",
            "client.id": listener,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "ann",
            "sasl.password": USERS["ann"],
            "log_level": 0,
        }

    def written(self, listener: str, topic: str) -> str:
        """Write one record; return the name of the error, empty if there is none."""
        errors: list[str] = []
        producer = Producer(self.client(listener))
        producer.produce(topic, b"value", on_delivery=lambda error, _: errors.append(_name(error)))
        assert producer.flush(WAIT_S) == 0
        return errors[0]

    def ready(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.node.http_port}/ready", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def figure(self, name: str, labels: str) -> float:
        pattern = rf"^{name}\{{{labels}\}} (\S+)$"
        return sum(float(text) for text in re.findall(pattern, self.node.metrics(), re.MULTILINE))


def _name(error: Any) -> str:
    return "" if error is None else str(error.name())


@pytest.fixture(scope="module", autouse=True)
def _topics(kafka: KafkaNode) -> None:
    make_topics([kafka], *(NewTopic(name, 1, 1) for name in (MINE, OTHER)))


@pytest.fixture(params=["1", "2"], ids=["one-process", "workers"])
def modes(request: pytest.FixtureRequest, kafka: KafkaNode, tmp_path: Path) -> Iterator[Modes]:
    ports = {name: free_port() for name in MODES}
    properties = {
        "kustos.workers": request.param,
        "listener.security.protocol.map": ",".join(f"{name}:SASL_PLAINTEXT" for name in MODES),
    }
    for name, mode in MODES.items():
        prefix = f"listener.name.{name.lower()}"
        properties[f"{prefix}.kustos.authorization.mode"] = mode
        properties[f"{prefix}.kustos.broker.port.start"] = str(free_port_range(BROKER_PORTS))
        properties[f"{prefix}.plain.sasl.jaas.config"] = (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="{USERS["ann"]}";'
        )
    acls = (acl("ann", Op.WRITE, Type.TOPIC, MINE),)
    node = KustosNode(tmp_path / "kustos", kafka.bootstrap, KustosSettings(users=USERS, acls=acls))
    others = ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())
    properties["listeners"] = f"SASL_PLAINTEXT://{node.bootstrap},{others}"
    node.settings = KustosSettings(users=USERS, acls=acls, properties=properties)
    with node:
        yield Modes(node, ports | {"SASL_PLAINTEXT": node.port})


def test_each_listener_does_what_its_mode_says_and_tells_it(modes: Modes) -> None:
    denied = "TOPIC_AUTHORIZATION_FAILED"
    assert [modes.written("SASL_PLAINTEXT", topic) for topic in (MINE, OTHER)] == ["", denied]
    assert [modes.written("TRIAL", topic) for topic in (MINE, OTHER)] == ["", ""]
    assert [modes.written("OPEN", topic) for topic in (MINE, OTHER)] == ["", ""]

    assert modes.ready()["listeners_without_guard"] == {"TRIAL": "shadow", "OPEN": "off"}
    for listener, enforces in (("SASL_PLAINTEXT", 1), ("TRIAL", 0), ("OPEN", 0)):
        assert modes.figure("kustos_listener_enforces", f'listener="{listener}"') == enforces
    wait_until(
        lambda: (
            modes.figure("kustos_authorization_decisions_total", 'api="Produce",result="SHADOW_DENIED"') == 1
        ),
        what="the one write that the ACLs would have denied is counted",
    )
    modes.node.stop()
    log = (modes.node.directory / "kustos.log").read_text()
    for listener in MODES:
        assert f"listener `{listener}` is not a guard" in log
    produced = [event for event in modes.node.audit_events() if event["api_name"] == "Produce"]
    assert {
        (event["listener_name"], event["resource_name"]): (event["decision"], event["rule"]["kind"])
        for event in produced
    } == {
        ("SASL_PLAINTEXT", MINE): ("ALLOWED", "MatchingAcl"),
        ("TRIAL", MINE): ("ALLOWED", "MatchingAcl"),
        ("TRIAL", OTHER): ("ALLOWED", "ShadowMode"),
        ("OPEN", MINE): ("ALLOWED", "AuthorizationOff"),
        ("OPEN", OTHER): ("ALLOWED", "AuthorizationOff"),
    }
    for event in produced:
        told = (event.get("shadow_decision"), event.get("shadow_rule"))
        is_shadow = event["rule"]["kind"] == "ShadowMode"
        assert told == (("DENIED", "DefaultDeny") if is_shadow else (None, None))
        assert (event["acl_offset"] == -1) == (event["listener_name"] == "OPEN")


def test_in_the_shadow_nobody_grants_himself_rights(modes: Modes) -> None:
    granted = AclBinding(
        ResourceType.TOPIC,
        OTHER,
        ResourcePatternType.LITERAL,
        "User:ann",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    for listener, refused in (("SASL_PLAINTEXT", True), ("TRIAL", True), ("OPEN", False)):
        admin = AdminClient(modes.client(listener), logger=None)
        (future,) = admin.create_acls([granted]).values()
        if refused:
            with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
                future.result(WAIT_S)
        else:
            future.result(WAIT_S)
