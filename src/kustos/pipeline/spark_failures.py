"""Failures of Spark and of what it stands on, as messages that name the cause and what to do.

Spark reports a full disk, a missing cluster or a Java that is too old by traces of its JVM and its workers.
"""

import errno
import re
import subprocess
from typing import Final

from kustos.pipeline.errors import SparkFailedError

JAVA_MIN: Final = 17
"""The oldest Java that Spark 4 starts on."""

LONGEST_DETAIL: Final = 200
"""Characters of a quoted message: its first line, not the trace of a JVM."""

JAVA_ANSWER_S: Final = 20.0
"""For `java -version`, which takes a tenth of a second."""

_GATEWAY_EXITED: Final = "JAVA_GATEWAY_EXITED"

_NO_SPACE: Final = (
    "no space left on a disk that Spark writes to, the folder of the tables or `spark.local.dir` (`/tmp` by "
    "default): free some and run again, committed rows are intact"
)

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

KNOWN: Final = (
    (r"No space left on device|\[errno 28\]|Disk quota exceeded", _NO_SPACE),
    (
        r"INVALID_DRIVER_MEMORY\]\s*(?P<detail>[^\n]*)",
        "`spark.driver.memory` is too small for Spark (`{detail}`), raise it under `spark.settings`",
    ),
    (
        r"OutOfMemoryError|Container killed .*memory limits|MEMORY_LIMIT",
        "Spark ran out of memory: raise `spark.driver.memory` or `spark.executor.memory` under "
        "`spark.settings`, or take in fewer files at a time",
    ),
    (
        r"file '(?P<quoted>[^'\n]+)'\. Detail: \[errno 13\]",
        "cannot use `{quoted}`: permission denied, check its permissions",
    ),
    (
        r"(?P<bare>/[^\n]*?) \(Permission denied\)",
        "cannot use `{bare}`: permission denied, check its permissions",
    ),
    (
        r"Call From \S+ to (?P<address>\S+) failed on (?:connection|socket timeout) exception",
        "the file system at `{address}` does not answer: start it, or correct the address in `fs.defaultFS` "
        "(`HADOOP_CONF_DIR`) or in the settings of Spark that name it",
    ),
    (
        r"UnknownHostException: (?P<address>\S+)",
        "no address is known for the host `{address}`: correct it in `fs.defaultFS` "
        "(`HADOOP_CONF_DIR`) or in the settings of Spark",
    ),
    (
        r"stopped SparkContext|All masters are unresponsive|Could not parse Master URL: '(?P<url>[^'\n]*)'",
        "Spark's cluster does not answer or took the application away: check `spark.master` and that the "
        "cluster runs",
    ),
    (
        r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'",
        "Spark's workers have no Python package `{module}`: install `kustos[spark]` on all of them, in the "
        "version that runs here",
    ),
    (
        r"ClassNotFoundException: (?P<name>[\w.$]+)|DATA_SOURCE_NOT_FOUND\][^:\n]*: (?P<source>\S+)",
        "Spark has no class `{name}{source}`: put the jar that holds it into the folder that `spark.jars` "
        "names",
    ),
)
"""What the JVM says, and workers that cannot start; the errors of tasks have types (`task_errors`).

The first match counts: causes come before their consequences."""


def disk_failure(error: OSError) -> SparkFailedError | None:
    """Return the typed error for a disk that is full, or a file without permission; None for others."""
    if error.errno in _FULL:
        return SparkFailedError(_NO_SPACE)
    if isinstance(error, PermissionError) and error.filename:
        return SparkFailedError(f"cannot use `{error.filename}`: permission denied, check its permissions")
    return None


def spark_failure(error: BaseException) -> SparkFailedError | None:
    """Return the typed error for an exception of Spark, or for a full disk; None for one of another kind."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return SparkFailedError(_NO_SPACE)
    if not is_of_spark(error):
        return None
    text = whole_text(error)
    for pattern, sentence in KNOWN:
        found = re.search(pattern, text)
        if found is not None:
            details = {name: (value or "")[:LONGEST_DETAIL] for name, value in found.groupdict().items()}
            return SparkFailedError(sentence.format(**details))
    return None


def is_of_spark(error: BaseException) -> bool:
    """Return whether Spark, or the connection to its JVM, raised it."""
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def start_failure(error: BaseException, java: str, output: str) -> SparkFailedError | None:
    """Return the typed error for a Spark that did not start.

    `java` is the program that should have run it, and `output` the last that it said on standard error.
    """
    if _GATEWAY_EXITED not in str(error):
        return spark_failure(error)
    version = java_version(java)
    if version is not None and version < JAVA_MIN:
        return SparkFailedError(
            f"`{java}` is Java {version}, and Spark needs {JAVA_MIN} or later: install one, and set "
            f"JAVA_HOME if several are there"
        )
    said = next((line for line in output.splitlines() if line.startswith(("Error", "Exception"))), "")
    reason = f"with `{said[:LONGEST_DETAIL]}`" if said else "before it answered"
    return SparkFailedError(
        f"Spark's JVM (`{java}`) ended {reason}, check the memory and Java options under `spark.settings`"
    )


def java_version(java: str) -> int | None:
    """Return the major version that a Java says it has; None if it says none."""
    try:
        answer = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found is not None else None


def whole_text(error: BaseException) -> str:
    """Return the texts of an error and its causes, the JVM's too; never shown unchanged."""
    texts = []
    seen: BaseException | None = error
    while seen is not None:
        texts.append(str(seen))
        java = getattr(seen, "java_exception", None) or getattr(seen, "_origin", None)
        if java is not None:
            texts.append(str(java))
        texts.append(str(getattr(seen, "_stackTrace", "") or getattr(seen, "stackTrace", "") or ""))
        seen = seen.__cause__
    return "\n".join(texts)
