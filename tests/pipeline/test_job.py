"""The whole job over real files: everything is accounted for, or nothing is published."""

import bz2
import gzip
import json
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import AuditInputError, LinesLostError
from kustos.pipeline.report.access_report import run_access_report
from kustos.pipeline.tables import line_writer
from tests.pipeline.events import event_line, kafka_line, login_line

pytestmark = pytest.mark.usefixtures("users_plans")


def audit_folder(folder: Path) -> Path:
    """Make a folder of both formats: rotated, gzipped, with odd names, junk and no last line feed."""
    (folder / "day=1").mkdir(parents=True)
    (folder / "day=1" / "au*dit [1]+%41 {x}.jsonl").write_text(
        f"{event_line(1)}\n{event_line(2)}\r\n{login_line(1, attempt_count=7)}\n"
    )
    (folder / "audit.jsonl.1.gz").write_bytes(gzip.compress(event_line(2).encode() + b"\n"))
    both = gzip.compress(f"{kafka_line()}\n".encode()) + gzip.compress(event_line(3).encode())
    (folder / "kafka-authorizer.log.2026-11-21-04.gz").write_bytes(both)
    (folder / "junk").write_bytes(bytes(range(256)))
    (folder / "empty").touch()
    (folder / "_hidden").write_text("x")
    return folder


def test_every_line_is_accounted_for_and_a_new_run_replaces_the_old(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit, out = audit_folder(tmp_path / "audit"), tmp_path / "out"
    for _ in range(2):
        summary = run_access_report(spark, audit, out)
        assert (summary.lines, summary.events, summary.quarantined, summary.duplicates) == (8, 4, 2, 1)
        assert (summary.security_events, summary.failed_logins) == (1, 7)
        assert (summary.files, summary.files_passed_over) == (5, 1)
        assert json.loads((out / "summary.json").read_text())["lines"] == 8
        assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
            "access_counts",
            "audit_events",
            "quarantine",
            "report.html",
            "security_events",
            "summary.json",
        ]
    files = {row["file"] for row in spark.read.parquet(str(out / "quarantine")).collect()}
    sources = {r["source_file"] for r in spark.read.parquet(str(out / "audit_events")).collect()}
    assert "junk" in files
    assert "day=1/au*dit [1]+%41 {x}.jsonl" in sources | files


def test_copies_of_a_log_count_once_however_they_are_packed_or_moved(
    spark: SparkSession, tmp_path: Path
) -> None:
    def log(node: int, lines: int) -> bytes:
        times = (f"2026-11-21 04:00:{at:02d},{node:03d}" for at in range(lines))
        return "".join(f"{kafka_line(time=time)}\n" for time in times).encode()

    audit, out = tmp_path / "audit", tmp_path / "out"
    (audit / "moved").mkdir(parents=True)
    (audit / "kafka.log").write_bytes(log(1, 20))
    (audit / "kafka.log.bz2").write_bytes(bz2.compress(log(1, 10)))
    (audit / "moved" / "anything").write_bytes(log(1, 30))
    with zipfile.ZipFile(audit / "logs.zip", "w") as archive:
        archive.writestr("kafka.log", log(1, 5))
    (audit / "moved" / "kafka.log").write_bytes(log(2, 5))
    summary = run_access_report(spark, audit, out)
    assert (summary.lines, summary.events, summary.duplicates, summary.warnings) == (70, 35, 35, ())
    (audit / "moved" / "short").write_bytes(log(2, 1))
    summary = run_access_report(spark, audit, out)
    assert (summary.lines, summary.events) == (71, 36)
    assert ["too little in common" in each for each in summary.warnings] == [True]
    assert json.loads((out / "summary.json").read_text())["warnings"] == list(summary.warnings)


@pytest.mark.parametrize("damage", ["cut", "not gzip", "trailing bytes"])
def test_a_damaged_gzip_stops_the_run_by_name_and_keeps_the_former_output(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    audit, out = tmp_path / "audit", tmp_path / "out"
    audit.mkdir()
    whole = gzip.compress("\n".join(event_line(number) for number in range(2000)).encode())
    damaged = {
        "cut": whole[: len(whole) // 2],
        "not gzip": b"hello\n",
        "trailing bytes": whole + b"junkjunkjunk",
    }
    (audit / "a b.gz").write_bytes(damaged[damage])
    (out / "audit_events").mkdir(parents=True)
    (out / "audit_events" / "_SUCCESS").touch()
    with pytest.raises(AuditInputError, match=r"cannot read `/.*a.*b\.gz` to its end"):
        run_access_report(spark, audit, out)
    assert (out / "audit_events" / "_SUCCESS").exists()
    assert not (out / "report.html").exists()


def test_a_stage_that_loses_a_line_is_found_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = line_writer._QUARANTINE.empty_table()
    monkeypatch.setattr(line_writer._Writer, "_quarantined", lambda *_: nothing)
    audit, out = audit_folder(tmp_path / "audit"), tmp_path / "out"
    with pytest.raises(LinesLostError, match="8 lines were read but"):
        run_access_report(spark, audit, out)
    assert not (out / "audit_events").exists()


def test_an_unknown_time_zone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AuditInputError, match="unknown time zone `Mars/Olympus`"):
        run_access_report(spark, tmp_path, tmp_path / "out", time_zone="Mars/Olympus")
