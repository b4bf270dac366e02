"""Events in envelopes: the formats' own tools accept each, each stays one line, and no field is lost."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from cloudevents.core.bindings.kafka import KafkaMessage, from_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kustos.acl import KafkaPrincipal
from kustos.authorizer import SecurityEvent, SecurityEventType, SecurityResult
from kustos.authorizer.audit import AuditFormat
from kustos.authorizer.audit.ocsf import MAPPED
from kustos.client import KafkaConnection, NodeAddress
from kustos.gateway.audit.events import AuditEvents, RequestEvents, text_lines
from kustos.gateway.audit.json_files import formatted
from kustos.gateway.audit.log4j import KafkaLinesSink
from kustos.gateway.audit.syslog import SyslogMessages
from kustos.gateway.audit.topic import HEADERS, KafkaTopicSink
from testkit.gateway.audit import CONTEXT, DENIED, decided, failure
from tests.property.test_audit_json_lines import ENTRIES, TEXTS

SCHEMA = Path(__file__).parents[1] / "unit" / "ocsf-1.8.0.schema.json"
TIMES = st.integers(0, 253_402_300_799_999)
"""Until the year 9999, the last that these formats have."""
HOSTS = st.none() | st.sampled_from(["10.0.0.1", "0:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%eth0", ""])
EVENTS = AuditEvents(3, 2**63)
SECURITY = st.builds(
    EVENTS.security_line,
    st.integers(0, 2**62),
    st.builds(
        SecurityEvent,
        event_type=st.sampled_from(SecurityEventType),
        result=st.sampled_from(SecurityResult),
        time_ms=TIMES,
        first_time_ms=TIMES,
        listener_name=TEXTS,
        security_protocol=TEXTS,
        host=HOSTS,
        principal=st.none() | st.builds(KafkaPrincipal, TEXTS, TEXTS),
        mechanism=st.none() | TEXTS,
        failure=st.none() | TEXTS,
        claimed_name=st.none() | TEXTS,
        attempt_count=st.integers(1, 2**40),
        change=st.none() | st.sampled_from(["UPSERT", "CREATE", "DELETE", "ALTER", "RELOAD"]),
        subject=st.none() | TEXTS,
        detail=st.none() | TEXTS,
    ),
)
DECISIONS = st.builds(lambda entry, time_ms: EVENTS.lines(entry._replace(time_ms=time_ms)), ENTRIES, TIMES)
HOSTILE = EVENTS.lines(
    RequestEvents(0, 1, CONTEXT, (decided('a\n"}{\x00\u2028\U0001f600\udc00', DENIED),), 7)
)


def lines(own: bytes, name: AuditFormat) -> list[tuple[dict[str, Any], str]]:
    """Return the object of each event's own line, and its line in a format."""
    made = text_lines(formatted(own, name))
    for line in made:
        assert len(line.splitlines()) == 1
    return list(zip(map(json.loads, text_lines(own)), made, strict=True))


@given(DECISIONS | SECURITY)
@example(HOSTILE)
def test_the_official_sdk_reads_each_cloudevent_and_finds_the_whole_event_in_it(
    own: bytes,
) -> None:
    for event, line in lines(own, AuditFormat.CLOUDEVENTS):
        read = JSONFormat().read(CloudEvent, line.encode())
        assert read.get_data() == event
        assert read.get_id() == event["event_id"]
        assert read.get_source() == "urn:kustos:node:3"
        assert read.get_type().startswith("kustos.audit.")
        assert read.get_time() == datetime.fromtimestamp(event["time_ms"] // 1000, UTC).replace(
            microsecond=event["time_ms"] % 1000 * 1000
        )
        subject = read.get_subject()
        # CloudEvents 1.0.2, type String: no control characters, no lone surrogates
        if subject is not None:
            assert not any(ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0 for each in subject)
            assert subject.encode().decode() == subject


def test_a_record_says_that_it_is_a_cloudevent_in_structured_mode() -> None:
    ((_, line),) = lines(HOSTILE, AuditFormat.CLOUDEVENTS)
    ((name, value),) = HEADERS[AuditFormat.CLOUDEVENTS]
    message = KafkaMessage({name.decode(): value or b""}, b"User:alice", line.encode())
    event = from_structured(message, JSONFormat(), CloudEvent)
    assert event.get_attributes()["partitionkey"] == "User:alice"
    assert set(HEADERS) == {AuditFormat.CLOUDEVENTS}
    assert message.headers["content-type"].decode() == JSONFormat().get_content_type()


@cache
def validator() -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@given(DECISIONS | SECURITY)
@example(HOSTILE)
def test_each_ocsf_event_matches_the_schema_and_contains_all_fields(
    own: bytes,
) -> None:
    for event, line in lines(own, AuditFormat.OCSF):
        made = json.loads(line)
        validator().validate(made)
        kept = {key: value for key, value in event.items() if key not in MAPPED and value is not None}
        assert made["unmapped"] == kept
        assert (made["metadata"]["uid"], made["time"]) == (event["event_id"], event["time_ms"])
        if "event_type" not in event:
            assert made["class_uid"] == 6003
            assert made["actor"]["user"]["name"] == event["principal_name"]
            assert made["actor"]["authorizations"][0]["decision"] == event["decision"]
            assert made["api"]["operation"] == event["api_name"]
            assert made["api"]["request"]["uid"] == str(event["correlation_id"])
            assert made["resources"][0].get("name") == event["resource_name"]


def test_the_schema_rejects_invalid_events() -> None:
    ((_, line),) = lines(HOSTILE, AuditFormat.OCSF)
    made = json.loads(line)
    wrongs: list[dict[str, Any]] = [
        {"class_uid": 6002},
        {"activity_id": 7},
        {"type_uid": 600307},
        {"invented": 1},
        {"actor": {}},
        {"api": {"version": "1"}},
        {"metadata": {"version": "1.8.0"}},
        {"time": "now"},
    ]
    for wrong in wrongs:
        assert not validator().is_valid({**made, **wrong}), wrong
    assert validator().is_valid(made)


def test_denials_observations_and_approvals_have_different_ocsf_actions() -> None:
    items = {
        "Denied": decided("t", DENIED),
        "Observed": decided("t", DENIED, log_if_denied=False),
        "Modified": decided("t", DENIED)._replace(listing=True),
        "Allowed": decided("t"),
    }
    own = EVENTS.lines(RequestEvents(0, 1, CONTEXT, tuple(items.values()), 7))
    assert [json.loads(line)["action"] for _, line in lines(own, AuditFormat.OCSF)] == list(items)


@given(st.builds(KafkaPrincipal, st.just("User"), st.text(st.characters())), st.text(st.characters()))
@example(KafkaPrincipal("User", "a\ud800"), "b\udc00\n\ud800")
@example(KafkaPrincipal("User", "CN=" + "a" * 300), "b" * 2000)
def test_no_name_stops_a_sink_and_a_principal_has_one_key(principal: KafkaPrincipal, name: str) -> None:
    """A sink that rejected an event would block all others forever."""
    context = replace(CONTEXT, principal=principal, client_id=name)
    own = EVENTS.lines(RequestEvents(0, 1, context, (decided(name),), 7))
    own += EVENTS.security_line(1, replace(failure(name), principal=principal, subject=name))
    assert len(KafkaLinesSink(Path(), "TRACE")._line_of(text_lines(own)[0]).splitlines()) == 1
    for line_format in AuditFormat:
        assert formatted(own, line_format).count(b"\n") == 2
        assert len(SyslogMessages.of_host("auth", line_format, 480).of_lines(own)) == 2
        (batches,) = KafkaTopicSink("audit", (), never, line_format=line_format)._batches(own, 1000).values()
        assert len({record.key for batch in batches for record in batch.records}) == 1


async def never(_address: NodeAddress) -> KafkaConnection:
    raise AssertionError("nothing is sent")
