"""Java sources of ours that need Kafka's classes: compiled once for all runs until they change."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from testkit.jars import KAFKA
from testkit.processes import ChildError

COMPILE_TIMEOUT_S: Final = 120.0


def compiled(source: Path) -> Path:
    """Return the folder of a source's classes; raise `ChildError` if it does not compile.

    Processes that run side by side compile it once.
    """
    classpath = KAFKA.classpath
    digest = hashlib.sha256(source.read_bytes() + classpath.encode()).hexdigest()[:16]
    classes = KAFKA.home / "classes" / f"{source.stem}-{digest}"
    classes.parent.mkdir(exist_ok=True)
    with (classes.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not classes.exists():
            fresh = classes.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            line = ["javac", "-proc:none", "-cp", classpath, "-d", str(fresh), str(source)]
            done = subprocess.run(
                line, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
            )
            if done.returncode:
                raise ChildError(f"`{source.name}` does not compile\n{done.stdout}{done.stderr}")
            fresh.rename(classes)
    return classes
