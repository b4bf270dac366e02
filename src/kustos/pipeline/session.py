"""A Spark session: local and on the loopback address only, of a cluster, or of a Connect server."""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kustos.extras import EXTRAS, needs_extra
from kustos.pipeline.class_archive import OPTIONS, archive_options
from kustos.pipeline.errors import SparkFailedError, SparkMissingError
from kustos.pipeline.jvm_output import JVM_OUTPUT
from kustos.pipeline.spark_failures import JAVA_MIN, is_of_spark, spark_failure, start_failure
from kustos.pipeline.task_errors import map_in_arrow, task_failure
from kustos.runtime import reason_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SHUFFLE_PARTITIONS: Final = 8
"""For one machine: enough for its cores, few enough that small inputs don't pay for empty tasks."""

CONNECT_S: Final = 10.0
"""For the connection to a Connect server: PySpark by itself tries for many minutes without a word."""

CONNECT_PORT: Final = 15002
"""Of a Connect server whose address names none."""

SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the program that it starts."""

NO_SETTINGS: Final[Mapping[str, str]] = {}

LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""For one machine: no other host may reach the driver."""

SMALL_ROWS: Final = 400_000
"""Rows of events, logins and the roll-up together, up to which a local session is for small tables.

Measured on two cores over 190,000 events: 33 s by the clock instead of 48.
"""

LAUNCHER: Final = "SPARK_LAUNCHER_OPTS"
"""Names the options of the JVM that only prints the command line of the one that is Spark."""

SMALL_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The second compiler and the collectors with several threads cost more than they gain in half a minute."""

SMALL_SHUFFLE_PARTITIONS: Final = 2
"""Tasks of a stage: each takes longer to start than its rows to compute."""

SMALL_SETTINGS: Final = {
    # over small tables generating and compiling code is most of the work
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # a plan that adapts runs each of its stages as a job, and is planned again after each
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(SMALL_SHUFFLE_PARTITIONS),
    OPTIONS: SMALL_JAVA_OPTIONS,
    # otherwise Spark writes pages of text about each plan for its web interface
    "spark.sql.ui.explainMode": "simple",
}
"""Of a local session over at most `SMALL_ROWS` rows."""

SETTINGS: Final = {
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Java compiles no method longer than this; where fused code would be longer, Spark is to keep it apart
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # eight bytes that Parquet knows as a time, where Spark by itself writes the twelve of an old Impala
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.ignoreCorruptFiles": "false",  # a damaged file must stop the run
    "spark.sql.files.ignoreMissingFiles": "false",
    # tables name their files: a job with a task for each of them costs more than a look at each
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # else every Column calls the JVM five times
    # what a worker of Python holds at a time: lines may be long, and ten thousand of them are a batch
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",  # SPARK-58241: hangs
}


def check_spark_installed(*, needs_java: bool = True) -> None:
    """Raise `ExtraMissingError` if PySpark is missing, `SparkMissingError` if Java is and is needed.

    Clients of Spark Connect need no Java.
    """
    with needs_extra("spark", "the pipeline"):
        import pyspark  # noqa: F401
    if not needs_java:
        return
    _java()


def _java() -> str:
    """Return the Java that Spark starts; raise `SparkMissingError` if there is none."""
    java_home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(java_home, "bin", "java")) if java_home else "java")
    if java is None:
        where = f"in JAVA_HOME `{java_home}`" if java_home else "on the PATH"
        raise SparkMissingError(
            f"no java {where}, install a Java runtime {JAVA_MIN} or later (or set JAVA_HOME)"
        )
    return java


@contextmanager
def _readable_start() -> Iterator[None]:
    """Raise `SparkFailedError` for a Spark that does not start; keep what its JVM says on standard error."""
    try:
        with JVM_OUTPUT.of_starting_jvm():
            yield
    except Exception as error:
        failure = start_failure(error, _java(), JVM_OUTPUT.last_words(has_ended=True))
        if failure is None:
            raise
        raise failure from error


@contextmanager
def _readable_failures() -> Iterator[None]:
    """Raise the errors of tasks, and `SparkFailedError` for known failures of Spark and of disks.

    What the JVM said last is shown for the others of Spark.
    """
    try:
        yield
    except Exception as error:
        failure = task_failure(error) or spark_failure(error)
        if failure is None:
            if is_of_spark(error):
                sys.stderr.write(JVM_OUTPUT.last_words())
            raise
        raise failure from error


def is_connect(spark: "SparkSession") -> bool:
    """Return whether a session speaks to its Spark over Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


@contextmanager
def open_session(
    application_name: str = "kustos",
    *,
    master: str = "local[*]",
    remote: str | None = None,
    settings: Mapping[str, str] = NO_SETTINGS,
    rows: int | None = None,
) -> Iterator["SparkSession"]:
    """Yield a session and stop it at the end; raise `SparkMissingError` or `ExtraMissingError`.

    Raises `SparkFailedError` if Spark does not start, also for known failures of the work done with it.

    `rows`: about how many rows Spark itself computes with, None if that is unknown; a local session over few
    starts and plans faster.

    `remote` (`sc://host:port`) uses a Spark Connect server. Under spark-submit the cluster is that of
    spark-submit, and `master` is ignored. `settings` override ours. A session that is already running is
    used as it is, but for the time zone, and left running.
    """
    check_spark_installed(needs_java=remote is None)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.conf.set("spark.sql.session.timeZone", SETTINGS["spark.sql.session.timeZone"])
        with _readable_failures():
            yield running
        return
    if remote is not None:
        spark = _connected(remote, settings)
    else:
        is_submitted = SUBMITTED in os.environ
        local = master.startswith("local") and not is_submitted
        if local:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            # workers have the packages that the driver has
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault(LAUNCHER, SMALL_JAVA_OPTIONS)
        builder = SparkSession.builder.appName(application_name)
        if not is_submitted:
            builder = builder.master(master)
        chosen = all_settings(settings, rows, is_local=local)
        if local and OPTIONS not in settings and (archive := archive_options(_java(), writes=is_small(rows))):
            chosen[OPTIONS] = f"{chosen.get(OPTIONS, '')} {archive}".lstrip()
        for key, value in chosen.items():
            builder = builder.config(key, value)
        with _readable_start():
            spark = builder.getOrCreate()
        _set_log_level(spark)
    try:
        with _readable_failures():
            yield spark
    finally:
        spark.stop()


def all_settings(settings: Mapping[str, str], rows: int | None, *, is_local: bool) -> dict[str, str]:
    """Return our settings for a session over so many rows, and those of the user in place of ours."""
    return {
        **SETTINGS,
        **(LOCAL_SETTINGS if is_local else {}),
        **(SMALL_SETTINGS if is_local and is_small(rows) else {}),
        **settings,
    }


def is_small(rows: int | None) -> bool:
    """Return whether a session over so many rows is one for small tables."""
    return rows is not None and rows <= SMALL_ROWS


def _set_log_level(spark: "SparkSession") -> None:
    """Let the driver of a cluster log warnings; keep the console of a local session clean.

    There the only reader is a person who gets failures as typed errors, and the traces that Spark logs of a
    failed task would bury them.
    """
    if str(spark.sparkContext.master).startswith("local"):
        spark.sparkContext.setLogLevel("OFF")
        return
    spark.sparkContext.setLogLevel("WARN")
    JVM_OUTPUT.pass_on()


@contextmanager
def local_session(application_name: str = "kustos") -> Iterator["SparkSession"]:
    """Yield a local session over all cores, as `open_session` does."""
    with open_session(application_name) as spark:
        yield spark


def _connected(remote: str, settings: Mapping[str, str]) -> "SparkSession":
    """Return a session of a Connect server; a client may change only the server's SQL settings."""
    from pyspark.sql import SparkSession

    with needs_extra("connect", "Spark Connect"):
        for module in EXTRAS["connect"]:
            import_module(module)  # PySpark's own error names no module
    _check_answers(remote)
    spark = SparkSession.builder.remote(remote).create()
    for key, value in {**SETTINGS, **settings}.items():
        if key.startswith("spark.sql."):
            spark.conf.set(key, value)
    return spark


def _check_answers(remote: str) -> None:
    """Raise `SparkFailedError` unless the server of an address accepts connections."""
    server = urlsplit(remote)
    host, port = server.hostname or "localhost", server.port or CONNECT_PORT
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        raise SparkFailedError(
            f"the Spark Connect server at `{host}:{port}` does not answer ({reason_of(error)}), check "
            f"`spark.remote` and that the server runs"
        ) from error


def frame_of_rows(
    spark: "SparkSession", rows: "Sequence[tuple[Any, ...]]", schema: "StructType"
) -> "DataFrame":
    """Return rows of the driver, tuples in the order of `schema`; times have a zone.

    They go to Spark as Arrow. Of PySpark's own lists Spark does not know the size, so it sorts and shuffles
    both sides of each join with them, and it starts Python workers to read them.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC")
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(arrow)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=arrow), schema)


def numbered_tasks(
    spark: "SparkSession",
    count: int,
    work: "Callable[[int], Iterable[pa.RecordBatch]]",
    schema: "StructType | str",
) -> "DataFrame":
    """Return the rows of `count` tasks; each calls `work` once, with its number from 0 up.

    `task_errors` says how an error of `work` reaches the driver.
    """
    if not count:
        return spark.createDataFrame([], schema)

    def run(numbers: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in numbers:
            for number in batch["id"].to_pylist():
                yield from work(number)

    return map_in_arrow(spark.range(0, count, 1, count), run, schema)
