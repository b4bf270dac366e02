"""Audit files in an object store are read as those on a disk: shown on a real server of S3."""

import bz2
import gzip
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.places import StorePath
from kustos.pipeline.report.access_report import run_access_report
from kustos.pipeline.run import find_new_files, run_pipeline
from kustos.pipeline.run.files import compression, content, pieces
from kustos.pipeline.run.files.line_reader import read_located_lines
from kustos.pipeline.run.files.new_files import FoundFile, with_layouts
from kustos.pipeline.tables import Tables
from testkit.object_store import ObjectStore
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.run.homes import log_lines
from tests.pipeline.tables.test_runs import contents


def text(first: int, last: int) -> str:
    return "".join(f"{event_line(number)}\n" for number in range(first, last))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files in each form of packing; the last line of one has no end yet."""
    folder = tmp_path / "audit"
    (folder / "broker-1" / "_old").mkdir(parents=True)
    half = kafka_line(principal="User:eve")[:40]
    (folder / "plain.jsonl").write_text(text(0, 50))
    (folder / "broker-1" / "server.log").write_text(f"{kafka_line()}\n{kafka_line()}\njunk\n{half}")
    (folder / "broker-1" / "_old" / "hidden.log").write_text("hidden")
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress(text(40, 80).encode()))
    (folder / "packed.jsonl.bz2").write_bytes(bz2.compress(text(80, 90).encode()))
    with zipfile.ZipFile(folder / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", text(90, 95))
        archive.writestr("b/c.jsonl", text(95, 100))
    return folder


def put(store: ObjectStore, folder: Path, name: str) -> StorePath:
    """Copy a folder into the bucket, whose server keeps objects as files."""
    shutil.copytree(folder, store.folder / name, dirs_exist_ok=True)
    return StorePath(store.address(name))


def test_logs_there_are_taken_in_as_those_on_a_disk(
    near: SparkSession, store: ObjectStore, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = Tables(tmp_path / "here"), Tables(tmp_path / "there")
    counted = []
    for is_first in (True, False):
        if not is_first:
            (folder / "plain.jsonl").write_text(text(0, 50) + text(100, 110))
            (folder / "broker-1" / "other.log").write_text(f"{kafka_line(principal='User:carol')}\n")
        pair = ((here, folder), (there, put(store, folder, "logs")))
        found = [run_pipeline(near, tables=tables, audit=audit) for tables, audit in pair]
        assert found[0].events == found[1].events
        assert found[0].half_lines == found[1].half_lines == 1
        assert contents(near, here) == contents(near, there)
        counted.append(found[1].new_files)
    assert counted == [6, 2]
    files = put(store, folder, "logs")
    with monkeypatch.context() as patch:
        opened: list[StorePath] = []

        def open_bytes(place: StorePath, part_bytes: int) -> IO[bytes]:
            opened.append(place)
            return content.open_bytes(place, part_bytes)

        patch.setattr(compression, "open_bytes", open_bytes)
        assert not find_new_files(files, there).new
    assert {each.name for each in opened} == {"archive.zip", "server.log"}, "others are known by their state"


def test_large_files_there_are_cut_into_pieces_and_each_line_is_read_once(
    near: SparkSession, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "a.jsonl").write_text(text(0, 3_000))
    monkeypatch.setattr(pieces, "TASK_BYTES_MIN", 100_000)
    audit, tables = put(store, tmp_path / "audit", "large"), Tables(tmp_path / "tables")
    assert len(pieces.tasks_of([each.readable() for each in find_new_files(audit, tables).new])) > 5
    assert run_pipeline(near, tables=tables, audit=audit).events == 3_000


def reads(store: ObjectStore, action: Callable[[], object]) -> Counter[str]:
    """Return how often the store was asked for the content of each object meanwhile."""
    before = len(store.log.read_text().splitlines())
    action()
    requests = [line.split("|") for line in store.log.read_text().splitlines()[before:]]
    return Counter(request[6].strip() for request in requests if request[5].strip() == "GET")


def test_a_run_reads_each_new_file_there_once(near: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    for node, pack in ((1, bytes), (2, gzip.compress)):
        path = tmp_path / "audit" / f"kafka-{node}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pack(log_lines(node).encode()))
    audit, tables = put(store, tmp_path / "audit", "once"), Tables(tmp_path / "tables")
    found: list[FoundFile] = []

    def look() -> None:
        found.extend(with_layouts(find_new_files(audit, tables).new, None, may_be_unknown=False))

    looked = reads(store, look)
    read = reads(store, lambda: read_located_lines(near, found).frame().count())
    run = reads(store, lambda: run_pipeline(near, tables=tables, audit=audit))
    paths = {f"/lake/once/kafka-{node}" for node in (1, 2)}
    assert {path: run[path] for path in paths} == {path: looked[path] + read[path] for path in paths}


def test_a_report_of_logs_there_is_that_of_logs_on_a_disk(
    near: SparkSession, store: ObjectStore, tmp_path: Path, folder: Path
) -> None:
    there = run_access_report(near, put(store, folder, "report"), tmp_path / "there")
    here = run_access_report(near, folder, tmp_path / "here")
    assert (there.files, there.events, there.quarantined) == (here.files, here.events, here.quarantined)
    assert here.files_passed_over == there.files_passed_over == 1


def test_what_the_store_refuses_is_no_damage_of_a_file(
    near: SparkSession, store: ObjectStore, tmp_path: Path, folder: Path
) -> None:
    audit, tables = put(store, folder, "refused"), Tables(tmp_path / "tables")
    environment = near.sparkContext.environment
    secret = environment["AWS_SECRET_ACCESS_KEY"]
    environment["AWS_SECRET_ACCESS_KEY"] = "of-somebody-else"
    try:
        with pytest.raises(AuditInputError, match=r"cannot read `s3://.*`: permission denied") as caught:
            run_pipeline(near, tables=tables, audit=audit, on_damaged_file="quarantine")
    finally:
        environment["AWS_SECRET_ACCESS_KEY"] = secret
    assert "of-somebody-else" not in str(caught.value)
    assert tables.state().number == 0


def test_damage_there_is_named_and_quarantined_where_that_is_wanted(
    near: SparkSession, store: ObjectStore, tmp_path: Path, folder: Path
) -> None:
    whole = (folder / "packed.jsonl.gz").read_bytes()
    (folder / "packed.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    audit, tables = put(store, folder, "damaged"), Tables(tmp_path / "tables")
    with pytest.raises(AuditInputError, match=r"cannot read `s3://.*/packed.jsonl.gz` to its end"):
        run_pipeline(near, tables=tables, audit=audit)
    summary = run_pipeline(near, tables=tables, audit=audit, on_damaged_file="quarantine")
    assert summary.damaged_files == 1


def test_folders_there_that_cannot_be_read_are_refused_with_the_reason(
    store: ObjectStore, tmp_path: Path, folder: Path
) -> None:
    tables = Tables(tmp_path / "tables")
    audit = put(store, folder, "names")
    with pytest.raises(AuditInputError, match="must lie apart"):
        find_new_files(audit, Tables.at(str(audit / "tables")))
    with pytest.raises(AuditInputError, match="holds no audit files"):
        find_new_files(StorePath(store.address("nothing")), tables)
    (store.folder / "names" / "a b.jsonl").write_text(text(0, 1))
    with pytest.raises(AuditInputError, match=r"cannot read `a b.jsonl` below `s3://"):
        find_new_files(audit, tables)
    with pytest.raises(AuditInputError, match=r"cannot list `s3://no-such-bucket/logs`: "):
        find_new_files(StorePath("s3://no-such-bucket/logs"), tables)
