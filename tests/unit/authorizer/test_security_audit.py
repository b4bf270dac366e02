"""Security events as lines: fields in table order, truncated texts, no control characters."""

import json
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import (
    SECURITY_FIELDS,
    SECURITY_SCHEMA_VERSION,
    SecurityEvent,
    SecurityEventType,
    SecurityResult,
    security_json_schema,
)
from testkit.audit_events import AuditEvent, AuditFormatError


def login(**changes: Any) -> SecurityEvent:
    values: dict[str, Any] = {
        "event_type": SecurityEventType.LOGIN,
        "result": SecurityResult.SUCCESS,
        "time_ms": 1_795_235_215_815,
        "first_time_ms": 1_795_235_215_815,
        "listener_name": "CLIENTS",
        "security_protocol": "SASL_SSL",
        "host": "10.0.0.1",
        "principal": KafkaPrincipal("User", "alice", True),
        "mechanism": "SCRAM-SHA-256",
        "claimed_name": "token-7",
    }
    return SecurityEvent(**values | changes)


def written(event: SecurityEvent) -> dict[str, Any]:
    line = event.to_json(event_id="00000000-0000-8000-8000-000000000001", node_id=3, cluster_id="east")
    assert line.isascii()
    assert "\n" not in line
    tree: dict[str, Any] = json.loads(line)
    return tree


def test_a_line_has_the_fields_of_the_table_in_its_order() -> None:
    tree = written(login())
    assert list(tree) == [field.name for field in SECURITY_FIELDS]
    assert tree["schema_version"] == SECURITY_SCHEMA_VERSION
    assert (tree["principal_name"], tree["token_authenticated"], tree["claimed_name"]) == (
        "alice",
        True,
        "token-7",
    )
    assert (tree["result"], tree["event_type"], tree["attempt_count"]) == ("SUCCESS", "LOGIN", 1)
    schema = security_json_schema()
    assert list(schema["properties"]) == list(tree)
    assert set(tree) - set(schema["required"]) == {"cluster_id"}  # came later
    assert (tree["node_id"], tree["cluster_id"]) == (3, "east")


def test_long_texts_are_truncated_and_lone_surrogates_do_not_stop_the_log() -> None:
    tree = written(login(claimed_name="n" * 300, failure="\ud800\u202e\n"))
    assert tree["claimed_name"] == "n" * 254 + "…"
    assert tree["failure"] == "\ud800\u202e\n"


def test_a_reader_of_decisions_skips_security_events() -> None:
    line = login().to_json(event_id="1", node_id=3)
    with pytest.raises(AuditFormatError, match="schema_version"):
        AuditEvent.from_json(line)
