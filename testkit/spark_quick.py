"""Settings of Spark in tests: it lives for seconds over tiny tables, so its start is the main cost."""

from typing import Final

from testkit.spark_archive import archive_option

JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""The second compiler and parallel collectors cost more than they gain."""

TINY: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # compiling costs more than tiny frames do
}

INTERPRETED: Final = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # compiling each projection costs more, too
    "spark.sql.ui.explainMode": "simple",  # else a text of several pages is made of each plan, for nobody
}
"""For a session of many small jobs, which interprets expressions. Over Connect generated code is tested."""

SETTINGS: Final = {**TINY, "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {archive_option()}"}
"""For a session that starts its own Spark."""

LAUNCHER: Final = {"SPARK_LAUNCHER_OPTS": JAVA_OPTIONS}
"""For the JVM that makes the command line of the one that is Spark."""


def quick_environment() -> dict[str, str]:
    """Return the environment that makes every JVM of a child quick, even if its program configures Spark."""
    return {"JDK_JAVA_OPTIONS": _options(), **LAUNCHER}


def quick_driver_environment() -> dict[str, str]:
    """Return the environment that makes only the Spark of a child quick, without Java printing a notice."""
    return {"SPARK_SUBMIT_OPTS": _options(), **LAUNCHER}


def _options() -> str:
    return " ".join([JAVA_OPTIONS, archive_option(), *(f"-D{key}={value}" for key, value in TINY.items())])
