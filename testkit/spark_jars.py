"""Jars that Spark needs besides its own to be what kustos is compared with: Kafka's connector and Delta Lake.

`spark.jars.packages` would query Maven Central at every start; these are downloaded and checked once.
"""

from typing import Final

from testkit.jars import JarSet

SPARK_KAFKA: Final = JarSet(name="spark-kafka-4.2.0")
"""`spark.readStream.format("kafka")`, beside which a benchmark measures ours."""

SPARK_DELTA: Final = JarSet(name="spark-delta-4.4.0")
"""`format("delta")`, by which Spark reads tables as others see them; kustos needs none of it."""


def spark_jars(*sets: JarSet) -> str:
    """Return the value of the setting `spark.jars`; download the jars first if they are missing."""
    return ",".join(str(jar) for jar_set in sets for jar in sorted(jar_set.resolve().glob("*.jar")))
