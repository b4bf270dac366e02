"""Command lines for JVMs: flags for a small machine, logging, class data archives."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from testkit.jars import KAFKA, JarSet
from testkit.paths import ROOT
from testkit.processes import ChildError

LOGGING = ROOT / "testkit" / "kafka" / "log4j2.properties"

FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:disable")
"""Start fast and stay small; peak speed after minutes is worth nothing to a test."""

JDK_TOOL_FLAGS = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1")
"""The same for `javac` and `keytool`."""


def archive(name: str) -> Path:
    """Return the class data archive of the broker or of the tools; `testkit.kafka.warm` creates them."""
    return KAFKA.home / f"{name}.jsa"


def java() -> str:
    """Return the path of `java`, or raise `ChildError` with what to do."""
    found = shutil.which("java")
    if found is None:
        raise ChildError("`java` is not installed; run `make setup`")
    return found


def command(
    main: str,
    *arguments: str,
    heap: str = "512m",
    archive_name: str | None = None,
    logs: Path | None = None,
    archiving: bool = False,
    peak: bool = False,
    jars: Sequence[Path] = (),
    options: Sequence[str] = (),
    kafka: JarSet = KAFKA,
) -> list[str]:
    """Return the command line that runs the class `main` on Kafka's classpath.

    `archive_name` uses that class data archive if it exists, `archiving` writes it instead at a clean
    exit; `logs` is the folder of the log files, separate from standard output; `peak` leaves the optimizing
    compiler on, for benchmarks; `jars` come after Kafka's; `options` are more flags, which win over ours;
    `kafka` has Kafka's jars.
    """
    flags = [flag for flag in FLAGS if not (peak and "Tiered" in flag)]
    if archive_name is not None:
        if archiving:
            flags.append(f"-XX:ArchiveClassesAtExit={archive(archive_name)}")
        elif archive(archive_name).exists():
            flags.append(f"-XX:SharedArchiveFile={archive(archive_name)}")
    if logs is not None:
        flags.append(f"-Dkafka.logs.dir={logs}")
    logging = f"-Dlog4j2.configurationFile={LOGGING}" if logs is not None else "-Dlog4j2.level=ERROR"
    classpath = ":".join((kafka.classpath, *map(str, jars)))
    return [java(), f"-Xmx{heap}", *flags, logging, *options, "-cp", classpath, main, *arguments]
