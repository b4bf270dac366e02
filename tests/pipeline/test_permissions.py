"""No permission ends in a clear error: which path, what is wrong, what to do; the tables stay as they are."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kustos.cli.failures import ExitCode
from testkit.kafka import NodeFactory, NodeSettings
from testkit.paths import ROOT
from testkit.permissions import held_to_permissions
from tests.pipeline.events import event_line
from tests.pipeline.run.topics import make_topic
from tests.pipeline.test_commands import ACLS

SECONDS_MAX = 780
"""Forty commands of one Spark take a minute on an idle machine; a test may take fifteen."""

NOTHING, NO_WRITING = 0o000, 0o555
ANYTHING = 0o755


@dataclass(frozen=True, slots=True)
class Case:
    """A command (of `run`, `replay`, ...) with one path (or glob) closed, and how it has to end."""

    words: str
    path: str
    mode: int
    code: ExitCode
    message: str
    config: str = "pipeline.yml"


PART = "tables/audit_rollup/*/*.parquet"
CASES = [
    Case("run", "audit/b.jsonl", NOTHING, ExitCode.USAGE, "cannot read `{path}`: permission denied, check"),
    Case("run", "audit", NOTHING, ExitCode.USAGE, "cannot list `{path}`: permission denied, check"),
    Case("run --dry-run", "audit", NOTHING, ExitCode.USAGE, "cannot list `{path}`: permission denied, check"),
    Case("run", "pipeline.yml", NOTHING, ExitCode.USAGE, "`{path}` is not readable"),
    Case("run", "tables", NO_WRITING, ExitCode.FAILED, "`{path}"),
    Case("run", "tables", NOTHING, ExitCode.FAILED, "`{path}"),
    Case("run", "tables/runs/_delta_log", NO_WRITING, ExitCode.FAILED, "cannot write to `{table}`: "),
    Case("run", "tables/runs/_delta_log", NOTHING, ExitCode.FAILED, "cannot list `{path}`: "),
    Case("run", "tables/audit_events/_delta_log", NO_WRITING, ExitCode.FAILED, "cannot write to `{table}`: "),
    Case("run", "tables/audit_events/_delta_log", NOTHING, ExitCode.FAILED, "cannot list `{path}`: "),
    Case("run", "tables/audit_rollup/day=*", NO_WRITING, ExitCode.FAILED, "cannot use `{path}/part-"),
    Case("run", "shut", NO_WRITING, ExitCode.FAILED, "`{path}/tables`: ", config="elsewhere.yml"),
    Case("run", "shut", NOTHING, ExitCode.FAILED, "`{path}/tables", config="elsewhere.yml"),
    Case(
        "run",
        "client.properties",
        NOTHING,
        ExitCode.FAILED,
        "`{path}`: permission denied, check",
        "topic.yml",
    ),
    Case("run", "tables/_streams", NO_WRITING, ExitCode.FAILED, "checkpoint `{path}/audit-", "topic.yml"),
    Case("run", "tables/_streams", NOTHING, ExitCode.FAILED, "checkpoint `{path}/audit-", "topic.yml"),
    Case("replay acls.txt", "acls.txt", NOTHING, ExitCode.USAGE, "cannot read the file `{path}`: permission"),
    Case("replay acls.txt", "tables", NOTHING, ExitCode.FAILED, "`{path}"),
    Case("replay acls.txt", "tables", NO_WRITING, ExitCode.FAILED, "`{path}"),
    Case("replay acls.txt", "tables/runs", NOTHING, ExitCode.FAILED, "`{path}"),
    # whoever knows the file's columns from before finds it closed as it is read, by Python and by the JVM
    Case("replay acls.txt", PART, NOTHING, ExitCode.FAILED, "`{path}`"),
    Case(
        "replay acls.txt",
        "tables/audit_rollup",
        NOTHING,
        ExitCode.FAILED,
        "cannot list `{path}/_delta_log`: permission denied, check its permissions",
    ),
    Case("review", PART, NOTHING, ExitCode.FAILED, "`{path}`"),
    Case("judge --metadata log", "log", NOTHING, ExitCode.USAGE, "`{path}` is not readable"),
    Case(
        "report --out shut/page.html",
        "shut",
        NO_WRITING,
        ExitCode.FAILED,
        "cannot write `{path}/page.html`: ",
    ),
    *(
        Case(f"{words} shut/file.dot", "shut", NO_WRITING, ExitCode.USAGE, "cannot write `{path}/file.dot`: ")
        for words in (
            "review --csv",
            "review --sign-off",
            "review --details",
            "recommend --out",
            "recommend --commands",
            "flows --out",
        )
    ),
]
FIRST_RUN, LAST_RUN = (
    Case("run --output json", "shut", ANYTHING, ExitCode.OK, "", config)
    for config in ("first.yml", "pipeline.yml")
)
OPEN = [Case(words, "shut", ANYTHING, ExitCode.OK, "") for words in ("replay acls.txt", "review")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, kafka_node: NodeFactory) -> Path:
    node = kafka_node(NodeSettings())
    folder = tmp_path_factory.mktemp("permissions")
    for name in ("before", "audit", "shut", "log", "tables/_streams"):
        (folder / name).mkdir(parents=True)
    (folder / "acls.txt").write_text(ACLS)
    (folder / "client.properties").write_text(f"bootstrap.servers={node.bootstrap}\n")
    text = "version: 1\ntables: {{path: {}}}\nacls: {{source: acls.txt}}\ninputs:\n  - {}\n"
    (folder / "pipeline.yml").write_text(text.format("tables", "files: audit"))
    (folder / "first.yml").write_text(text.format("tables", "files: before"))
    (folder / "elsewhere.yml").write_text(text.format("shut/tables", "files: audit"))
    topic = f"{{topic: {make_topic(node)}, command_config: client.properties}}"
    (folder / "topic.yml").write_text(text.format("tables", topic))
    (folder / "before" / "a.jsonl").write_text("\n".join(event_line(number) for number in range(5)))
    (folder / "audit" / "b.jsonl").write_text(event_line(9))
    return folder


@pytest.fixture(scope="module")
def answers(place: Path) -> dict[Case, dict[str, Any]]:
    """Run all in one Spark of another process: the first run, what must fail, and what is left to do."""
    cases = [FIRST_RUN, *OPEN, *CASES, LAST_RUN]
    told = [step(case, place) for case in cases]
    (place / "steps.json").write_text(json.dumps({"tables": str(place / "tables"), "steps": told}))
    files = [str(place / name) for name in ("steps.json", "answers.json")]
    done = subprocess.run(
        held_to_permissions([sys.executable, "-m", "tests.pipeline.permission_steps", *files]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return dict(zip(cases, json.loads((place / "answers.json").read_text()), strict=True))


def step(case: Case, place: Path) -> dict[str, Any]:
    words = [
        str(place / word) if (place / word).exists() or "/" in word else word for word in case.words.split()
    ]
    config = ["--config", str(place / case.config)]
    return {"words": ["pipeline", *words, *config], "path": case.path, "mode": case.mode}


def test_whom_permissions_hold_may_not_read_what_nobody_may(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0)
    done = subprocess.run(
        held_to_permissions(["cat", str(secret)]), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.words}-{case.path}-{case.mode:o}")
def test_no_permission_is_told_and_changes_nothing(case: Case, answers: dict[Case, dict[str, Any]]) -> None:
    answer = answers[case]
    assert answer["code"] == case.code, answer
    [line] = answer["err"].splitlines()
    assert line.startswith("error: ")
    assert line[7].islower()
    assert case.message.format(path=answer["path"], table=Path(answer["path"]).parent) in line
    assert "permission denied" in line.lower() or "is not readable" in line
    assert answer["unchanged"]


@pytest.mark.parametrize("case", OPEN, ids=lambda case: case.words)
def test_the_same_command_works_where_it_may(case: Case, answers: dict[Case, dict[str, Any]]) -> None:
    assert answers[case]["code"] == ExitCode.OK, answers[case]


def test_what_could_not_be_done_is_done_once_it_may_be(answers: dict[Case, dict[str, Any]]) -> None:
    first, last = (json.loads(answers[case]["out"])["inputs"][0] for case in (FIRST_RUN, LAST_RUN))
    assert (first["events"], last["events"], last["lines"]) == (5, 1, 1)
