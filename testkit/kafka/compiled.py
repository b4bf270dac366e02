"""Java programs of ours that use Kafka's classes: compiled once for all runs until they change.

`java Program.java` would compile one at every start, which takes longer than what most of them do.
"""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from testkit.jars import KAFKA, JarSet
from testkit.kafka.java import JDK_TOOL_FLAGS, command
from testkit.processes import ChildError

COMPILE_TIMEOUT_S: Final = 120.0


def compiled(source: Path, jars: Sequence[JarSet] = (KAFKA,)) -> Path:
    """Return the folder of a source's classes; raise `ChildError` if it does not compile.

    Processes that run side by side compile it once.
    """
    classpath = ":".join(each.classpath for each in jars)
    digest = hashlib.sha256(source.read_bytes() + classpath.encode()).hexdigest()[:16]
    classes = jars[0].home / "classes" / f"{source.stem}-{digest}"
    classes.parent.mkdir(exist_ok=True)
    with (classes.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not classes.exists():
            fresh = classes.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            line = ["javac", *JDK_TOOL_FLAGS, "-proc:none", "-cp", classpath, "-d", str(fresh), str(source)]
            done = subprocess.run(
                line, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
            )
            if done.returncode:
                raise ChildError(f"`{source.name}` does not compile\n{done.stdout}{done.stderr}")
            fresh.rename(classes)
    return classes


def java_program(
    source: Path,
    *arguments: str,
    heap: str = "512m",
    options: Sequence[str] = (),
    more_jars: Sequence[JarSet] = (),
    peak: bool = False,
) -> list[str]:
    """Return the command line of a program of ours, compiled the first time; raise `ChildError`.

    It has Kafka's jars, then `more_jars`; `options` are for its JVM, `peak` is that of `command`.
    """
    jars = [jar for each in more_jars for jar in sorted(each.resolve().glob("*.jar"))]
    classes = compiled(source, (KAFKA, *more_jars))
    return command(
        source.stem,
        *arguments,
        heap=heap,
        archive_name="tools",
        peak=peak,
        jars=[*jars, classes],
        options=options,
    )
