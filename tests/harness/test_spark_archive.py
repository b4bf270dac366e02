"""An archive of Spark's classes is made anew when Java would no longer take it."""

import os
import subprocess
from pathlib import Path

import pytest

from testkit import spark_archive


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("spark-core.jar", "scala.jar"):
        (folder / name).write_bytes(name.encode())
    return folder


def test_its_name_tells_jars_that_were_installed_anew(jars: Path, tmp_path: Path) -> None:
    """A JVM compares the time and the size of each jar with those that the archive was made of."""
    before = spark_archive.spark_archive(jars)
    assert spark_archive.spark_archive(jars) == before
    jar = jars / "scala.jar"
    state = jar.stat()
    os.utime(jar, ns=(state.st_atime_ns, state.st_mtime_ns + 1_000_000_000))
    later = spark_archive.spark_archive(jars)
    jar.write_bytes(b"longer than before")
    os.utime(jar, ns=(state.st_atime_ns, state.st_mtime_ns))
    longer = spark_archive.spark_archive(jars)
    elsewhere = spark_archive.spark_archive(jars.rename(tmp_path / "others"))
    assert len({before, later, longer, elsewhere}) == 4


def test_one_that_is_made_takes_the_place_of_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, older, other = (tmp_path / f"{name}.jsa" for name in ("spark-1-new", "spark-1-old", "broker"))
    for path in (older, other):
        path.write_bytes(b"classes")

    def run(command: list[str], **_: object) -> None:
        Path(command[-1]).write_bytes(b"classes")

    monkeypatch.setattr(spark_archive, "spark_archive", lambda: made)
    monkeypatch.setattr(subprocess, "run", run)
    spark_archive.make_spark_archive()
    assert sorted(tmp_path.iterdir()) == [other, made]
