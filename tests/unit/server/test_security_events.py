"""Logins, ends of sessions and changes of users, tokens and settings are in the audit log."""

import json
from pathlib import Path
from typing import Any

from kustos.authorizer import SECURITY_FIELDS, SECURITY_SCHEMA_VERSION
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import PASSWORD, Talker, admin_node
from testkit.gateway.gateways import Caller

SALT, SALTED = b"salt" * 4, b"s4lted-passw0rd" * 2
TOKEN_SECRET = "delegation-s3cret"


def audit(directory: Path) -> dict[str, Any]:
    return {"kustos_audit_sinks": "json", "kustos_audit_json_dir": str(directory / "audit")}


def text_of(directory: Path) -> str:
    return "".join(file.read_text() for file in sorted((directory / "audit").glob("audit-*.jsonl")))


def security_events(directory: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in text_of(directory).splitlines()]
    found = [line for line in lines if line["schema_version"] == SECURITY_SCHEMA_VERSION]
    assert all(list(line) == [field.name for field in SECURITY_FIELDS] for line in found)
    return found


def shown(events: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(event[name] for name in names) for event in events]


async def fail(port: int, name: str, password: str) -> None:
    talker = Talker(await Caller.at(port))
    await talker.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    answer = await talker.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=f"\0{name}\0{password}".encode())
    assert answer.error_code == 58
    assert await talker.caller.is_closed()


async def test_logins_that_succeed_and_that_fail_are_told_and_equal_failures_counted(tmp_path: Path) -> None:
    async with admin_node(tmp_path, **audit(tmp_path)) as node:
        await node.talk("ops")
        for _ in range(4):
            await fail(node.admin_port, "ops", "guess-1")
        await fail(node.admin_port, "n" * 5_000, "guess-2")
    found = security_events(tmp_path)
    names = ("event_type", "result", "principal_name", "claimed_name", "mechanism", "attempt_count")
    assert shown(found, *names) == [
        ("LOGIN", "SUCCESS", "ops", "ops", "PLAIN", 1),
        ("LOGIN", "FAILURE", None, "ops", "PLAIN", 1),
        ("LOGIN", "FAILURE", None, "n" * 254 + "…", "PLAIN", 1),
        ("LOGIN", "FAILURE", None, "ops", "PLAIN", 3),
    ]
    assert {(each["listener_name"], each["host"]) for each in found} == {("ADMIN", "127.0.0.1")}
    assert found[1]["failure"] == "Authentication failed: Invalid username or password"
    assert found[3]["first_time_ms"] >= found[1]["time_ms"]
    assert len({each["event_id"] for each in found}) == len(found)
    assert "guess" not in text_of(tmp_path)
    assert PASSWORD not in text_of(tmp_path)


async def test_what_is_no_login_at_all_is_told_without_a_name(tmp_path: Path) -> None:
    async with admin_node(tmp_path, **audit(tmp_path)) as node:
        caller = await Caller.at(node.client_port)
        caller.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await caller.is_closed()
        caller = await Caller.at(node.client_port)
        caller.close()
    (event,) = security_events(tmp_path)
    assert (event["result"], event["mechanism"], event["claimed_name"]) == ("FAILURE", None, None)


async def test_changes_of_users_tell_who_and_how_and_nothing_secret(tmp_path: Path) -> None:
    async with admin_node(tmp_path, **audit(tmp_path)) as node:
        ops = await node.talk("ops")
        answer = await ops.ask(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            0,
            deletions=[{"name": "nobody", "mechanism": 2}],
            upsertions=[
                {
                    "name": "bob",
                    "mechanism": 1,
                    "iterations": 4096,
                    "salt": SALT,
                    "salted_password": SALTED,
                }
            ],
        )
        assert sorted((each.user, each.error_code) for each in answer.results) == [("bob", 0), ("nobody", 91)]
    found = [each for each in security_events(tmp_path) if each["event_type"] != "LOGIN"]
    names = ("event_type", "result", "principal_name", "change", "subject", "mechanism", "failure")
    text = "RESOURCE_NOT_FOUND: Attempt to delete a user credential that does not exist"
    assert shown(found, *names) == [
        ("USER_CHANGE", "FAILURE", "ops", "DELETE", "nobody", "SCRAM-SHA-512", text),
        ("USER_CHANGE", "SUCCESS", "ops", "UPSERT", "bob", "SCRAM-SHA-256", None),
    ]
    for secret in (SALT.decode(), SALTED.decode()):
        assert secret not in text_of(tmp_path)


async def test_a_change_is_told_though_whoever_asked_went_away(tmp_path: Path) -> None:
    async with admin_node(tmp_path, **audit(tmp_path)) as node:
        ops = await node.talk("ops")
        change = {"name": "bob", "mechanism": 1, "iterations": 4096, "salt": SALT, "salted_password": SALTED}
        for _ in range(20):
            asked = ops.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[change])
            asked.send(None)
            asked.close()
            ops.caller.close()
            ops = await node.talk("ops")
    made = node.node.store.last_offset  # after its end: until then the last change may still be made
    expected = [each for each in security_events(tmp_path) if each["event_type"] == "USER_CHANGE"]
    decided = [line for line in text_of(tmp_path).splitlines() if "AlterUserScramCredentials" in line]
    assert len(expected) == len(decided)
    assert {each["result"] for each in expected} <= {"SUCCESS", "UNKNOWN"}
    assert made >= sum(each["result"] == "SUCCESS" for each in expected)


async def test_changes_of_tokens_name_the_token_by_its_id_only(tmp_path: Path) -> None:
    more: dict[str, Any] = {"delegation_token_secret_key": TOKEN_SECRET}
    async with admin_node(tmp_path, **audit(tmp_path), **more) as node:
        ops = await node.talk("ops", admin=False)
        fields = {"owner_principal_type": None, "owner_principal_name": None}
        made = await ops.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, renewers=[], max_lifetime=600_000, **fields)
        assert made.error_code == 0
        await ops.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=made.hmac, renew_period=-1)
        await ops.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=made.hmac, expiry_time_period=-1)
        await ops.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=b"no token", expiry_time_period=-1)
    found = [each for each in security_events(tmp_path) if each["event_type"] == "TOKEN_CHANGE"]
    names = ("result", "change", "subject", "detail", "failure")
    assert shown(found, *names) == [
        ("SUCCESS", "CREATE", made.token_id, "owner User:ops", None),
        ("SUCCESS", "RENEW", made.token_id, None, None),
        ("SUCCESS", "EXPIRE", made.token_id, None, None),
        ("FAILURE", "EXPIRE", None, None, "DELEGATION_TOKEN_NOT_FOUND"),
    ]
    assert made.hmac.hex() not in text_of(tmp_path)


async def test_changes_of_settings_name_keys_and_no_values(tmp_path: Path) -> None:
    async with admin_node(tmp_path, **audit(tmp_path)) as node:
        ops = await node.talk("ops")

        def change(name: str, value: str) -> dict[str, Any]:
            return {"name": name, "config_operation": 0, "value": value}

        for configs, is_trial in (
            ([change("super.users", "User:mallory")], True),
            ([change("super.users", "User:mallory")], False),
            ([change("no.such.key", "v4lue")], False),
        ):
            resource = {"resource_type": 4, "resource_name": "1", "configs": configs}
            await ops.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=is_trial)
    found = [each for each in security_events(tmp_path) if each["event_type"] == "SETTING_CHANGE"]
    assert shown(found, "result", "principal_name", "change", "subject", "detail") == [
        ("SUCCESS", "ops", "ALTER", "BROKER:1", "SET super.users"),
        ("FAILURE", "ops", "ALTER", "BROKER:1", "SET no.such.key"),
    ]
    assert "mallory" not in text_of(tmp_path)
    assert "v4lue" not in text_of(tmp_path)
