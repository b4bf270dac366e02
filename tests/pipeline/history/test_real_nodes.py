"""Histories of a real Kafka and of a real kustos, beside what Kafka's dump and the audit trail tell."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from pyspark.sql import SparkSession

from kustos.pipeline.history.discrepancies import discrepancies
from kustos.pipeline.history.judgement import judged_by_history
from kustos.pipeline.history.source import read_history
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, DISCREPANCIES_SCHEMA
from kustos.wire.api_keys import ApiKey
from testkit.equality.requests import ask, create_token
from testkit.equality.sides import Side
from testkit.kafka import (
    SASL_PLAINTEXT,
    SNAPSHOTS_OFTEN,
    STANDARD_AUTHORIZER,
    KafkaNode,
    KafkaTools,
    NodeSettings,
    make_topics,
)
from testkit.kafka.dumps import read_dump
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until
from tests.pipeline.history.test_lives import alive, table

USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
KAFKA = NodeSettings(
    listeners=(SASL_PLAINTEXT,),
    users=USERS,
    authorizer=STANDARD_AUTHORIZER,
    super_users=("User:admin",),
    properties={
        "delegation.token.secret.key": "a secret of some length",
        **SNAPSHOTS_OFTEN,
        "internal.metadata.log.segment.bytes": "9000",
    },
)


def client(bootstrap: str, user: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": USERS[user],
        }
    )


def create(admin: AdminClient, name: str, principal: str, permission: AclPermissionType) -> None:
    acl = AclBinding(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation.DESCRIBE,
        permission,
    )
    for made in admin.create_acls([acl]).values():
        made.result(30)


def delete(admin: AdminClient, name: str, principal: str) -> None:
    anything: Any = None
    asked_for = AclBindingFilter(
        ResourceType.TOPIC, name, ResourcePatternType.LITERAL, principal, anything, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    for gone in admin.delete_acls([asked_for]).values():
        gone.result(30)


def done_in_the_end(side: Side, api: ApiKey, fields: dict[str, Any]) -> None:
    """Ask until it is done: a token is not found before the controller has replayed its record."""
    wait_until(
        lambda: ask(side, "alice", api, 2, **fields).error_code == 0,
        what="a token is changed",
    )


@pytest.fixture(scope="module")
def of_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a broker whose ACLs, users and tokens came, changed and went; it is stopped."""
    with KafkaNode(tmp_path_factory.mktemp("kafka"), KAFKA) as node:
        admin = client(node.bootstrap, "admin")
        with Side("Kafka", node.bootstrap, USERS) as side:
            for number in range(20):
                create(admin, f"näme-{number % 7}", "User:alice", AclPermissionType.ALLOW)
                if number % 2:
                    delete(admin, f"näme-{number % 7}", "User:alice")
            for iterations in (4096, 8192):
                info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, iterations)
                change = UserScramCredentialUpsertion("carol", info, b"carols secret")
                for done in admin.alter_user_scram_credentials([change]).values():
                    done.result(30)
            gone = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
            for done in admin.alter_user_scram_credentials([gone]).values():
                done.result(30)
            made = create_token(side, "alice")
            for period_ms in (3_600_000, 7_200_000):
                done_in_the_end(
                    side, ApiKey.RENEW_DELEGATION_TOKEN, {"hmac": made.hmac, "renew_period": period_ms}
                )
            kept = create_token(side, "bob")
            done_in_the_end(
                side, ApiKey.EXPIRE_DELEGATION_TOKEN, {"hmac": made.hmac, "expiry_time_period": -1}
            )
            assert kept.token_id != made.token_id
        partition = node.log_dir / "__cluster_metadata-0"
        wait_until(lambda: sorted(partition.glob("*[1-9]*-*.checkpoint")), what="a snapshot is written")
        node.stop()
        yield node.log_dir


State = dict[str, dict[Any, Any]]


def states_of_dump(directory: Path, tools: KafkaTools) -> dict[int, State]:
    """The state after each offset, replayed from what Kafka's own tool prints of its log."""
    state: State = {"acls": {}, "scram": {}, "tokens": {}}
    states: dict[int, State] = {}
    held: list[tuple[str, dict[str, Any]]] | None = None
    for path in sorted((directory / "__cluster_metadata-0").glob("*.log")):
        arguments = ("--cluster-metadata-decoder", "--files", str(path))
        for offset, _, _, kind, _, said in read_dump(tools.run("DumpLogSegments", *arguments).require()):
            if kind == "BEGIN_TRANSACTION_RECORD":
                held = []
            elif kind == "END_TRANSACTION_RECORD":
                for each in held or []:
                    apply(state, *each)
                held = None
            elif held is not None:
                held.append((kind, said))
            else:
                apply(state, kind, said)
            states[offset] = {name: dict(things) for name, things in state.items()}
    return states


def apply(state: State, kind: str, said: dict[str, Any]) -> None:
    match kind:
        case "ACCESS_CONTROL_ENTRY_RECORD":
            state["acls"][said["id"]] = (said["resourceName"], said["principal"], said["host"])
        case "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
            del state["acls"][said["id"]]
        case "USER_SCRAM_CREDENTIAL_RECORD":
            state["scram"][said["name"], said["mechanism"]] = said["iterations"]
        case "REMOVE_USER_SCRAM_CREDENTIAL_RECORD":
            del state["scram"][said["name"], said["mechanism"]]
        case "DELEGATION_TOKEN_RECORD":
            state["tokens"][said["tokenId"]] = (said["owner"], said["expirationTimestamp"])
        case "REMOVE_DELEGATION_TOKEN_RECORD":
            del state["tokens"][said["tokenId"]]


MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


def check(directory: Path, states: dict[int, State], since: int) -> None:
    acls, scram = table(directory, "acls"), table(directory, "scram_credentials")
    tokens = table(directory, "delegation_tokens")
    for offset, state in states.items():
        if offset < since:
            continue
        found: State = {
            "acls": {
                row["acl_id"]: (row["resource_name"], row["principal"], row["host"])
                for row in alive(acls, offset)
            },
            "scram": {
                (row["user"], MECHANISMS[row["mechanism"]]): row["iterations"] for row in alive(scram, offset)
            },
            "tokens": {
                row["token_id"]: (row["owner"], row["expiry_time"] // 1000) for row in alive(tokens, offset)
            },
        }
        assert found == state, offset


def test_at_every_offset_of_kafkas_log_the_rows_are_what_its_dump_adds_up_to(
    of_kafka: Path, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    states = states_of_dump(of_kafka, kafka_tools)
    check(of_kafka, states, 0)
    names = [row["resource_name"] for row in table(of_kafka, "acls")]
    assert len(names) == 13, "20 were asked for, 7 of them were there already"
    assert names.count("näme-0") == 2, "created, deleted and created again"
    carol = [row for row in table(of_kafka, "scram_credentials") if row["user"] == "carol"]
    assert [row["iterations"] for row in carol] == [4096, 8192]
    lives = [row["valid_to_offset"] is None for row in table(of_kafka, "delegation_tokens")]
    assert sorted(lives) == [False, False, False, True], "made, renewed twice and expired; and made"
    # what is left when Kafka has cleaned up: its newest snapshot and the segments after it
    trimmed = tmp_path / "trimmed"
    shutil.copytree(of_kafka, trimmed)
    partition = trimmed / "__cluster_metadata-0"
    *older, newest = sorted(partition.glob("*.checkpoint"))
    end = int(newest.name[:20])
    segments = [path for path in sorted(partition.glob("*.log")) if int(path.stem) <= end]
    for path in [*older, *segments[:-1]]:
        path.unlink()
    check(trimmed, states, end - 1)
    (log_range,) = table(trimmed, "range")
    assert log_range["from_offset"] == (end - 1 if int(segments[-1].stem) else -1)


def rows_of(node: KustosNode) -> list[dict[str, Any]]:
    """The audit trail as AUDIT_EVENTS_SCHEMA."""
    return [
        {
            **each, "time": datetime.fromtimestamp(each["time_ms"] / 1000, UTC), "source_format": "KUSTOS",
            "source_file": "x",
        }
        for each in node.audit_events()
    ]  # fmt: skip


def test_every_decision_of_a_node_is_what_the_acls_of_its_offset_decide(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topics = [f"history-{number}" for number in range(3)]
    make_topics([kafka], *(NewTopic(name, 1, 1) for name in topics))
    settings = KustosSettings(users=USERS, super_users=("admin",))
    with KustosNode(tmp_path / "kustos", kafka.bootstrap, settings) as node:
        admin, others = client(node.bootstrap, "admin"), [client(node.bootstrap, u) for u in ("alice", "bob")]
        for number in range(12):
            topic = topics[number % 3]
            principal = ("User:alice", "User:*")[number % 2]
            permission = (AclPermissionType.ALLOW, AclPermissionType.DENY)[number % 5 == 4]
            create(admin, topic, principal, permission)
            for other in others:
                other.list_topics(topic, timeout=30)
            if number % 3 == 0:
                delete(admin, topic, principal)
                others[0].list_topics(topic, timeout=30)
        del admin, others
        node.stop()
        events, directory = rows_of(node), node.metadata_directory
    history, log_range = read_history(spark, directory), read_history(spark, directory, "range")
    frame = spark.createDataFrame(events, AUDIT_EVENTS_SCHEMA)
    rows = judged_by_history(frame, history, log_range=log_range, super_users="User:admin").collect()
    assert sum(row["event_count"] for row in rows) == len(events)
    asked_by_others = [row for row in rows if row["principal"] != "User:admin"]
    assert {row["recorded_decision"] for row in asked_by_others} == {"ALLOWED", "DENIED"}
    assert {(row["judged_by"], row["verdict"], row["is_same_rule"]) for row in rows} == {
        ("OFFSET", "AGREES", True)
    }
    # without their offsets, by the clock alone
    blind = spark.createDataFrame([{**each, "acl_offset": None} for each in events], AUDIT_EVENTS_SCHEMA)
    by_time = judged_by_history(blind, history, log_range=log_range, super_users="User:admin").collect()
    assert {(row["judged_by"], row["verdict"]) for row in by_time} == {("TIME", "AGREES")}
    # and where somebody changed the record of a refusal
    number = next(n for n, each in enumerate(events) if each["decision"] == "DENIED")
    events[number] = {**events[number], "decision": "ALLOWED"}
    forged = judged_by_history(
        spark.createDataFrame(events, AUDIT_EVENTS_SCHEMA),
        history,
        log_range=log_range,
        super_users="User:admin",
    )
    differing = discrepancies(forged)
    assert [(each.name, each.dataType) for each in differing.schema] == [
        (each.name, each.dataType) for each in DISCREPANCIES_SCHEMA
    ]
    (found,) = differing.collect()
    assert (found["kind"], found["severity"], found["event_count"]) == ("DECISION_DIFFERS", "HIGH", 1)
    assert json.loads(found["evidence"])["sample_event_id"] == events[number]["event_id"]
    offset = events[number]["acl_offset"]
    assert found["reason"].startswith(
        f"recorded as ALLOWED, but the ACLs of offset {offset} decide DENIED by "
    )
