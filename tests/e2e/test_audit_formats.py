"""One node, three sinks, three formats: OCSF in files, CloudEvents in a topic, the own one by syslog."""

import json
from pathlib import Path
from typing import Any

from cloudevents.core.bindings.kafka import KafkaMessage, from_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.cimpl import NewTopic
from jsonschema import Draft202012Validator

from testkit.audit_events import AuditEvent
from testkit.guarded.raw_client import RawClient
from testkit.kafka import KafkaNode, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.rsyslog import Rsyslog
from testkit.waiting import wait_until

TOPIC = "formats-audit"
LIST_GROUPS = 16
USERS = {"ann": "ann-secret"}
HOSTILE = 'a\n<0>1 - "}] ü'
SCHEMA = Path(__file__).parents[1] / "unit" / "ocsf-1.8.0.schema.json"


def records(kafka: KafkaNode) -> list[CloudEvent]:
    """Return the events in the topic, as the SDK of CloudEvents reads them."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    found: list[CloudEvent] = []
    try:
        end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)[1]
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while len(found) < end:
            for message in consumer.consume(100, timeout=0.5):
                assert message.error() is None
                headers: dict[str, Any] = dict(message.headers() or ())
                assert headers["content-type"] == b"application/cloudevents+json"
                value = message.value() or b""
                event = from_structured(KafkaMessage(headers, None, value), JSONFormat(), CloudEvent)
                assert isinstance(event, CloudEvent)
                found.append(event)
    finally:
        consumer.close()
    return found


def test_all_sinks_have_the_same_events_each_in_its_format(kafka: KafkaNode, tmp_path: Path) -> None:
    make_topics([kafka], NewTopic(TOPIC, 1, 1))
    with Rsyslog(tmp_path / "rsyslog") as rsyslog:
        properties = {
            "kustos.audit.sinks": "json,kafka,syslog",
            "kustos.audit.json.format": "ocsf",
            "kustos.audit.kafka.topic": TOPIC,
            "kustos.audit.kafka.format": "cloudevents",
            "kustos.audit.syslog.receiver": rsyslog.receiver("tls"),
            "kustos.audit.syslog.facility": "audit",
            "kustos.audit.syslog.ssl.truststore.type": "PEM",
            "kustos.audit.syslog.ssl.truststore.location": str(rsyslog.directory / "authority.pem"),
        }
        settings = KustosSettings(users=USERS, properties=properties)
        with KustosNode(tmp_path / "kustos", kafka.bootstrap, settings) as node:
            with RawClient(node.bootstrap, HOSTILE) as client:
                client.log_in("ann", USERS["ann"])
                client.ask(LIST_GROUPS, 4, states_filter=())
            assert node.stop() == 0
            lines = [
                json.loads(line)
                for path in sorted(node.audit_directory.rglob("*.jsonl"))
                for line in path.read_text().splitlines()
            ]
        wait_until(lambda: len(rsyslog.received()) >= len(lines), what="syslog has all events")
        messages = rsyslog.received()
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))
    for line in lines:
        validator.validate(line)
    assert {line["class_name"] for line in lines} == {"API Activity", "Authentication"}
    ids = [line["metadata"]["uid"] for line in lines]
    assert [event.get_id() for event in records(kafka)] == ids
    assert [json.loads(each.message)["event_id"] for each in messages] == ids
    decision = next(each for each in messages if each.msgid == "DECISION")
    event = AuditEvent.from_json(decision.message)
    assert (event.client_id, event.api_name, event.decision) == (HOSTILE, "ListGroups", "DENIED")
    assert event.latency_us is not None
    assert 0 < event.latency_us < 60_000_000
