"""Logins of a real client are in the audit log, and the pipeline says who failed, whence and how often."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from pyarrow import parquet

from testkit.guarded.workers import worker_settings
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.spark_quick import quick_driver_environment
from testkit.waiting import wait_until

USERS = {"ann": "ann-secret", "ops": "ops-secret"}
WAIT_S = 60.0
COUNTED = re.compile(
    r"^kafka_server_socket_server_metrics_failed_authentication_total\{.*\} (\S+)$", re.MULTILINE
)


def client(node: KustosNode, user: str, password: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": password,
        },
        logger=None,
    )


def failures(node: KustosNode) -> int:
    """Return how many logins the metrics say failed."""
    return sum(int(float(number)) for number in COUNTED.findall(node.metrics()))


def report(audit: Path, out: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "kustos", "pipeline", "report", "--audit", str(audit), "--out", str(out)]
    said = subprocess.run(
        [*words, "--output", "json"],
        env={**os.environ, **quick_driver_environment()},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    summary: dict[str, Any] = json.loads(said.stdout)
    return summary


@pytest.mark.parametrize("workers", ["1", "2"])
def test_logins_and_changes_of_a_real_client_are_in_the_audit_log_and_in_the_report(
    kafka: KafkaNode, tmp_path: Path, workers: str
) -> None:
    properties = {} if workers == "1" else worker_settings()
    settings = KustosSettings(users=USERS, super_users=("ops",), properties=properties)
    with KustosNode(tmp_path / "kustos", kafka.bootstrap, settings) as node:
        ops = client(node, "ops", USERS["ops"])
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        made = UserScramCredentialUpsertion("dan", credential, b"dan-secret")
        for future in ops.alter_user_scram_credentials([made]).values():
            future.result(WAIT_S)
        client(node, "ann", USERS["ann"]).list_topics(timeout=WAIT_S)
        guesser = client(node, "ann", "a-wrong-guess")
        with pytest.raises(KafkaException):
            guesser.list_topics(timeout=1.0)
        wait_until(lambda: failures(node) >= 3, what="the client tries again")
        del guesser
        ended = failures(node)
        node.stop()
        events = list(node.security_events())
        text = "".join(path.read_text() for path in node.audit_directory.rglob("*.jsonl"))
    tried: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event["result"] == "FAILURE":
            assert (event["event_type"], event["host"]) == ("LOGIN", "127.0.0.1")
            tried[event["claimed_name"], event["mechanism"]] += event["attempt_count"]
    assert list(tried) == [("ann", "SCRAM-SHA-256")]
    assert tried.total() >= ended >= 3
    admitted = {event["principal_name"] for event in events if event["result"] == "SUCCESS"}
    assert admitted == {"ops", "ann"}
    (change,) = (event for event in events if event["event_type"] == "USER_CHANGE")
    seen = ("principal_name", "result", "change", "subject", "mechanism")
    assert [change[name] for name in seen] == ["ops", "SUCCESS", "UPSERT", "dan", "SCRAM-SHA-512"]
    for secret in (*USERS.values(), "a-wrong-guess", "dan-secret"):
        assert secret not in text
    if workers == "2":
        return
    summary = report(node.audit_directory, tmp_path / "report")
    assert summary["security_events"] == len(events)
    assert summary["failed_logins"] == tried.total()
    assert summary["quarantined"] == 0
    table = parquet.read_table(tmp_path / "report" / "security_events").to_pylist()
    assert sorted(row["event_id"] for row in table) == sorted(event["event_id"] for event in events)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<bdi>ann</bdi> from <bdi>127.0.0.1</bdi>" in page
