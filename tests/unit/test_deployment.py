"""The files in `deploy`: what they ask for exists, and the tools that they are for accept them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import promql_parser
import pytest
import yaml

from scripts.dashboard import COLUMNS, expressions
from testkit.paths import ROOT

DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "kustos.rules.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana" / "kustos.json").read_text())
METRIC = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
SAMPLES_OF = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
ADDED_BY_PROMETHEUS = {"job", "instance"}
EXPOSURE_MAX = 2.0
"""Of `systemd-analyze security`, which calls 2 and less the best of its classes."""


def metrics() -> dict[str, set[str]]:
    """Return the labels of every sample of the reference page, which a tidy test keeps current."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    found: dict[str, set[str]] = {}
    for name, kind, labels in METRIC.findall(page):
        for suffix in SAMPLES_OF.get(kind, ("",)):
            bucket = {"le"} if suffix == "_bucket" else set()
            found[name + suffix] = set(re.findall(r"`(\w+)`", labels)) | bucket
    assert len(found) > 40
    return found


def nodes(parsed: promql_parser.Expr) -> list[promql_parser.Expr]:
    """Return every node of a parsed expression, the outermost first."""
    found: list[promql_parser.Expr] = []
    promql_parser.walk(parsed, found.append)
    return found


def selectors(parsed: promql_parser.Expr) -> list[promql_parser.VectorSelector]:
    """Return every selector in a parsed expression."""
    instant = [node for node in nodes(parsed) if isinstance(node, promql_parser.VectorSelector)]
    ranges = [
        node.vector_selector for node in nodes(parsed) if isinstance(node, promql_parser.MatrixSelector)
    ]
    return [*instant, *ranges]


def grouped(parsed: promql_parser.Expr) -> list[tuple[set[str], list[promql_parser.VectorSelector]]]:
    """Return the labels by which each aggregation groups, with the selectors below it."""
    return [
        (set(node.modifier.labels), selectors(node.expr))
        for node in nodes(parsed)
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None
    ]


@pytest.mark.parametrize("expression", [*expressions(), *(rule["expr"] for rule in RULES)])
def test_an_expression_asks_for_metrics_and_labels_that_there_are(expression: str) -> None:
    known = metrics()
    # Grafana fills its variables in
    parsed = promql_parser.parse(expression.replace("$__rate_interval", "5m"))
    found = selectors(parsed)
    assert found
    for selector in found:
        assert selector.name in known, selector.name
        labels = {matcher.name for matcher in selector.matchers.matchers}
        assert labels <= known[selector.name] | ADDED_BY_PROMETHEUS
    for labels, below in grouped(parsed):
        for selector in below:
            assert labels <= known[selector.name or ""] | ADDED_BY_PROMETHEUS, (labels, selector.name)


def test_an_alert_speaks_of_labels_that_its_expression_keeps() -> None:
    for rule in RULES:
        kept, _ = grouped(promql_parser.parse(rule["expr"]))[0]
        spoken = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert spoken <= kept, rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert {"summary", "description"} == rule["annotations"].keys()


def test_what_the_page_says_to_alert_on_has_an_alert() -> None:
    page = (ROOT / "docs" / "how-to" / "metrics.md").read_text()
    listed = page.partition("## What to alert on")[2].partition("\n## ")[0]
    named = {
        name
        for name in re.findall(r"^- `(\w+)", listed, re.MULTILINE)
        if name.startswith(("kustos", "kafka"))
    }
    assert len(named) > 10
    asked = {selector.name for rule in RULES for selector in selectors(promql_parser.parse(rule["expr"]))}
    assert named <= asked, named - asked


def test_no_panel_covers_another() -> None:
    covered: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert max(x for x, _ in cells) < COLUMNS
        assert not covered & cells, panel["title"]
        covered |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_dockerfile_has_no_findings() -> None:
    tool = str(Path(sys.executable).with_name("hadolint"))
    hadolint = [tool, "--no-color", str(DEPLOY / "docker" / "Dockerfile")]
    found = subprocess.run(hadolint, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_systemd_accepts_the_unit_and_finds_it_well_confined(tmp_path: Path) -> None:
    command = tmp_path / "kustos"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    text = (DEPLOY / "systemd" / "kustos.service").read_text()
    unit = tmp_path / "kustos.service"
    unit.write_text(text.replace("/opt/kustos/bin/kustos", str(command)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    threshold = str(int(EXPOSURE_MAX * 10))
    confined = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={threshold}", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert confined.returncode == 0, confined.stdout[-300:]
