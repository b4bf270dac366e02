"""Loggers and their levels."""

import re
from collections.abc import Iterator

import pytest
import structlog

from kustos.gateway.admin.loggers import LOG_LEVELS as NAMES
from kustos.server.log_lines import LOG_LINES
from kustos.server.logs import LEVELS, LOG_LEVELS, LOGGERS, LogLevels, configure_logs
from testkit.paths import ROOT


@pytest.fixture
def levels() -> Iterator[LogLevels]:
    configure_logs(as_json=True)
    yield LOG_LEVELS
    structlog.reset_defaults()
    for name in LOGGERS:
        LOG_LEVELS.unset_level(name)


def written(capfd: pytest.CaptureFixture[str]) -> list[str]:
    assert LOG_LINES.flush()
    return re.findall(r'"event": "(\w+)"', capfd.readouterr().err)


def test_a_logger_has_the_level_of_the_one_above_it() -> None:
    made = LogLevels()
    made.set_level("kustos.metadata", "ERROR")
    assert made.level_of("kustos.metadata.log") == "ERROR"
    assert made.level_of("kustos.server") == "INFO"
    made.set_level("kustos.metadata.log", "DEBUG")
    assert made.level_of("kustos.metadata.log") == "DEBUG"
    made.unset_level("kustos.metadata.log")
    assert made.level_of("kustos.metadata.log") == "ERROR"
    made.unset_level("kustos.metadata")
    assert made.level_of("kustos.metadata.log") == "INFO"


def test_root_keeps_its_level() -> None:
    made = LogLevels()
    made.set_level("root", "WARN")
    made.unset_level("root")
    assert made.level_of("root") == "WARN"
    assert set(made.levels().values()) == {"WARN"}


def test_no_other_level_is_taken() -> None:
    with pytest.raises(KeyError):
        LogLevels().set_level("root", "LOUD")
    assert set(LEVELS) == set(NAMES)


def test_what_is_too_quiet_is_not_written(levels: LogLevels, capfd: pytest.CaptureFixture[str]) -> None:
    gateway, server = structlog.get_logger("kustos.gateway"), structlog.get_logger("kustos.server")
    levels.set_level("kustos.gateway", "ERROR")
    for log in (gateway, server):
        log.debug("one")
        log.info("two")
        log.warning("three")
        log.error("four")
    assert written(capfd) == ["four", "two", "three", "four"]
    levels.set_level("kustos.gateway", "DEBUG")
    gateway.debug("five")
    assert written(capfd) == ["five"]


def test_what_kills_is_always_written(levels: LogLevels, capfd: pytest.CaptureFixture[str]) -> None:
    levels.set_level("kustos", "FATAL")
    log = structlog.get_logger("kustos.server")
    log.error("one")
    log.critical("two")
    assert written(capfd) == ["two"]


def test_every_logger_of_the_code_is_known() -> None:
    found = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r'get_logger\("([^"]+)"\)', path.read_text())
    }
    assert found <= set(LOGGERS)
    above = {name.rpartition(".")[0] for name in found}
    assert set(LOGGERS) <= found | above
