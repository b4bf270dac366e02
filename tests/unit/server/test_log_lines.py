"""Logging never raises and never waits, with real pipes, disks and processes as standard error."""

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from kustos.server import log_lines
from kustos.server.log_lines import LINES_MAX, LogLines
from kustos.server.logs import configure_logs
from testkit.small_disk import small_disk
from testkit.waiting import wait_until

LINE = b"a line of the log\n"
PIPE_LINES = 8_000
"""More than a pipe holds, fewer than the queue."""

LONG_LINE = b"x" * 5_000 + b"\n"


@dataclass
class Pipe:
    """A pipe with lines at its writing end."""

    lines: LogLines
    reading: int
    writing: int

    def read(self, least: int) -> list[bytes]:
        """Read until so many whole lines have come."""
        data = b""
        while data.count(b"\n") < least:
            data += os.read(self.reading, 1 << 20)
        return data.splitlines(keepends=True)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    made = Pipe(LogLines(writing), reading, writing)
    yield made
    # a thread that still writes gets an error
    os.close(reading)
    made.lines.flush()
    os.close(writing)


def is_writable(descriptor: int) -> bool:
    return bool(select.select([], [descriptor], [], 0)[1])


def fill(pipe: Pipe) -> int:
    """Put lines until pipe and queue are full, as nobody reads; return how many were not lost."""
    for _ in range(PIPE_LINES):
        pipe.lines.put(LINE)
    wait_until(lambda: not is_writable(pipe.writing), what="the pipe is full")
    count = PIPE_LINES
    while not pipe.lines.lost:
        pipe.lines.put(LINE)
        count += 1
    return count - 1


def test_lines_come_whole_and_in_order(pipe: Pipe) -> None:
    for number in range(100):
        pipe.lines.put(f"{number}\n".encode())
    assert pipe.read(100) == [f"{number}\n".encode() for number in range(100)]
    assert pipe.lines.lost == 0


def test_a_reader_that_stops_holds_up_nobody_and_one_line_says_what_was_lost(pipe: Pipe) -> None:
    put = fill(pipe)
    assert put >= LINES_MAX
    for _ in range(41):
        pipe.lines.put(LINE)
    assert pipe.lines.lost == 42
    assert pipe.read(put + 1).count(LINE) == put
    pipe.lines.put(LINE)
    (line,) = pipe.read(1)
    assert line == LINE
    assert pipe.lines.lost == 42, "nothing more is lost"


def test_the_loss_is_reported_before_what_comes_after_it(pipe: Pipe) -> None:
    put = fill(pipe)
    found = pipe.read(put + 1)
    assert [line for line in found if line != LINE] == [b"1 lines of the log were lost\n"]


def test_long_lines_are_bounded_by_their_bytes(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "BYTES_MAX", 3 * len(LONG_LINE) + 100)
    while not pipe.lines.lost:
        pipe.lines.put(LONG_LINE)
    pipe.lines.put(b"short\n")
    assert pipe.lines.lost == 1, "a line that fits is taken"


def test_a_dead_reader_costs_lines_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    lines = LogLines(writing)
    for _ in range(3):
        lines.put(LINE)
    assert lines.flush()
    assert lines.lost == 3
    os.close(writing)
    lines.put(LINE)
    assert lines.flush()
    assert lines.lost == 4, "also without a descriptor"


def test_a_full_disk_costs_lines_until_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk.path / "log"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        lines = LogLines(descriptor)
        lines.put(LINE)
        while not lines.lost:
            lines.put(LONG_LINE)
            assert lines.flush()
        lost = lines.lost
        disk.free()
        kept = path.read_bytes()
        assert not kept.endswith(b"\n"), "half a line was written"
        os.truncate(path, len(kept) // 2)
        lines.put(b"after\n")
        assert lines.flush()
        written = path.read_bytes()[len(kept) // 2 :]
        assert written == f"\n{lost} lines of the log were lost\nafter\n".encode()
        assert lines.lost == lost
        os.close(descriptor)


def test_a_pipe_that_another_process_made_non_blocking_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.writing, False)
    for _ in range(200):
        pipe.lines.put(LONG_LINE)
    assert pipe.read(200) == [LONG_LINE] * 200
    assert pipe.lines.lost == 0


def test_a_thread_that_cannot_be_started_costs_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    lines = LogLines()
    lines.put(LINE)
    assert lines.lost == 1


class Broken:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")

    __str__ = __repr__


CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    "log",
    [
        lambda: structlog.get_logger("kustos.server").error("it broke", reason=Broken()),
        lambda: structlog.get_logger("kustos.server").error("it broke", reason="\ud800", path="\udcff"),
        lambda: structlog.get_logger("kustos.server").error("it broke", values=CIRCLE),
        lambda: structlog.get_logger("kustos.server").error("it broke", values={Broken: 1, (1, 2): 2}),
        lambda: structlog.get_logger("kustos.server").error("it broke", exc_info="none"),
        lambda: structlog.get_logger("kustos.server").bind(worker=Broken()).error("it broke"),
    ],
    ids=["repr", "surrogate", "circle", "keys", "exception", "bound"],
)
def test_an_event_that_cannot_be_shown_becomes_a_line(
    log: Callable[[], None], as_json: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    configure_logs(as_json=as_json)
    try:
        log()
    finally:
        structlog.reset_defaults()
    assert log_lines.LOG_LINES.flush()
    text = capfd.readouterr().err
    assert "it broke" in text
    assert text.endswith("\n")
    if as_json:
        (line,) = text.splitlines()
        assert json.loads(line)["level"] == "error"


def test_an_event_that_is_no_text_becomes_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=True)
    try:
        structlog.get_logger("kustos.server").error(Broken())
    finally:
        structlog.reset_defaults()
    assert log_lines.LOG_LINES.flush()
    assert json.loads(capfd.readouterr().err)["event"] == "Broken"


BEGIN = """
import sys, threading, warnings, logging
import structlog
from kustos.server.log_lines import take_over_standard_error
from kustos.server.logs import configure_logs
take_over_standard_error()
configure_logs(as_json=True)
log = structlog.get_logger("kustos.server")
"""


def run(code: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run Python code as a process whose log is set up."""
    command = [sys.executable, "-c", BEGIN + code]
    options = {"stderr": subprocess.PIPE} | options
    return subprocess.run(command, timeout=60, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["sys.exit(3)", "raise SystemExit(3)"])
def test_what_was_logged_right_before_the_end_is_there(end: str) -> None:
    done = run(f"for n in range(2000): log.info('n', n=n)\n{end}")
    assert done.returncode == 3
    assert [json.loads(line)["n"] for line in done.stderr.splitlines()] == list(range(2000))


@pytest.mark.slow
def test_the_loss_is_reported_as_an_event_of_its_process() -> None:
    done = run(
        "from kustos.server.log_lines import LOG_LINES\n"
        "structlog.contextvars.bind_contextvars(worker=3)\n"
        "log.info('first')\n"
        "LOG_LINES.lost += 2\n"
        "log.info('second')"
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    notice = {"event": "lines of the log were lost", "lines": 2, "level": "warning", "worker": 3}
    (found,) = [line for line in lines if "lines" in line]
    assert notice.items() <= found.items()
    assert [line["event"] for line in lines if "lines" not in line] == ["first", "second"]


@pytest.mark.slow
def test_the_traceback_of_a_process_that_cannot_start_is_there() -> None:
    done = run("raise LookupError('the reason')")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert done.stderr.endswith(b"LookupError: the reason\n")


@pytest.mark.slow
def test_whatever_else_writes_to_standard_error_is_in_the_log() -> None:
    thread = "threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()"
    done = run(
        "warnings.warn('of a library')\n"
        "logging.getLogger('some.library').error('of a server')\n"
        "print('printed', file=sys.stderr)\n"
        f"thread = {thread}\n"
        "sys.stderr.write('no end')\n"
        "sys.stderr.flush()"
    )
    for text in (b"of a library", b"of a server", b"printed\n", b"ZeroDivisionError", b"no end"):
        assert text in done.stderr


@pytest.mark.slow
def test_a_process_ends_although_nobody_reads_its_pipe() -> None:
    reading, writing = os.pipe()
    code = "for n in range(20_000): log.info('n', n=n)\nraise LookupError"
    done = run(code, stderr=writing)
    assert done.returncode == 1
    os.close(writing)
    os.close(reading)


@pytest.mark.slow
def test_a_process_without_standard_error_writes_its_log_into_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    code = f"file = open({str(path)!r}, 'w')\nassert file.fileno() > 2\nlog.error('it broke')"
    command = ["sh", "-c", 'exec "$0" "$@" 2>&- <&-', sys.executable, "-c", BEGIN + code]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    assert path.read_bytes() == b""
