"""Setting up does not fail where only an optimisation does."""

import subprocess
from pathlib import Path

import pytest

from testkit import jars
from testkit.kafka import warm
from testkit.processes import ChildError


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(warm, "archive", lambda name: tmp_path / f"{name}.jsa")
    monkeypatch.setattr(warm, "spark_archive", lambda: tmp_path / "spark.jsa")
    return tmp_path


@pytest.mark.parametrize(
    ("missing", "maker", "error"),
    [
        ("broker", "make_archives", ChildError("kafka node 1 was not ready within 60 s\nand its log")),
        ("broker", "make_archives", OSError(28, "no space left on device")),
        ("spark", "make_spark_archive", subprocess.TimeoutExpired("python", 300)),
    ],
)
def test_a_machine_too_busy_for_an_archive_is_warned_and_goes_on(
    missing: str,
    maker: str,
    error: Exception,
    archives: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = {"broker.jsa", "tools.jsa", "spark.jsa"} - {f"{missing}.jsa"}
    for name in others:
        (archives / name).write_bytes(b"whole")

    def failing() -> None:
        (archives / f"{missing}.jsa").write_bytes(b"half of it")
        raise error

    monkeypatch.setattr(warm, maker, failing)
    assert warm.main() == 0
    said = capsys.readouterr().err
    assert said.startswith("setup: warning: JVMs will start slowly, no class data archive was made: ")
    assert len(said.splitlines()) == 1
    assert {path.name for path in archives.iterdir()} == others


def test_archives_that_are_there_are_not_made_again(archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> None:
        raise AssertionError("nothing is to be made")

    monkeypatch.setattr(warm, "make_archives", never)
    monkeypatch.setattr(warm, "make_spark_archive", never)
    for name in ("broker.jsa", "tools.jsa", "spark.jsa"):
        (archives / name).write_bytes(b"whole")
    assert warm.main() == 0


def test_jars_that_cannot_be_had_end_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(_: object) -> None:
        raise jars.JarsError("the registry does not answer")

    monkeypatch.setattr(jars.JarSet, "resolve", failing)
    assert jars.main([]) == 1
    assert capsys.readouterr().err == "setup: the registry does not answer\n"
