"""The numbers and claims of README.md that a machine can check: each is that of one other place."""

import re
from pathlib import Path

import kustos
from scripts.guard_pages import REFUSED_MARK, refused
from testkit import versions
from testkit.paths import ROOT

TEXT = (ROOT / "README.md").read_text()
FLAT = " ".join(TEXT.split())
"""Without line breaks, which stand anywhere."""

PERFORMANCE = ROOT / "docs" / "explanation" / "performance.md"
METADATA_LOG = ROOT / "docs" / "explanation" / "metadata-log.md"
BENCHMARK = ROOT / "docs" / "how-to" / "benchmark.md"
BESIDE_A_SESSION = ("-spi", "-warm")
"""Rows of decisions by another way in, or with what a session remembers; README speaks of the others."""


def cells(page: Path, first: str) -> list[list[str]]:
    """Return the rows of a page's tables whose first cell begins so."""
    rows = [line.strip("|").split("|") for line in page.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if row[0].strip().startswith(first)]


def numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"[0-9][0-9,]*(?:\.[0-9]+)?", text)]


def span(page: Path, first: str, column: int = 3, scale: int = 1) -> str:
    """Return the least and the greatest number of a column, as README writes them."""
    found = [
        number * scale
        for row in cells(page, first)
        if not row[0].split(",")[0].endswith(BESIDE_A_SESSION)
        for number in numbers(row[column])
    ]
    return f"{min(found):,g} to {max(found):,g}" if len(set(found)) > 1 else f"{found[0]:,g}"


def test_figures_of_speed_are_those_of_the_pages_it_links_to() -> None:
    assert f"a decision is {span(PERFORMANCE, 'authorize-')} times as fast as in Java" in FLAT
    by_type = f"a check by resource type {span(PERFORMANCE, 'by-resource-type')} times as fast"
    assert by_type in FLAT
    ((_, ours, theirs, *_),) = cells(PERFORMANCE, "memory-1m")
    assert f"A million ACLs take {ours}, and {theirs} in Java" in FLAT
    rate = span(METADATA_LOG, "create-acl-rate-32")
    assert f"[{rate} times as many ACL changes durable per second]" in FLAT
    produced, consumed = (
        span(BENCHMARK, f"`gateway-{each}`", 4, scale=100) for each in ("produce", "consume")
    )
    assert f"[{produced} % of the produce throughput and {consumed} % of the consume throughput]" in FLAT
    for page in (PERFORMANCE, METADATA_LOG, BENCHMARK):
        assert f"({page.relative_to(ROOT)})" in TEXT


def test_versions_are_those_that_are_used() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (python,) = re.findall(r'^requires-python = ">=([0-9.]+)"', project, re.MULTILINE)
    assert set(re.findall(r"Python ([0-9.]+[0-9])", TEXT)) == {python}
    assert f"Version {kustos.__version__} is an alpha" in FLAT
    assert f"comparisons with Kafka {versions.KAFKA}" in FLAT
    assert set(re.findall(r"Kafka ([0-9]\.[0-9.]*[0-9])", TEXT)) == {versions.KAFKA}


def test_sizes_of_runs_are_those_of_the_runs() -> None:
    compared = (ROOT / "tests" / "differential" / "test_standard_authorizer.py").read_text()
    (questions,) = re.findall(r'"KUSTOS_CHECKS"\) or ([0-9_]+)\)', compared)
    assert f"compares {int(questions):,} random decisions" in FLAT
    crashed = (ROOT / "tests" / "simulation" / "__main__.py").read_text()
    (points,) = re.findall(r'"--points", type=int, default=([0-9_]+)', crashed)
    assert f"{int(points):,} crashes a run" in FLAT
    story = (ROOT / "docs" / "tutorial" / "demo.md").read_text().split("| steps |")[1].split("\n\n")[0]
    last = max(
        int(number) for line in story.splitlines() for number in re.findall(r"[0-9]+", line.split("|")[1])
    )
    assert f"two of the demo's {last} steps" in FLAT


def test_what_is_refused_is_what_the_table_of_apis_lacks() -> None:
    _, between, _ = TEXT.split(REFUSED_MARK)
    assert between.strip() == refused()
