"""A class data archive (JEP 350) of Spark: a JVM that maps it starts with half the work.

It is valid for one Java, and for one class path while its jars keep their sizes and times. All of it is in
its name, since a JVM leaves out one that does not fit, and our options keep it from saying so.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from testkit.paths import CACHE, ROOT

SILENCE: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"

MAKING_TIMEOUT_S: Final = 300
"""Time to start a Spark, run a few jobs and write some 170 MB, on a busy machine."""


def jars_folder() -> Path:
    """Return where PySpark has its jars, as the class path of its JVM names it."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def spark_archive(jars: Path | None = None) -> Path:
    """Return the path of the archive for this Java and these jars of Spark, which need not exist yet."""
    java_home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(java_home, "bin", "java")) if java_home else "java") or ""
    release = Path(java).resolve().parent.parent / "release"
    told = release.read_text() if release.is_file() else java
    jars = jars or jars_folder()
    found = [(each.name, each.stat()) for each in sorted(jars.glob("*.jar"))]
    states = [f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in found]
    key = hashlib.sha256("\n".join([told, str(jars), *states]).encode()).hexdigest()[:12]
    return CACHE / f"spark-{version('pyspark')}-{key}.jsa"


def archive_option() -> str:
    """Return the options that make a JVM map the archive, empty if there is none.

    A JVM with another class path would say on its standard output, which is ours, that it does not.
    """
    archive = spark_archive()
    return f"-XX:SharedArchiveFile={archive} {SILENCE}" if archive.exists() else ""


def make_spark_archive() -> None:
    """Run a Spark once, in a process of its own, that writes the archive at its end; remove older ones.

    Raises `subprocess.SubprocessError` or OSError; then there is no archive.
    """
    archive = spark_archive()
    archive.parent.mkdir(exist_ok=True)
    for older in archive.parent.glob("spark-*.jsa"):
        older.unlink()
    beside = archive.with_suffix(f".{os.getpid()}")
    try:
        command = [sys.executable, "-m", "testkit.spark_archive", str(beside)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=MAKING_TIMEOUT_S)
        beside.rename(archive)
    finally:
        beside.unlink(missing_ok=True)


def main(archive: str) -> None:
    """Run typical jobs in a Spark that writes its archive here, and wait until it has."""
    from kustos.pipeline.session import open_session
    from testkit.spark_quick import JAVA_OPTIONS, TINY

    options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={archive}"
    with open_session("archive", settings={**TINY, "spark.driver.extraJavaOptions": options}) as spark:
        folder = f"{archive}.rows"
        gateway: Any = spark.sparkContext._gateway
        rows = spark.range(100).selectExpr("id", "cast(id as string) name", "id % 7 part")
        rows.write.partitionBy("part").parquet(folder)
        read = spark.read.schema(rows.schema).parquet(folder)
        read.mapInArrow(lambda batches: batches, rows.schema).groupBy("part").count().collect()
        read.join(rows, "id", "left_anti").orderBy("name").collect()
        shutil.rmtree(folder)
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(MAKING_TIMEOUT_S)


if __name__ == "__main__":
    main(sys.argv[1])
