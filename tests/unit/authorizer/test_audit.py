"""Audit events: the table of fields, JSON there and back, the schema."""

import dataclasses
import json
from typing import Any
from uuid import UUID

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import (
    AUDIT_FIELDS,
    AUDIT_SCHEMA_VERSION,
    PASSED,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Decision,
    Rule,
    RuleKind,
    audit_json_schema,
)
from kustos.authorizer.audit import AuditLevel, JsonLines, audit_level
from kustos.authorizer.audit.events import AUDITED_NAME_CHARACTERS_MAX, audit_line, audited_name
from kustos.protocol import Decided
from testkit.audit_events import AuditEvent, AuditFormatError, AuditRule

BINDING = AclBinding(
    ResourcePattern(ResourceType.TRANSACTIONAL_ID, 'tx-"1"', PatternType.PREFIXED),
    AccessControlEntry("User:Zoë", "10.0.0.0/8", AclOperation.WRITE, AclPermissionType.DENY),
)
DENIED = Decision(AuthorizationResult.DENIED, Rule(RuleKind.MATCHING_ACL, BINDING))
SUPER_USER = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.SUPER_USER))
CONTEXT = AuthorizableRequestContext(
    KafkaPrincipal("User", "Zoë", token_authenticated=True),
    "10.0.0.1",
    listener_name="CLIENTS",
    security_protocol="SASL_SSL",
    client_id=None,
    request_type=22,
    request_version=5,
    correlation_id=-7,
)
ACTION = Action(ResourceType.TRANSACTIONAL_ID, 'tx-"1"-\n2', AclOperation.WRITE, 3, log_if_allowed=False)


def line(
    decision: Decision = DENIED,
    *,
    any_resource: bool = False,
    listing: bool = False,
    change_offset: int | None = None,
) -> str:
    name = None if any_resource else ACTION.resource_name
    decided = Decided(ACTION, decision, listing, name)
    ids = iter([str(UUID(int=1))])
    (written,) = JsonLines(3, "5L6g3nShT-eMCtK--X86sw").lines(
        CONTEXT, "InitProducerId", [decided], ids, 1_700_000_000_123, 2**40, change_offset
    )
    return written


def event(decision: Decision = DENIED, **more: Any) -> AuditEvent:
    return AuditEvent.from_json(line(decision, **more))


def test_fields_are_those_of_the_table() -> None:
    own = [field.name for field in dataclasses.fields(AuditEvent)]
    of_rule = [f"rule.{field.name}" for field in dataclasses.fields(AuditRule)]
    table = [field.name for field in AUDIT_FIELDS]
    assert {*own, *of_rule} - {"rule"} == set(table)
    top = list(dict.fromkeys(name.partition(".")[0] for name in table))
    assert own == top


def test_an_event_has_principal_action_and_reason() -> None:
    tree = json.loads(line())
    written = [field.name.partition(".")[0] for field in AUDIT_FIELDS if field.scope != "shadow"]
    assert list(tree) == list(dict.fromkeys(written))
    assert tree == {
        "schema_version": AUDIT_SCHEMA_VERSION,
        "event_id": "00000000-0000-0000-0000-000000000001",
        "time_ms": 1_700_000_000_123,
        "node_id": 3,
        "cluster_id": "5L6g3nShT-eMCtK--X86sw",
        "listener_name": "CLIENTS",
        "security_protocol": "SASL_SSL",
        "principal_type": "User",
        "principal_name": "Zoë",
        "token_authenticated": True,
        "host": "10.0.0.1",
        "api_key": 22,
        "api_name": "InitProducerId",
        "api_version": 5,
        "client_id": None,
        "correlation_id": -7,
        "forwarded_by": None,
        "resource_type": "TRANSACTIONAL_ID",
        "resource_name": 'tx-"1"-\n2',
        "operation": "WRITE",
        "decision": "DENIED",
        "rule": {
            "kind": "MatchingAcl",
            "resource_type": "TRANSACTIONAL_ID",
            "resource_name": 'tx-"1"',
            "pattern_type": "PREFIXED",
            "principal": "User:Zoë",
            "host": "10.0.0.0/8",
            "operation": "WRITE",
            "permission_type": "DENY",
        },
        "reference_count": 3,
        "log_if_allowed": False,
        "log_if_denied": True,
        "access": "ACCESS",
        "acl_offset": 2**40,
        "change_offset": None,
        "latency_us": None,
        "distinct_names": None,
        "decision_count": None,
    }


def test_an_event_is_one_line() -> None:
    assert "\n" not in line()


def test_other_kinds_of_decision() -> None:
    assert event(SUPER_USER).rule == AuditRule(kind="SuperUser")
    failed = AuditEvent.from_json(changed(decision="ERROR", rule=dataclasses.asdict(AuditRule(kind="Error"))))
    assert (failed.decision, failed.rule) == ("ERROR", AuditRule(kind="Error"))
    any_topic = event(SUPER_USER, any_resource=True, listing=True)
    assert (any_topic.resource_name, any_topic.access) == (None, "LISTING")


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(line()), **fields})


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("", "not JSON"),
        ("[]", "schema_version"),
        ("{}", "schema_version"),
        (changed(schema_version=2), "schema_version"),
        (changed(time_ms="now"), "time_ms"),
        (changed(time_ms=True), "time_ms"),
        (changed(node_id=2**31), "node_id"),
        (changed(acl_offset=2**63), "acl_offset"),
        (changed(token_authenticated=1), "token_authenticated"),
        (changed(principal_name=None), "principal_name"),
        (changed(rule="SuperUser"), "rule.kind"),
        (changed(rule={"kind": "SuperUser"}), "rule.resource_type"),
    ],
)
def test_an_invalid_event_is_rejected(wrong: str, named: str) -> None:
    with pytest.raises(AuditFormatError, match=named):
        AuditEvent.from_json(wrong)


def test_a_newer_field_is_null_in_older_lines() -> None:
    later = [field.name for field in AUDIT_FIELDS if field.came_later]
    assert later[:5] == ["cluster_id", "change_offset", "latency_us", "distinct_names", "decision_count"]
    assert all(field.came_later for field in AUDIT_FIELDS if field.scope == "shadow")
    older = {name: value for name, value in json.loads(line()).items() if name not in later}
    assert AuditEvent.from_json(json.dumps(older)) == dataclasses.replace(event(), cluster_id=None)
    assert accepts(audit_json_schema(), older)


def test_an_event_has_the_offset_of_its_change() -> None:
    written = line(SUPER_USER, change_offset=2**50)
    assert json.loads(written)["change_offset"] == 2**50
    assert AuditEvent.from_json(written).change_offset == 2**50
    with pytest.raises(AuditFormatError, match="change_offset"):
        AuditEvent.from_json(changed(change_offset="9"))


def test_a_shadow_denial_has_the_level_of_a_denial() -> None:
    quiet = dataclasses.replace(ACTION, log_if_denied=False)
    levels = [audit_level(action, decision) for decision in (DENIED, PASSED) for action in (ACTION, quiet)]
    assert levels == [AuditLevel.INFO, AuditLevel.TRACE] * 2


def test_fields_of_later_versions_are_ignored() -> None:
    assert AuditEvent.from_json(changed(added_later=1)) == event()


def accepts(schema: dict[str, Any], value: object) -> bool:
    """Validate by the keywords that our schema uses."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    types = {"object": dict, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    if type(value) not in [types[kind] for kind in kinds]:
        return False
    if isinstance(value, dict):
        properties = schema["properties"]
        fitting = all(name in properties and accepts(properties[name], item) for name, item in value.items())
        return fitting and set(schema["required"]) <= set(value)
    if type(value) is int and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return False
    return bool(schema.get("const", value) == value)


def test_schema_accepts_every_event_and_nothing_else() -> None:
    schema = audit_json_schema()
    json.dumps(schema)
    for decision in (DENIED, SUPER_USER):
        assert accepts(schema, json.loads(line(decision, any_resource=True)))
    for wrong in (
        changed(more=1), changed(schema_version=2), changed(time_ms="0"), changed(node_id=2**31),
        changed(client_id=1), changed(host=None), changed(rule={}), changed(rule=None),
    ):  # fmt: skip
        assert not accepts(schema, json.loads(wrong))
    missing = json.loads(line())
    del missing["access"]
    assert not accepts(schema, missing)


def test_a_long_name_is_truncated_and_stays_unique() -> None:
    """A group id may have 32,767 bytes; a client must not fill the audit log with it."""
    longest = "g" * AUDITED_NAME_CHARACTERS_MAX
    assert audited_name(longest) == longest
    one, other = audited_name(longest + "a" * 30_000), audited_name(longest + "b" * 30_000)
    assert one != other
    assert one.startswith(f"{longest}... (31024 characters, SHA-256 ")
    assert len(one) < AUDITED_NAME_CHARACTERS_MAX + 120
    action = dataclasses.replace(ACTION, resource_name=longest + "a" * 30_000)
    assert f":LITERAL:{one} for request" in audit_line(CONTEXT, action, DENIED, api_name="InitProducerId")
