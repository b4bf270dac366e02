"""A broker of Kafka 2.8.2 at work: what real clients did there is what its log's events say."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from kustos.acl.forms import AclForm, texts_of, write_acls
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.pipeline.tables import Tables
from testkit.kafka.legacy import ADMIN, LegacyBroker, legacy_broker
from testkit.review_rows import acl as reviewed
from testkit.waiting import wait_until

USERS = dict.fromkeys((ADMIN, "alice", "bob", "eve"), "of-a-test-broker")
TOPIC, GROUP = "orders", "readers"
WAIT_S = 60.0
DECISION = re.compile(r" is (?:Allowed|Denied) Operation = ")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LegacyBroker]:
    with legacy_broker(tmp_path_factory.mktemp("legacy"), USERS) as running:
        yield running


def acl(
    kind: ResourceType, name: str, how: ResourcePatternType, user: str, operation: AclOperation
) -> AclBinding:
    return AclBinding(kind, name, how, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def guard(broker: LegacyBroker) -> None:
    """Make the topic, and let alice write to it and bob read it."""
    admin = AdminClient(broker.client(ADMIN))
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(timeout=WAIT_S)
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    acls = [
        acl(ResourceType.TOPIC, TOPIC, literal, "alice", AclOperation.WRITE),
        acl(ResourceType.TOPIC, TOPIC[:3], prefixed, "bob", AclOperation.READ),
        acl(ResourceType.GROUP, GROUP, literal, "bob", AclOperation.READ),
    ]
    for made in admin.create_acls(acls).values():
        made.result(timeout=WAIT_S)


def written(broker: LegacyBroker, user: str) -> KafkaError | None:
    """Write a record and return why it was refused, None if it was not."""
    told: list[KafkaError | None] = []
    producer = Producer({**broker.client(user), "message.timeout.ms": int(WAIT_S * 1000)})
    producer.produce(TOPIC, b"x", on_delivery=lambda error, _: told.append(error))
    producer.flush(WAIT_S)
    [error] = told
    return error


def read(broker: LegacyBroker, user: str, *, refused: int | None = None) -> Message:
    """Return the first record, or the first message that says that it was `refused` so."""
    consumer = Consumer({**broker.client(user), "group.id": GROUP, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([TOPIC])
        found: list[Message] = []

        def polled() -> bool:
            message = consumer.poll(1)
            error = None if message is None else message.error()
            if message is not None and (error.code() if error else None) == refused:
                found.append(message)
            return bool(found)

        wait_until(polled, what=f"{user} reads")
        return found[0]
    finally:
        consumer.close()


def test_what_clients_of_a_legacy_broker_did_is_what_its_events_say(
    spark: SparkSession, broker: LegacyBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guard(broker)
    assert written(broker, "alice") is None
    assert read(broker, "bob").value() == b"x"
    assert (error := written(broker, "eve")) is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    read(broker, "eve", refused=KafkaError.GROUP_AUTHORIZATION_FAILED)

    (tmp_path / "audit").mkdir()
    shutil.copy(broker.authorizer_log, tmp_path / "audit" / "kafka-authorizer.log")
    (tmp_path / "pipeline.yml").write_text("version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\n")
    command = ["pipeline", "run", "--config", str(tmp_path / "pipeline.yml"), "--output", "json"]
    assert run(command) == ExitCode.OK
    [taken] = json.loads(capsys.readouterr().out)["inputs"]
    lines = (tmp_path / "audit" / "kafka-authorizer.log").read_text().splitlines()
    decisions = [line for line in lines if DECISION.search(line)]
    assert taken["lines"] == len(lines) == taken["events"] + taken["quarantined"] + taken["duplicates"]
    assert taken["events"] == len(decisions) > 0

    events = Tables(tmp_path / "tables").read(spark, "audit_events").collect()
    did = Counter(
        (row["principal_name"], row["operation"], row["resource_type"], row["resource_name"], row["decision"])
        for row in events
    )
    assert did.keys() >= {
        (ADMIN, "CREATE", "CLUSTER", "kafka-cluster", "ALLOWED"),
        (ADMIN, "ALTER", "CLUSTER", "kafka-cluster", "ALLOWED"),
        ("alice", "WRITE", "TOPIC", TOPIC, "ALLOWED"),
        ("bob", "READ", "TOPIC", TOPIC, "ALLOWED"),
        ("bob", "READ", "GROUP", GROUP, "ALLOWED"),
        ("eve", "DESCRIBE", "TOPIC", TOPIC, "DENIED"),
        ("eve", "DESCRIBE", "GROUP", GROUP, "DENIED"),
    }
    assert {key[-1] for key in did if key[0] == "eve" and key[2] == "TOPIC"} == {"DENIED"}
    assert {row["host"] for row in events} == {"127.0.0.1"}

    # the lines name no rule, yet no ACL that decided there is unused
    idle = reviewed("User:bob", "READ", "TOPIC", "invoices")
    acls = [
        reviewed("User:alice", "WRITE", "TOPIC", TOPIC),
        reviewed("User:bob", "READ", "TOPIC", TOPIC[:3], prefixed=True),
        reviewed("User:bob", "READ", "GROUP", GROUP),
        idle,
    ]
    (tmp_path / "acls.yaml").write_text(write_acls(acls, AclForm.YAML))
    with (tmp_path / "pipeline.yml").open("a") as configuration:
        configuration.write(f"acls: {{source: acls.yaml, super_users: 'User:{ADMIN}'}}\n")
        configuration.write("review: {dormant_days: 1}\n")
    command[1] = "review"
    assert run(command) == ExitCode.OK
    found = Tables(tmp_path / "tables").read(spark, "findings").filter("kind = 'UNUSED_ACL'").collect()
    assert [tuple(row["acl"]) for row in found] == [tuple(texts_of(idle).values())]
