"""An archive of the Java classes of Spark (JEP 350): a JVM that maps it loads them in a fraction of the time.

Theory of operation. Spark loads some twenty thousand classes until its first answer: a JVM reads them from
jars, verifies and links them, which is a quarter of the work of a command over a small table. Java can keep
them in a file in the form that they have in memory. The first local session over small tables tells its JVM
to write this file when it ends, which is after the command has ended; JVMs of later local sessions map it. A
session that only takes in lines would write too few of the classes that queries need.

An archive is valid for one Java and for one class path whose jars keep their sizes and times. The JVM checks
that itself and does without an archive that does not fit, so a wrong one costs time and nothing else. All
of it is in the name of the file, so an update of Java or of Spark leads to another file. The JVM writes the
header last: a file without one is incomplete, and the next session has it written again.

The file holds code that runs with the rights of its reader. So it is used only if it and its folder belong to
the user, and no other user may write to them.
"""

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import Final

OPTIONS: Final = "spark.driver.extraJavaOptions"
"""The setting that takes options of Java; a user's own value leaves the archive out."""

ARCHIVES_MAX: Final = 2
"""Kept in the folder, 180 MB each: one of the Spark in use, and one of an environment beside it."""

FREE_BYTES_MIN: Final = 2**30
"""On the disk, for an archive to be written."""

MAGIC: Final = b"\xa8\xab\x0b\xf0"
"""The first bytes of a complete archive, as a number of this machine 0xF00BABA8."""

QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""A JVM reports on its standard output, which is the command's, that it leaves out an archive."""

OTHER_CLASSES: Final = (
    "HADOOP_CONF_DIR",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_HOME",
    "SPARK_SUBMIT_OPTS",
    "YARN_CONF_DIR",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
)
"""Variables of the environment that put folders on the class path, which an archive must not have, or set
options of Java beside ours."""


def archive_options(java: str, *, writes: bool) -> str:
    """Return the options of a JVM that maps the archive; those that write it if `writes` and it is missing.

    Empty if there is to be none. `java` is the path of the command that Spark starts.
    """
    if any(os.environ.get(name) for name in OTHER_CLASSES):
        return ""
    try:
        archive = _folder() / f"spark-{_key(java)}.jsa"
        if not _is_private(archive.parent):
            return ""
        if archive.exists():
            with archive.open("rb") as file:
                is_complete = file.read(len(MAGIC)) == MAGIC
            if is_complete:
                # verified: after a crash of the machine parts may be missing
                use = f"-XX:SharedArchiveFile={archive} -XX:+VerifySharedSpaces {QUIET}"
                return use if _is_private(archive) else ""
        if not writes or shutil.disk_usage(archive.parent).free < FREE_BYTES_MIN:
            return ""
        _remove_oldest(archive.parent)
    except (OSError, RuntimeError):
        return ""  # no home, no Spark of a package, or a disk that is read-only
    return f"-XX:ArchiveClassesAtExit={archive} {QUIET}"


def _folder() -> Path:
    """Return the folder of archives in the user's caches, as it is or made; raise OSError, RuntimeError."""
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(caches, "kustos")
    if any(each.isspace() for each in str(folder)):
        raise OSError("options of Java are separated by spaces")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _is_private(path: Path) -> bool:
    """Return whether a file belongs to the user, and only the user may write to it."""
    state = path.stat()
    return state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _key(java: str) -> str:
    """Return the name of this Java and these jars; raise OSError for a Java without an archive of its own."""
    import pyspark

    home = Path(java).resolve().parent.parent
    (home / "lib" / "server" / "classes.jsa").stat()  # other machines than HotSpot have no archives
    release = (home / "release").read_text(encoding="utf-8")
    package = Path(pyspark.__file__).parent
    if (package / "conf").exists():
        raise OSError("a folder of settings is on the class path")
    jars = package / "jars"
    states = [(jar.name, jar.stat()) for jar in sorted(jars.glob("*.jar"))]
    told = [f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in states]
    return hashlib.sha256("\n".join([str(home), release, str(jars), *told]).encode()).hexdigest()[:16]


def _remove_oldest(folder: Path) -> None:
    """Remove archives before one more is written, all but the newest ones."""
    found = sorted(folder.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime_ns)
    for path in found[: max(0, len(found) + 1 - ARCHIVES_MAX)]:
        path.unlink(missing_ok=True)
