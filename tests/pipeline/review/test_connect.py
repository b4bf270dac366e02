"""Over Spark Connect, where there is no broadcast, review, findings and reach say what they should."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testkit.paths import ROOT
from testkit.spark_connect import clean_environment, connect_server


@pytest.mark.timeout(600)
def test_a_connect_session_answers_the_same(tmp_path: Path) -> None:
    with connect_server(tmp_path) as url:
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.review.over_connect", url],
            cwd=ROOT,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    check(json.loads(done.stdout.splitlines()[-1]))


def check(answers: dict[str, list[str]]) -> None:
    """The world of `over_connect` is small enough to say all of it."""
    told: dict[str, list[Any]] = {name: [json.loads(row) for row in rows] for name, rows in answers.items()}
    assert {(one["principal"], one["resource_name"]) for one in told["removable_together"]} == {
        ("User:bob", "kafka-cluster"),
        ("User:bob", "old"),
        ("User:alice", "pay.in"),
    }
    broken = {(one["kind"], one["principal"], one["event_count"]) for one in told["rule_findings"]}
    assert broken == {("BROKEN_POLICY", "User:bob", 1), ("BROKEN_DUTY", "User:bob", 0)}
    assert [one["path"] for one in told["flow_paths"]] == [["User:bob", "pay.in", "User:alice"]]
    assert told["lost_uses"] == [["User:alice", "READ", "TOPIC", "pay.in"]]
    assert told["access_review"]
