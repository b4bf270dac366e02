"""Candidate ACLs on live traffic: no answer changes, each difference is told, no failure is agreement."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from kustos.acl import AclBinding
from kustos.acl.forms import AclForm, write_acls
from kustos.metadata.directory import format_directory
from testkit.guarded.cluster import Op, Type, acl
from testkit.kafka import KafkaNode, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

USERS = {"ann": "ann-secret"}
MINE, OTHER = "candidate-mine", "candidate-other"
NOW = (acl("ann", Op.WRITE, Type.TOPIC, MINE),)
NEXT = (acl("ann", Op.WRITE, Type.TOPIC, OTHER),)
WAIT_S = 60.0
DENIED = "TOPIC_AUTHORIZATION_FAILED"


@pytest.fixture(scope="module", autouse=True)
def _topics(kafka: KafkaNode) -> None:
    make_topics([kafka], *(NewTopic(name, 1, 1) for name in (MINE, OTHER)))


def written(node: KustosNode, *topics: str) -> list[str]:
    """Write a record into each topic with a new client; return the names of the errors."""
    errors: dict[str, str] = {}
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "ann",
            "sasl.password": USERS["ann"],
            "log_level": 0,
        }
    )

    def delivered(error: Any, message: Any) -> None:
        errors[message.topic()] = "" if error is None else error.name()

    for topic in topics:
        producer.produce(topic, b"value", on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    return [errors[topic] for topic in topics]


def candidate(node: KustosNode) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{node.http_port}/ready", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)["candidate_acls"]
        return found


def counted(node: KustosNode, outcome: str) -> int:
    """Return how many uses had this outcome."""
    pattern = rf'^kustos_candidate_decisions_total\{{access="ACCESS",outcome="{outcome}"\}} (\S+)$'
    return sum(int(float(text)) for text in re.findall(pattern, node.metrics(), re.MULTILINE))


def load_failures(node: KustosNode) -> float:
    """Return how often a process could not load its candidate."""
    [count] = re.findall(r"^kustos_candidate_load_failures_total (\S+)$", node.metrics(), re.MULTILINE)
    return float(count)


def loaded_everywhere(node: KustosNode) -> bool:
    """Whether every process has the candidate: its number of ACLs is the least of theirs."""
    found = re.findall(r"^kustos_candidate_acls (\S+)$", node.metrics(), re.MULTILINE)
    return bool(candidate(node)["loaded"]) and float(found[0]) >= 0


def put(node: KustosNode, path: Path, text: str) -> None:
    path.write_text(text)
    assert node.server is not None
    os.kill(node.server.pid, signal.SIGHUP)


def trial(node: KustosNode, *more: str) -> tuple[int, str]:
    words = [sys.executable, "-m", "kustos", "trial", str(node.audit_directory), *more]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return said.returncode, said.stdout


def yaml(acls: Sequence[AclBinding]) -> str:
    return write_acls(acls, AclForm.YAML)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_candidate_is_tried_replaced_and_lost_and_no_client_notices(
    kafka: KafkaNode, tmp_path: Path, workers: str
) -> None:
    path = tmp_path / "next.yaml"
    path.write_text(yaml(NEXT))
    properties = {"kustos.workers": workers, "kustos.authorization.candidate.acls": str(path)}
    settings = KustosSettings(users=USERS, acls=NOW, properties=properties)
    with KustosNode(tmp_path / "kustos", kafka.bootstrap, settings) as node:
        wait_until(lambda: loaded_everywhere(node), what="the candidate is loaded")
        first = candidate(node)
        assert (first["acls"], first["source"]) == (1, str(path))
        assert written(node, MINE, OTHER) == ["", DENIED]
        wait_until(lambda: counted(node, "LOST") > 0 < counted(node, "GAINED"), what="differences count")

        put(node, path, yaml(NOW))
        wait_until(
            lambda: candidate(node)["id"] not in (None, first["id"]) and loaded_everywhere(node),
            what="the other candidate is loaded",
        )
        lost, gained, same = (counted(node, outcome) for outcome in ("LOST", "GAINED", "SAME"))
        assert written(node, MINE, OTHER) == ["", DENIED]
        wait_until(lambda: counted(node, "SAME") > same, what="agreement counts")
        assert (counted(node, "LOST"), counted(node, "GAINED")) == (lost, gained)

        put(node, path, "- this: is not a list of ACLs\n")
        wait_until(lambda: "failure" in candidate(node), what="the candidate failed")
        wait_until(lambda: "kustos_candidate_acls -1.0" in node.metrics(), what="there is none")
        same = counted(node, "SAME")
        assert written(node, MINE, OTHER) == ["", DENIED]
        wait_until(lambda: counted(node, "ERROR") > 0, what="failures count")
        # the process that starts the workers has its own copy, and each tries at its own pace
        wait_until(
            lambda: load_failures(node),
            holds=lambda count: count == (1 if workers == "1" else 3),
            what="every process has failed to load it",
        )
        node.stop()
    code, text = trial(node, "--exit-code", "-o", "json")
    document = json.loads(text)
    assert code == 5
    found = {
        (each["kind"], each["access"], each["operation"], each["resource_name"]): each
        for each in document["differences"]
    }
    taken = found["LOST", "ACCESS", "WRITE", MINE]
    assert (taken["principal"], taken["candidate"], taken["rule"]) == ("User:ann", first["id"], "DefaultDeny")
    # what the log says is what the metrics counted
    assert document["lost_uses"] == lost >= taken["decisions"] > 0
    given = found["GAINED", "ACCESS", "DESCRIBE", OTHER]
    assert given["rule"].startswith("MatchingAcl(")
    assert document["errors"] > 0
    results = [each["failure"] is None for each in document["candidates"]]
    assert results.count(False) == (1 if workers == "1" else 3)
    assert results.count(True) == 2 * (1 if workers == "1" else 3)
    people = trial(node)[1]
    assert "no candidate:" in people
    assert "lost" in people


def test_a_second_metadata_directory_is_a_candidate(kafka: KafkaNode, tmp_path: Path) -> None:
    other = tmp_path / "other"
    format_directory(other, acls=NEXT)
    properties = {"kustos.authorization.candidate.acls": str(other)}
    settings = KustosSettings(users=USERS, acls=NOW, properties=properties)
    with KustosNode(tmp_path / "kustos", kafka.bootstrap, settings) as node:
        wait_until(lambda: loaded_everywhere(node), what="the candidate is loaded")
        assert written(node, MINE, OTHER) == ["", DENIED]
        wait_until(lambda: counted(node, "LOST") > 0 < counted(node, "GAINED"), what="differences count")
        assert counted(node, "ERROR") == 0
