"""The archive of Java's classes: written by one session, mapped by the next, and used only if it is safe."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kustos.pipeline.class_archive import ARCHIVES_MAX, MAGIC, OTHER_CLASSES, archive_options

A_SESSION = """
from pathlib import Path
from kustos.pipeline.session import open_session
with open_session(rows=1) as spark:
    gateway = spark.sparkContext._gateway
    spark.range(1).count()
    maps = Path(f"/proc/{gateway.jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    print("mapped" if "/kustos/spark-" in maps else "not mapped")
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait(300)
"""
LONGEST_SESSION_S = 300.0


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the archives of this test."""
    for name in OTHER_CLASSES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "kustos"


@pytest.fixture
def java(tmp_path: Path) -> str:
    """Return the command of a Java that has an archive of its own classes."""
    home = tmp_path / "java"
    for name in ("bin/java", "release", "lib/server/classes.jsa"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return str(home / "bin" / "java")


def written(java: str, content: bytes = MAGIC) -> Path:
    """Write what a JVM would write when it ends."""
    option = next(
        each for each in archive_options(java, writes=True).split() if "ArchiveClassesAtExit" in each
    )
    archive = Path(option.partition("=")[2])
    archive.write_bytes(content)
    archive.chmod(0o444)
    return archive


def test_the_second_session_maps_what_the_first_one_wrote(caches: Path) -> None:
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", A_SESSION],
            capture_output=True,
            text=True,
            timeout=LONGEST_SESSION_S,
            check=True,
        )
        said.append(done.stdout.split("\n"))
    assert said == [["not mapped", ""], ["mapped", ""]], "Java says nothing about it"
    assert [path.stat().st_uid for path in caches.iterdir()] == [os.geteuid()]


def test_a_written_archive_is_used(caches: Path, java: str) -> None:
    assert archive_options(java, writes=False) == ""
    archive = written(java)
    assert archive.parent == caches
    assert caches.stat().st_mode & 0o777 == 0o700
    for writes in (True, False):
        assert f"-XX:SharedArchiveFile={archive} " in archive_options(java, writes=writes)


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0 the end of a JVM was cut off"])
def test_an_incomplete_archive_is_written_again(caches: Path, java: str, content: bytes) -> None:
    archive = written(java, content)
    assert f"-XX:ArchiveClassesAtExit={archive} " in archive_options(java, writes=True)
    assert caches.exists()


def test_another_java_has_another_archive(caches: Path, java: str) -> None:
    archive = written(java)
    Path(java).parent.parent.joinpath("release").write_text("an update")
    assert str(archive) not in archive_options(java, writes=True)
    assert caches.exists()


def test_what_others_may_write_to_is_not_used(caches: Path, java: str) -> None:
    archive = written(java)
    archive.chmod(0o464)
    assert archive_options(java, writes=True) == ""
    archive.chmod(0o444)
    caches.chmod(0o707)
    assert archive_options(java, writes=True) == ""


def test_older_archives_leave_before_another_is_written(caches: Path, java: str) -> None:
    release = Path(java).parent.parent / "release"
    for number in range(ARCHIVES_MAX + 2):
        release.write_text(f"Java {number}")
        newest = written(java)
        os.utime(newest, (number, number))
    found = set(caches.iterdir())
    assert len(found) == ARCHIVES_MAX
    assert newest in found


@pytest.mark.parametrize("name", OTHER_CLASSES)
def test_no_archive_with_a_class_path_or_options_of_others(
    caches: Path, java: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "/etc/hadoop")
    assert archive_options(java, writes=True) == ""
    assert not caches.exists()


def test_no_archive_where_there_can_be_none(caches: Path, java: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(java).parent.parent.joinpath("lib/server/classes.jsa").unlink()
    assert archive_options(java, writes=True) == "", "a Java of another maker"
    caches.rmdir()
    caches.write_text("a file in the place of the folder")
    assert archive_options(java, writes=True) == ""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert archive_options(java, writes=True) == ""
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches.parent / "with space"))
    assert archive_options(java, writes=True) == ""
