"""Two clusters in one set of tables, by the commands: each answer is about one, and says so."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.pipeline.report.access_report import run_access_report
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.tables import Tables, ingest
from tests.pipeline.events import NOW, NOW_MS, event_line

ACLS = """Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, patternType=LITERAL)`:
 \t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)
"""
BY_BOB = {
    "rule__kind": "MatchingAcl",
    "rule__resource_type": "TOPIC",
    "rule__resource_name": "payments",
    "rule__pattern_type": "LITERAL",
    "rule__principal": "User:bob",
    "rule__host": "*",
    "rule__operation": "READ",
    "rule__permission_type": "ALLOW",
}
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of two clusters: in east bob reads; in west, whose ACLs are the same, only eve does."""
    folder = tmp_path_factory.mktemp("clusters")
    for name in ("east", "west"):
        (folder / name).mkdir()
        (folder / f"{name}.txt").write_text(ACLS)
    (folder / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n"
        "  - {files: east, cluster: east}\n  - {files: west, cluster: west}\n"
        "acls: {source: east.txt}\nreview: {dormant_days: 1}\n"
        "clusters:\n  west: {ids: [5L6g3nShT-eMCtK--X86sw], acls: {source: west.txt}}\n"
    )
    east = [event_line(n, time_ms=NOW_MS - n * HOUR_MS, **BY_BOB) for n in range(5)]
    ids = {"cluster_id": "5L6g3nShT-eMCtK--X86sw"}
    of_eve = {"principal_name": "eve", "rule__kind": "SuperUser", "time_ms": NOW_MS, **ids}
    west = [event_line(n, **of_eve) for n in range(3)]
    (folder / "east" / "a.jsonl").write_text("\n".join([*east, east[0], "junk", ""]))
    (folder / "west" / "a.jsonl").write_text("\n".join([*west, event_line(9, cluster_id="east"), ""]))
    assert run(["pipeline", "run", "--config", str(folder / "pipeline.yml"), "--output", "json"]) == 0
    return folder


def said(capsys: pytest.CaptureFixture[str], place: Path, *words: str) -> Any:
    capsys.readouterr()
    command = ["pipeline", *words, "--config", str(place / "pipeline.yml"), "--output", "json"]
    assert run(command) == ExitCode.OK, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [
        ["review"], ["replay", "east.txt"], ["recommend"], ["anomalies", "find"], ["flows"],
        ["judge", "--metadata", "m"], ["report", "--out", "page.html"],
    ],
)  # fmt: skip
def test_a_question_about_several_clusters_is_refused_before_spark_starts(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(place)
    config = ["--config", str(place / "pipeline.yml")]
    assert run(["pipeline", *words, *config]) == ExitCode.FAILED
    assert "several clusters, choose one with `--cluster`: `east`, `west`" in capsys.readouterr().err
    assert run(["pipeline", *words, *config, "--cluster", "north"]) == ExitCode.FAILED
    assert "no cluster `north`, only `east`, `west`" in capsys.readouterr().err


def test_a_grant_that_another_cluster_uses_is_not_used(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    east = said(capsys, place, "review", "--cluster", "east", "--dry-run")
    assert "east.txt" in east["plan"][0]
    east = said(capsys, place, "review", "--cluster", "east", "--sign-off", str(place / "east.json"))
    west = said(capsys, place, "review", "--cluster", "west", "--sign-off", str(place / "west.json"))
    assert (east["cluster"], west["cluster"]) == ("east", "west")
    assert (east["acls"], west["acls"]) == ("east.txt", "west.txt")
    unused = [[one["kind"] for one in each["findings"]] for each in (east, west)]
    assert ["UNUSED_ACL" in kinds for kinds in unused] == [False, True]
    documents = [json.loads((place / f"{name}.json").read_text())["review"] for name in ("east", "west")]
    assert [document["cluster"] for document in documents] == ["east", "west"]
    uses = [
        {(row["principal"], row["operation"]): row["use_count"] for row in document["rows"]}
        for document in documents
    ]
    bobs = ("User:bob", "READ"), ("User:bob", "DESCRIBE")
    assert uses == [dict(zip(bobs, counts, strict=True)) for counts in ((5, 0), (0, 0))]
    assert [each["accesses"]["used"] for each in (east, west)] == [1, 1]
    command = ["pipeline", "review", "--cluster", "west", "--config", str(place / "pipeline.yml")]
    assert run([*command, "--former", str(place / "east.json")]) == ExitCode.USAGE
    assert "is of cluster `east`, this one is of cluster `west`" in capsys.readouterr().err


def test_each_answer_counts_one_cluster(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "none.txt").write_text(ACLS.replace("bob", "nobody"))
    for rules in ([], ["--rules"]):
        words = ("replay", str(place / "none.txt"), *rules)
        east, west = (said(capsys, place, *words, "--cluster", name) for name in ("east", "west"))
        assert (east["cluster"], east["lost"], west["cluster"], west["lost"]) == ("east", 5, "west", 3)
    needs = [said(capsys, place, "recommend", "--cluster", name) for name in ("east", "west")]
    assert [one["cluster"] for one in needs] == ["east", "west"]
    assert [(one["acls"], one["needed_events"]) for one in needs] == [(1, 5), (0, 0)]
    by_id = said(capsys, place, "flows", "--cluster", "5L6g3nShT-eMCtK--X86sw")
    assert by_id["cluster"] == "west"
    found = said(capsys, place, "anomalies", "find", "--cluster", "east", "--until", f"{NOW:%F}")
    assert found["cluster"] == "east"


def test_the_page_is_about_one_cluster_and_names_the_others(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = place / "east.html"
    summary = said(capsys, place, "report", "--out", str(page), "--cluster", "east")
    assert (summary["cluster"], summary["events"], summary["quarantined"]) == ("east", 5, 1)
    text = page.read_text()
    assert "cluster <bdi>east</bdi>" in text
    assert "events of other clusters: <bdi>west</bdi> 3</p>" in text
    assert "User:bob" in text
    assert "User:eve" not in text


def test_the_page_names_other_clusters_as_the_configuration_does(spark: SparkSession, tmp_path: Path) -> None:
    """Events of west came with its id, before and after an operator named the cluster."""
    named = {"west": ("5L6g3nShT-eMCtK--X86sw",), "north": ("6L6g3nShT-eMCtK--X86sw",)}
    tables = Tables(tmp_path / "tables")
    clusters = ["east", "west", "west", *(each for ids in named.values() for each in ids)]
    lines = [("f", event_line(number, cluster_id=name)) for number, name in enumerate(clusters)]
    ingest(spark, spark.createDataFrame(lines, LINES_SCHEMA), tables, "a")
    run_tables_report(spark, tables.of_cluster("east", named), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "events of other clusters: <bdi>west</bdi> 3, <bdi>north</bdi> 1</p>" in text


def test_the_configuration_may_name_the_cluster(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = place / "pipeline.yml"
    text = config.read_text()
    try:
        config.write_text(text + "cluster: east\n")
        assert said(capsys, place, "flows")["cluster"] == "east"
        assert (
            said(capsys, place, "review", "--dry-run", "--cluster", "west")["plan"][0].count("west.txt") == 1
        )
        config.write_text(text.replace(", acls: {source: west.txt}", "") + "cluster: east\n")
        command = ["pipeline", "review", "--dry-run", "--cluster", "west", "--config", str(config)]
        assert run(command) == ExitCode.USAGE  # the ACLs are those of east
        assert "does not say where the ACLs are" in capsys.readouterr().err
        config.write_text(text + "  east: {ids: [5L6g3nShT-eMCtK--X86sw]}\n")
        assert run(command) == ExitCode.USAGE
        assert "is named for two clusters" in capsys.readouterr().err
    finally:
        config.write_text(text)


def test_a_report_on_a_folder_is_about_one_cluster(
    spark: SparkSession, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = tmp_path / "audit"
    audit.mkdir()
    lines = [event_line(n, cluster_id=name) for n in range(3) for name in ("east", "west")]
    (audit / "a.jsonl").write_text("\n".join([*lines, event_line(9, cluster_id="west"), "junk", ""]))
    command = ["pipeline", "report", "--audit", str(audit), "--out", str(tmp_path / "out")]
    assert run(command) == ExitCode.FAILED
    assert "several clusters" in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("[!.]*"))
    summary = run_access_report(spark, audit, tmp_path / "out", cluster="west")
    assert (summary.cluster, summary.events, summary.allowed, summary.quarantined) == ("west", 7, 4, 1)
    assert "events of other clusters: <bdi>east</bdi> 3</p>" in (tmp_path / "out" / "report.html").read_text()
    counts = spark.read.parquet(str(tmp_path / "out" / "access_counts")).collect()
    assert {(row["cluster"], row["event_count"]) for row in counts} == {("east", 3), ("west", 4)}
