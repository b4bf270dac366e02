"""Networks, prefixes and hours, by expected tables and beside plain Python."""

import random
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies import activity, times
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA
from tests.pipeline.anomalies.rows import START
from tests.pipeline.plain_anomalies import prefixes

HOSTS = {
    "10.1.2.3": ("10.1.2", "10.1"),
    "fd00:1:2:3:4:5:6:7": ("fd00:1:2:3", "fd00:1:2"),
    "fd00:0:0:1:0:0:0:9%eth0": ("fd00:0:0:1", "fd00:0:0"),
    "broker-1": ("broker-1", "broker-1"),
    "": ("", ""),
    "' or 1=1 --": ("' or 1=1 --", "' or 1=1 --"),
}


def test_an_address_is_in_its_network(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(host,) for host in HOSTS], "host string")
    rows = frame.select(
        "host",
        activity.network(sql.col("host")).alias("near"),
        activity.network(sql.col("host"), is_wide=True).alias("wide"),
    ).collect()
    assert {row["host"]: (row["near"], row["wide"]) for row in rows} == HOSTS


def test_prefixes_and_hours_equal_those_of_plain_python(spark: SparkSession) -> None:
    drawn = random.Random(7)
    names = ["", "a", ".", "..", "a.b", "a-b_c/d:e.f.g", "payments"]
    names += ["".join(drawn.choice("ab.-_") for _ in range(drawn.randint(0, 12))) for _ in range(60)]
    masks = [0, 1, (1 << 24) - 1, 1 << 23, *(drawn.randrange(1 << 24) for _ in range(60))]
    cases = [(name, masks[place % len(masks)]) for place, name in enumerate(names)]
    mask = sql.col("mask")
    rows = (
        spark.createDataFrame(cases, "name string, mask long")
        .select(
            "*",
            activity.prefixes(sql.col("name")).alias("prefixes"),
            activity.hours_in(mask).alias("hours"),
            activity.hours_in(times.widened(mask, 2)).alias("near"),
        )
        .collect()
    )
    assert len(rows) == len(cases)
    for row in rows:
        assert [tuple(one.split("\u0001")) for one in row["prefixes"]] == prefixes(row["name"])
        hours = [hour for hour in range(24) if row["mask"] >> hour & 1]
        assert row["hours"] == hours
        assert row["near"] == sorted({(hour + by) % 24 for hour in hours for by in range(-2, 3)})


def test_events_are_rolled_up_by_the_hour(spark: SparkSession) -> None:
    start = datetime.combine(START, datetime.min.time(), UTC)
    rows = []
    for minute, is_logged in ((5, True), (50, None), (65, True), (66, False)):
        row = dict.fromkeys(AUDIT_EVENTS_SCHEMA.fieldNames())
        row |= {"principal_type": "User", "principal_name": "bob", "time": start + timedelta(minutes=minute)}
        row |= {"decision": "DENIED", "host": "h", "rule": {"kind": "DefaultDeny"}}
        row |= {"access": "ACCESS", "resource_name": "t", "log_if_denied": is_logged}
        rows.append(row)
    found = spark.createDataFrame(rows, AUDIT_EVENTS_SCHEMA).transform(activity.rollup_of_events).collect()
    assert sorted((row["principal"], row["hours"], row["access"], row["event_count"]) for row in found) == [
        ("User:bob", 1, "ACCESS", 2),
        ("User:bob", 2, "ACCESS", 1),
        ("User:bob", 2, "PROBE", 1),
    ]
    assert {row["day"] for row in found} == {START}
