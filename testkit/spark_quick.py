"""How Spark is started in tests: it lives for seconds over tiny tables, so that starting is what costs."""

from typing import Final

JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""What the second compiler and parallel collectors do costs more than it brings."""

TINY: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # compiling costs more than tiny frames do
}

SETTINGS: Final = {**TINY, "spark.driver.extraJavaOptions": JAVA_OPTIONS}
"""For a session that starts a Spark of its own."""


def quick_environment() -> dict[str, str]:
    """Return what makes every JVM of a child quick, also of programs that configure Spark themselves."""
    return {"JDK_JAVA_OPTIONS": _options()}


def quick_driver_environment() -> dict[str, str]:
    """Return what makes the Spark of a child quick and no other JVM, without a word of Java about it."""
    return {"SPARK_SUBMIT_OPTS": _options()}


def _options() -> str:
    return " ".join([JAVA_OPTIONS, *(f"-D{key}={value}" for key, value in TINY.items())])
