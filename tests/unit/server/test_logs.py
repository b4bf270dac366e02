"""The node's log has events but no bytes of clients."""

import json

import pytest
import structlog

from kustos.server.log_lines import LOG_LINES
from kustos.server.logs import configure_logs


def fail() -> None:
    password = "hunter" + "2" * 4
    raise ValueError(len(password))


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_holds_no_values_of_variables(as_json: bool, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=as_json)
    try:
        fail()
    except ValueError:
        structlog.get_logger().exception("it broke")
    finally:
        structlog.reset_defaults()
    assert LOG_LINES.flush()
    text = capfd.readouterr().err
    assert "it broke" in text
    assert "ValueError" in text
    assert "hunter" + "2222" not in text


@pytest.mark.parametrize("as_json", [True, False])
def test_a_reason_cannot_begin_a_line_of_its_own(as_json: bool, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=as_json)
    try:
        structlog.get_logger().info("closed", reason="x\n2026 [info] forged\r\x1b[31m\u2028\x85y")
    finally:
        structlog.reset_defaults()
    assert LOG_LINES.flush()
    (line,) = capfd.readouterr().err.split("\n")[:-1]
    assert "\x1b[31m" not in line.replace("\x1b[31minfo", "")
    assert "\r" not in line
    if as_json:
        assert json.loads(line)["event"] == "closed"


def test_a_line_is_written_at_once_as_workers_share_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    each: list[bytes] = []

    def write(_: int, data: memoryview) -> int:
        each.append(bytes(data))
        return len(data)

    configure_logs(as_json=True)
    assert LOG_LINES.flush()
    monkeypatch.setattr("os.write", write)
    try:
        structlog.get_logger().info("listening")
        structlog.get_logger("kustos.gateway").warning("closed")
        assert LOG_LINES.flush()
    finally:
        structlog.reset_defaults()
    assert [json.loads(text)["event"] for text in each] == ["listening", "closed"]
    assert all(text.endswith(b"\n") for text in each)
