"""The node's log tells what happened, never what a client sent."""

import io
import json

import pytest
import structlog

from kustos.server.logs import configure_logs


def fail() -> None:
    password = "hunter" + "2" * 4
    raise ValueError(len(password))


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_holds_no_values_of_variables(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=as_json)
    try:
        fail()
    except ValueError:
        structlog.get_logger().exception("it broke")
    finally:
        structlog.reset_defaults()
    text = capsys.readouterr().err
    assert "it broke" in text
    assert "ValueError" in text
    assert "hunter" + "2222" not in text


@pytest.mark.parametrize("as_json", [True, False])
def test_a_reason_cannot_begin_a_line_of_its_own(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=as_json)
    try:
        structlog.get_logger().info("closed", reason="x\n2026 [info] forged\r\x1b[31m\u2028\x85y")
    finally:
        structlog.reset_defaults()
    (line,) = capsys.readouterr().err.split("\n")[:-1]
    assert "\x1b[31m" not in line.replace("\x1b[31minfo", "")
    assert "\r" not in line
    if as_json:
        assert json.loads(line)["event"] == "closed"


class Writes(io.StringIO):
    """Notes each write, as processes that share a file take turns with each."""

    def __init__(self) -> None:
        super().__init__()
        self.each: list[str] = []

    def write(self, text: str) -> int:
        self.each.append(text)
        return len(text)


def test_a_line_is_written_at_once_as_workers_share_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Writes()
    monkeypatch.setattr("sys.stderr", file)
    configure_logs(as_json=True)
    try:
        structlog.get_logger().info("listening")
        structlog.get_logger("kustos.gateway").warning("closed")
    finally:
        structlog.reset_defaults()
    assert [json.loads(text)["event"] for text in file.each] == ["listening", "closed"]
    assert all(text.endswith("\n") for text in file.each)
