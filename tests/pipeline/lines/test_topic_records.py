"""Records of a topic are the same lines whether Spark or Python makes them."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.lines.topic_records import PARTITION, lines_of_records, placed

VALUES = (
    b"a",
    b"a\n",
    b"a\r\n",
    b"a\r",
    b"\n",
    b"\r\n",
    b"",
    None,
    b"a\n\n",
    b"a\nb",
    b"\xff\n",
    b"\xc3",
    "é\n".encode(),
)
COLUMNS = ("file", "log", "position", "line")


def test_spark_and_python_make_the_same_lines(spark: SparkSession) -> None:
    rows = [(value, number % 3, number) for number, value in enumerate(VALUES)]
    records = spark.createDataFrame(rows, f"line binary, {PARTITION} int, position bigint")
    lines = lines_of_records(records.withColumn("line", sql.col("line").cast("string")), "audit-x")
    by_spark = lines.withColumn("line", sql.col("line").cast("binary")).orderBy("position").collect()
    batch = pa.RecordBatch.from_pydict(
        {
            "line": pa.array(VALUES, pa.binary()).view(pa.string()),
            PARTITION: pa.array([row[1] for row in rows], pa.int32()),
            "position": pa.array([row[2] for row in rows]),
        }
    )
    found = placed(batch, "audit-x")
    assert set(found.schema.names) == set(COLUMNS)
    lines_in_bytes = found["line"].view(pa.binary()).fill_null(b"").to_pylist()
    by_python = zip(*(found[name].to_pylist() for name in COLUMNS[:3]), lines_in_bytes, strict=True)
    assert list(by_python) == [
        (row["file"], row["log"], row["position"], bytes(row["line"])) for row in by_spark
    ]
    assert by_spark[4]["log"] == "topic:audit-x-1"
