"""The audit log has requests on the admin listener with the requester and the forwarder."""

import json
from pathlib import Path
from typing import Any

from kustos.authorizer import AUDIT_SCHEMA_VERSION, SECURITY_SCHEMA_VERSION
from kustos.protocol.envelopes import principal_bytes
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import ALICE, OPS, admin_node, frame_of

ACL = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
SEEN = ("api_name", "principal_name", "forwarded_by", "operation", "decision", "host", "correlation_id")


async def events(directory: Path) -> tuple[list[dict[str, Any]], int]:
    """Forward a request for one who may and for one who may not; return what was written down.

    And where the ACL that came of it is in the log.
    """
    audit = str(directory / "audit")
    async with admin_node(directory, kustos_audit_sinks="json", kustos_audit_json_dir=audit) as node:
        forwarder = await node.talk("forwarder")
        inner = frame_of(ApiKey.CREATE_ACLS, 3, 77, creations=[ACL])[4:]
        await forwarder.forward(inner, principal_bytes(OPS), bytes((10, 0, 0, 7)))
        store = node.node.store
        offset = store.last_offset
        await forwarder.forward(inner, principal_bytes(ALICE))
    files = sorted((directory / "audit").glob("audit-*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {line["schema_version"] for line in lines} == {AUDIT_SCHEMA_VERSION, SECURITY_SCHEMA_VERSION}
    assert {line["cluster_id"] for line in lines} == {store.properties.cluster_id}
    return [line for line in lines if line["schema_version"] == AUDIT_SCHEMA_VERSION], offset


async def test_a_forwarded_request_names_both_who_made_it_and_who_handed_it_in(tmp_path: Path) -> None:
    written, offset = await events(tmp_path)
    envelope = ("Envelope", "forwarder", None, "CLUSTER_ACTION", "ALLOWED", "127.0.0.1")
    assert [tuple(event[name] for name in SEEN[:-1]) for event in written] == [
        envelope,
        ("CreateAcls", "ops", "User:forwarder", "ALTER", "ALLOWED", "10.0.0.7"),
        envelope,
        ("CreateAcls", "alice", "User:forwarder", "ALTER", "DENIED", "127.0.0.1"),
    ]
    assert [event["correlation_id"] for event in written if event["forwarded_by"]] == [77, 77]
    assert {event["listener_name"] for event in written} == {"ADMIN"}
    assert [event["change_offset"] for event in written] == [None, offset, None, None]
