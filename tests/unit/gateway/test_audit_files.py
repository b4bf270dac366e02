"""Audit files: complete lines and files, readable by the owner only, with errors if writing fails."""

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import RequestEvents
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.log4j import KafkaLinesSink, log4j_time
from testkit.audit_events import AuditEvent
from testkit.gateway.audit import CONTEXT, DENIED, EVENTS, decided, lines_of, request
from testkit.waiting import wait_until

ROOT = Path(__file__).parents[3]
LINE_BYTES = len(next(EVENTS.json_lines(request(0, "t"))).encode()) + 1


def json_sink(directory: Path, lines_per_file: int = 1000, max_files: int = 100) -> JsonFilesSink:
    return JsonFilesSink(directory, max_bytes=lines_per_file * LINE_BYTES, max_files=max_files)


def closed_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("audit-*.jsonl"))


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def topics_in(*paths: Path) -> list[str | None]:
    return [
        AuditEvent.from_json(line).resource_name for path in paths for line in path.read_text().splitlines()
    ]


async def test_a_file_gets_its_name_once_it_is_complete(tmp_path: Path) -> None:
    sink = json_sink(tmp_path / "audit")
    await sink.open()
    await sink.write(lines_of(request(0, "a", "b")))
    (being_written,) = (tmp_path / "audit").glob("*.jsonl")
    assert re.fullmatch(r"_audit-\d{8}T\d{6}Z-000001\.jsonl", being_written.name)
    assert topics_in(being_written) == ["a", "b"]
    assert stat.S_IMODE(being_written.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700
    await sink.close()
    (done,) = closed_files(tmp_path / "audit")
    assert done.name == being_written.name.removeprefix("_")
    assert topics_in(done) == ["a", "b"]


async def test_a_small_file_is_closed_at_its_maximum_age(tmp_path: Path) -> None:
    sink = JsonFilesSink(tmp_path, max_bytes=10**9, max_files=9, roll_ms=100)
    await sink.open()
    await sink.write(lines_of(request(0, "a")))
    await asyncio.to_thread(wait_until, lambda: closed_files(tmp_path), what="the file has its name")
    assert topics_in(*closed_files(tmp_path)) == ["a"]
    await sink.write(lines_of(request(1, "b")))
    await sink.close()
    assert topics_in(*closed_files(tmp_path)) == ["a", "b"]


async def test_files_are_rotated_by_size_and_the_oldest_deleted(tmp_path: Path) -> None:
    sink = json_sink(tmp_path, lines_per_file=2, max_files=3)
    await sink.write(lines_of(request(0, *"abc"), request(3, *"defg")))
    await sink.write(lines_of(request(7, "h"), request(8, *"ij")))
    await sink.close()
    files = closed_files(tmp_path)
    assert [path.name[-12:-6] for path in files] == ["000003", "000004", "000005"]
    assert topics_in(*files) == list("efghij")
    assert all(path.stat().st_size <= 2 * LINE_BYTES for path in files)


async def test_an_event_longer_than_a_file_has_a_file_of_its_own(tmp_path: Path) -> None:
    sink = json_sink(tmp_path, lines_per_file=1)
    await sink.write(lines_of(request(0, "a", "b" * 200, "c")))
    await sink.close()
    assert [topics_in(path) for path in closed_files(tmp_path)] == [["a"], ["b" * 200], ["c"]]


async def test_file_numbers_continue_after_a_restart(tmp_path: Path) -> None:
    for at in range(3):
        sink = json_sink(tmp_path)
        await sink.write(lines_of(request(at, f"t{at}")))
        await sink.close()
    assert [path.name[-12:-6] for path in closed_files(tmp_path)] == ["000001", "000002", "000003"]


async def test_an_idle_run_leaves_no_file(tmp_path: Path) -> None:
    sink = json_sink(tmp_path)
    await sink.open()
    await sink.close()
    assert names_in(tmp_path) == ["_lock"]


async def test_a_file_left_open_by_a_crash_is_truncated_after_its_last_line_and_closed(
    tmp_path: Path,
) -> None:
    lines = "".join(f"{line}\n" for line in EVENTS.json_lines(request(0, "a", "b")))
    (tmp_path / "_audit-20261121T000000Z-000007.jsonl").write_text(lines + '{"half' + "x" * 100_000)
    (tmp_path / "_audit-20261121T000000Z-000008.jsonl").write_text('{"half')
    sink = json_sink(tmp_path)
    await sink.write(lines_of(request(2, "c")))
    await sink.close()
    files = closed_files(tmp_path)
    assert files[0].name == "audit-20261121T000000Z-000007.jsonl"
    assert files[1].name.endswith("-000008.jsonl")
    assert [topics_in(path) for path in files] == [["a", "b"], ["c"]]


async def test_two_writers_do_not_share_a_directory(tmp_path: Path) -> None:
    first = json_sink(tmp_path)
    await first.open()
    with pytest.raises(AuditSinkError, match="cannot write audit files"):
        await json_sink(tmp_path).open()
    await first.close()
    second = json_sink(tmp_path)
    await second.open()
    await second.close()


async def test_an_unwritable_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AuditSinkError, match="file exists"):
        await json_sink(tmp_path / "file").open()
    with pytest.raises(AuditSinkError, match="no such file or directory"):
        await KafkaLinesSink(tmp_path / "missing" / "authorizer.log", "INFO").open()


def test_a_full_disk_is_an_error_and_leaves_complete_lines(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.gateway.full_disk", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    assert ["file too large" in text for text in said] == [True, True]
    expected = [f"topic-{number}" for number in range(30)]
    assert topics_in(*closed_files(tmp_path / "json")) == expected, "one query each, after two attempts"
    lines = (tmp_path / "authorizer.log").read_text().splitlines()
    assert [re.search(r"LITERAL:(\S+)", line)[1] for line in lines] == expected  # type: ignore[index]


async def test_lines_in_kafkas_format_equal_kafkas_own(tmp_path: Path) -> None:
    path = tmp_path / "authorizer.log"
    sink = KafkaLinesSink(path, "DEBUG")
    await sink.write(lines_of(request(0, "foo")))
    await sink.close()
    stamp = log4j_time(request(0, "foo").time_ms)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,815", stamp)
    assert path.read_text() == (
        f"[{stamp}] DEBUG Principal = User:alice is Allowed operation = DESCRIBE from host = 127.0.0.1 on "
        "resource = Topic:LITERAL:foo for request = Metadata with resourceRefCount = 1 based on rule "
        "SuperUser (kafka.authorizer.logger)\n"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("level", "shown"),
    [("INFO", ["INFO"]), ("DEBUG", ["DEBUG", "INFO"]), ("TRACE", ["DEBUG", "TRACE", "INFO", "TRACE"])],
)
async def test_a_level_admits_the_same_lines_as_kafkas_logger(
    level: str, shown: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "authorizer.log"
    sink = KafkaLinesSink(path, level)
    decisions = (
        decided("a"),
        decided("a", log_if_allowed=False),
        decided("b", DENIED),
        decided("b", DENIED, log_if_denied=False),
    )
    await sink.write(lines_of(RequestEvents(0, 0, CONTEXT, decisions, -1)))
    await sink.close()
    assert [line.split("] ")[1].split()[0] for line in path.read_text().splitlines()] == shown


async def test_no_name_can_forge_a_line(tmp_path: Path) -> None:
    path = tmp_path / "authorizer.log"
    sink = KafkaLinesSink(path, "TRACE")
    await sink.write(lines_of(request(0, "x\n[2026-01-01 00:00:00,000] INFO forged\r\u2028\x85\x1b[0m")))
    await sink.close()
    (line,) = path.read_text().splitlines()
    assert r"x\u000a[2026" in line
    assert r"\u000d\u2028\u0085\u001b[0m" in line


async def test_a_new_file_replaces_one_that_was_moved(tmp_path: Path) -> None:
    path = tmp_path / "authorizer.log"
    sink = KafkaLinesSink(path, "TRACE")
    await sink.write(lines_of(request(0, "a")))
    path.rename(tmp_path / "old.log")
    await sink.write(lines_of(request(1, "b")))
    path.rename(tmp_path / "older.log")
    os.close(os.open(path, os.O_CREAT, 0o600))  # as logrotate's `create` does
    await sink.write(lines_of(request(2, "c")))
    await sink.close()
    for name, topic in (("old.log", "a"), ("older.log", "b"), ("authorizer.log", "c")):
        assert f"LITERAL:{topic} " in (tmp_path / name).read_text()
