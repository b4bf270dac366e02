"""Settings of Spark in tests: it lives for seconds over tiny tables, so its start is the main cost."""

from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.session import SHUFFLE_PARTITIONS
from testkit.spark_archive import archive_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""The second compiler and parallel collectors cost more than they gain."""

TINY: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # compiling costs more than tiny frames do
}

PLANNED_ONCE: Final = {
    "spark.sql.adaptive.enabled": "false",  # planning again after each stage costs more than it saves
    "spark.sql.shuffle.partitions": "1",  # adaptive execution would join tiny ones into one, too
}
"""For the session of most tests. Some files have those of users, by `USERS_PLANS`."""

USERS_PLANS: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""How Spark plans and computes for users, where a test wants that of a session of `PLANNED_ONCE` and
`INTERPRETED`."""

SMALL_BUFFERS: Final = {
    "spark.broadcast.blockSize": "64k",  # each stage is a broadcast, and takes a whole block
    "spark.buffer.pageSize": "256k",  # each sort and each aggregation takes a page
    "spark.buffer.size": "4096",  # each column of each Parquet file takes one to be unpacked
}
"""Spark takes buffers as for large tables and fills them with zeros, a fifth of all memory in tests."""

FORGETFUL: Final = {"spark.sql.ui.retainedExecutions": "20"}
"""A thousand plans, kept for a page that nobody opens, fill half of the heap."""

INTERPRETED: Final = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # compiling each projection costs more, too
    "spark.sql.ui.explainMode": "simple",  # else a text of several pages is made of each plan, for nobody
}
"""For a session of many small jobs, which interprets expressions. Commands, and a file of nearly each folder
by `USERS_PLANS`, test generated code."""

SETTINGS: Final = {
    **TINY,
    **SMALL_BUFFERS,
    **FORGETFUL,
    "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {archive_option()}",
}
"""For a session that starts its own Spark."""

LAUNCHER: Final = {"SPARK_LAUNCHER_OPTS": JAVA_OPTIONS}
"""For the JVM that makes the command line of the one that is Spark."""


JAVA_NAMES: Final = ("functions", "PythonUtils", "PythonSQLUtils", "org.apache.spark.sql.functions")


def remember_java_names(spark: "SparkSession") -> None:
    """Let PySpark find the classes of Java that each column needs, which it else asks the JVM for each time.

    It does not know their packages, and Java searches all jars for each guess: 3 % of its time.
    """
    jvm: Any = spark.sparkContext._jvm
    for name in JAVA_NAMES:
        setattr(jvm, name, getattr(jvm, name))


def quick_environment() -> dict[str, str]:
    """Return the environment that makes every JVM of a child quick, even if its program configures Spark."""
    return {"JDK_JAVA_OPTIONS": _options(), **LAUNCHER}


def quick_driver_environment() -> dict[str, str]:
    """Return the environment that makes only the Spark of a child quick, without Java printing a notice."""
    return {"SPARK_SUBMIT_OPTS": _options(), **LAUNCHER}


def _options() -> str:
    return " ".join([JAVA_OPTIONS, archive_option(), *(f"-D{key}={value}" for key, value in TINY.items())])
