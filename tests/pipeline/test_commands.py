"""The commands over one set of tables, as somebody would use them one after the other."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.tables import Tables
from kustos.runtime import SystemClock
from tests.pipeline.events import event_line
from tests.pipeline.run.homes import log_lines

ACLS = """Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, patternType=LITERAL)`:
 \t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    (folder / "audit").mkdir()
    (folder / "acls.txt").write_text(ACLS)
    (folder / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\nacls: {source: acls.txt}\n"
    )
    lines = [event_line(number, principal_name="bob") for number in range(5)]
    lines += [event_line(number, principal_name="eve", decision="DENIED") for number in range(5, 8)]
    (folder / "audit" / "a.jsonl").write_text("\n".join([*lines, lines[0], "junk", ""]))
    return folder


def said(capsys: pytest.CaptureFixture[str], place: Path, *words: str) -> Any:
    """Run a command of the pipeline and return the document that it prints."""
    config = ["--config", str(place / "pipeline.yml")]
    capsys.readouterr()
    assert run(["pipeline", *words, *config, "--output", "json"]) in {ExitCode.OK, ExitCode.NO}
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_tells_what_is_new_and_a_run_takes_it_in_once(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = said(capsys, place, "run", "--dry-run")["plan"]
    assert (plan[0]["files"], plan[0]["new_files"]) == (1, 1)
    first = said(capsys, place, "run")["inputs"][0]
    assert (first["lines"], first["events"], first["quarantined"], first["duplicates"]) == (10, 8, 1, 1)
    again = said(capsys, place, "run")["inputs"][0]
    assert (again["files"], again["new_files"], again["lines"]) == (1, 0, 0)
    assert Tables(place / "tables").read(spark, "audit_events").count() == 8


def test_a_replay_tells_who_loses_what_and_ends_with_five(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = said(capsys, place, "replay", str(place / "acls.txt"))
    assert (same["lost"], same["flips"]) == (0, [])
    (place / "eve.txt").write_text(ACLS.replace("bob", "eve"))
    command = [
        "pipeline",
        "replay",
        str(place / "eve.txt"),
        "--config",
        str(place / "pipeline.yml"),
        "--exit-code",
    ]
    assert run(command) == ExitCode.NO
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    heading, *rows = lines[next(at for at, line in enumerate(lines) if line[:1] == ["what"]) :]
    assert heading[:4] == ["what", "access", "principal", "host"]
    assert {tuple(row[:4]) for row in rows} == {
        ("lost", "access", "User:bob", "10.0.0.7"),
        ("gained", "access", "User:eve", "10.0.0.7"),
    }
    flips = said(capsys, place, "replay", str(place / "eve.txt"))
    assert flips["lost"] == 5
    assert {(row["kind"], row["principal"], row["event_count"]) for row in flips["flips"]} == {
        ("LOST", "User:bob", 5),
        ("GAINED", "User:eve", 3),
    }


def test_the_page_shows_the_tables_and_the_last_replay(spark: SparkSession, place: Path) -> None:
    summary = run_tables_report(spark, Tables(place / "tables"), place / "page" / "report.html")
    assert (summary.events, summary.allowed, summary.denied, summary.quarantined) == (8, 5, 3, 1)
    assert summary.answers == ("replay_flips",)
    page = (place / "page" / "report.html").read_text()
    assert '<section id="replayed">' in page
    assert '<section id="findings">' not in page
    assert '<section id="teams">' not in page


def test_the_page_sums_up_access_by_owner(spark: SparkSession, place: Path) -> None:
    page = place / "owners" / "report.html"
    run_tables_report(spark, Tables(place / "tables"), page, teams={"User:b*": "shop"})
    section = page.read_text().partition('<section id="teams">')[2].partition("</section>")[0]
    rows = re.findall("<tr><td>(.*?)</td>(?:<td class=.n.>(\\d+)</td>)(?:<td class=.n.>(\\d+)</td>)", section)
    assert [(re.sub("<[^>]*>", "", name), *map(int, counts)) for name, *counts in rows] == [
        ("shop", 1, 5),
        ("nobody is named", 1, 0),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--follow"], "a configuration with one input, a topic"),
        (["replay", "nowhere.txt"], "cannot read the file `nowhere.txt`"),
        (["replay", "git:acls.txt"], "write `git:REVISION:PATH`"),
        (["replay", "pipeline.yml", "--since", "2026-11-03", "--until", "2026-11-01"], "is before"),
        (["replay", "pipeline.yml", "--since", "yesterday"], "`--since yesterday` is not a day"),
        (["report", "--out", "x.html", "--config", "nowhere.yml"], "cannot read the configuration"),
    ],
)
def test_what_is_wrong_is_said_before_spark_starts(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    config = [] if "--config" in words else ["--config", str(place / "pipeline.yml")]
    assert run(["pipeline", *words, *config]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_without_tables_it_says_how_to_fill_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pipeline.yml").write_text("version: 1\ntables: {path: tables}\n")
    config = ["--config", str(tmp_path / "pipeline.yml")]
    assert run(["pipeline", "report", "--out", str(tmp_path / "x.html"), *config]) == ExitCode.USAGE
    assert "create them with `kustos pipeline run`" in capsys.readouterr().err


def test_a_refused_file_is_counted_and_an_exit_code_if_asked_for(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "audit").mkdir()
    for name, text in (("one", log_lines(1)), ("two", log_lines(2))):
        (tmp_path / "audit" / name).write_text(text)
    (tmp_path / "pipeline.yml").write_text("version: 1\ntables: {path: tables}\ninputs: [{files: audit}]\n")
    command = ["pipeline", "run", "--config", str(tmp_path / "pipeline.yml")]
    assert run([*command, "--exit-code"]) == ExitCode.OK
    (tmp_path / "audit" / "both").write_text(log_lines(1) + log_lines(2))
    assert said(capsys, tmp_path, "run")["inputs"][0]["refused_files"] == 1
    assert run([*command, "--exit-code"]) == ExitCode.NO
    shown = capsys.readouterr()
    assert re.search(r"refused files +1\b", shown.out)
    assert "take it out of the folder" in " ".join(shown.err.split())


def test_days_beyond_the_retention_go_and_it_is_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now_ms = SystemClock().wall_ms()
    (tmp_path / "audit").mkdir()
    lines = [event_line(number, time_ms=now_ms - number * 20 * 86_400_000) for number in range(4)]
    (tmp_path / "audit" / "a.jsonl").write_text("\n".join(lines))
    text = "version: 1\ntables: {{path: tables{}}}\ninputs:\n  - files: audit\n"
    (tmp_path / "pipeline.yml").write_text(text.format(""))
    assert said(capsys, tmp_path, "run")["inputs"][0]["events"] == 4
    (tmp_path / "pipeline.yml").write_text(text.format(", retention_days: 30"))
    (tmp_path / "audit" / "b.jsonl").write_text(event_line(9, time_ms=now_ms - 50 * 86_400_000))
    plan = said(capsys, tmp_path, "run", "--dry-run")["would_drop"]
    assert (len(plan["event_days"]), plan["events"], plan["rollup_days"], plan["lines"]) == (2, 2, [], 0)
    assert run(["pipeline", "run", "--config", str(tmp_path / "pipeline.yml")]) == ExitCode.OK
    shown = re.sub(" +", " ", capsys.readouterr().out)
    for line in ("quarantined 1", "of them too late 1", "dropped days 2", "dropped events 2"):
        assert f"{line} \n" in shown or f"{line}\n" in shown
    tables = Tables(tmp_path / "tables")
    assert (tables.read(spark, "audit_events").count(), tables.read(spark, "audit_rollup").count()) == (2, 4)
