"""The aggregates agree with a plain Python reading of the same events."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.testing import assertDataFrameEqual

from kustos.pipeline.columns.file_parts import FilePart
from kustos.pipeline.queries import access
from kustos.pipeline.schemas import ACCESS_COUNTS_SCHEMA, AUDIT_EVENTS_SCHEMA, AUDIT_ROLLUP_SCHEMA
from kustos.pipeline.tables.rollup.columns import rolled_up_parts

ROLLUP = to_arrow_schema(AUDIT_ROLLUP_SCHEMA, timezone="UTC")
START = datetime(2026, 11, 21, tzinfo=UTC)
Event = tuple[str, str, str | None, str, str, int]
"""principal name, operation, resource name, decision, access, seconds after START

PROBE as access: asked without a line for a denial, so that it is a probe if it is denied one name.
"""

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob", "ü:x"]),
        st.sampled_from(["READ", "WRITE"]),
        st.sampled_from(["a", "b", "", None]),
        st.sampled_from(["ALLOWED", "DENIED", "ERROR"]),
        st.sampled_from(["ACCESS", "LISTING", "PROBE"]),
        st.integers(0, 7200),
    ),
    max_size=30,
)
QUICK = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def is_probe(event: Event) -> bool:
    return event[2] is not None and event[3] == "DENIED" and event[4] == "PROBE"


def is_denied(event: Event) -> bool:
    return event[3] != "ALLOWED" and not is_probe(event)


def frame(spark: SparkSession, events: Sequence[Event]) -> DataFrame:
    rows = []
    for name, operation, resource, decision, way, seconds in events:
        row: dict[str, Any] = dict.fromkeys(AUDIT_EVENTS_SCHEMA.fieldNames())
        time = START + timedelta(seconds=seconds)
        row |= {"principal_type": "User", "principal_name": name, "operation": operation, "time": time}
        row |= {"resource_type": "TOPIC", "resource_name": resource, "decision": decision, "access": way}
        if way == "PROBE":
            row |= {"access": "ACCESS", "log_if_denied": False}
        row["time_ms"] = int(time.timestamp() * 1000)
        rows.append(row)
    return spark.createDataFrame(rows, AUDIT_EVENTS_SCHEMA)


def test_an_access_is_counted_with_its_first_and_last_time(spark: SparkSession) -> None:
    events = frame(
        spark,
        [
            ("bob", "READ", "a", "ALLOWED", "ACCESS", 5),
            ("bob", "READ", "a", "ALLOWED", "LISTING", 1),
            ("bob", "READ", None, "DENIED", "PROBE", 9),
            ("bob", "READ", "b", "DENIED", "PROBE", 9),
            ("bob", "READ", "b", "DENIED", "ACCESS", 9),
        ],
    )
    at = [START + timedelta(seconds=seconds) for seconds in (1, 5, 9)]
    expected = spark.createDataFrame(
        [
            ("", "User:bob", "READ", "TOPIC", "a", "ALLOWED", 2, 1, 0, at[0], at[1]),
            ("", "User:bob", "READ", "TOPIC", None, "DENIED", 1, 0, 0, at[2], at[2]),
            ("", "User:bob", "READ", "TOPIC", "b", "DENIED", 2, 0, 1, at[2], at[2]),
        ],
        ACCESS_COUNTS_SCHEMA,
    )
    assertDataFrameEqual(events.transform(access.access_counts), expected)


@QUICK
@given(events=EVENTS)
def test_counts_equal_those_of_plain_python(spark: SparkSession, events: list[Event]) -> None:
    groups: dict[tuple[str, str, str | None, str], list[Event]] = defaultdict(list)
    for one in events:
        groups[one[:4]].append(one)
    expected = {
        (f"User:{name}", operation, resource, decision): (
            len(members),
            sum(member[4] == "LISTING" for member in members),
            sum(map(is_probe, members)),
            START + timedelta(seconds=min(member[5] for member in members)),
            START + timedelta(seconds=max(member[5] for member in members)),
        )
        for (name, operation, resource, decision), members in groups.items()
    }
    rows = frame(spark, events).transform(access.access_counts).collect()
    found = {
        (r["principal"], r["operation"], r["resource_name"], r["decision"]): (
            r["event_count"],
            r["listing_count"],
            r["probe_count"],
            r["first_time"].astimezone(UTC),
            r["last_time"].astimezone(UTC),
        )
        for r in rows
    }
    assert found == expected


@QUICK
@given(events=EVENTS, principals=st.integers(1, 3), resources=st.integers(1, 3))
def test_the_matrix_is_bounded_and_loses_nothing(
    spark: SparkSession, events: list[Event], principals: int, resources: int
) -> None:
    counts = frame(spark, events).transform(access.access_counts)
    rows = counts.transform(access.access_matrix, principals, resources).collect()
    assert len({r["principal"] for r in rows if not r["other_principal"]}) <= principals
    assert len({r["resource_name"] for r in rows if not r["other_resource"]}) <= resources
    assert sum(r["allowed"] for r in rows) == sum(e[3] == "ALLOWED" for e in events)
    assert sum(r["denied"] for r in rows) == sum(map(is_denied, events))
    for row in rows:
        if not row["other_principal"] and not row["other_resource"]:
            mine = [e for e in events if f"User:{e[0]}" == row["principal"] and e[2] == row["resource_name"]]
            assert row["allowed"] + row["denied"] == sum(not is_probe(e) for e in mine)


@QUICK
@given(events=EVENTS, width=st.sampled_from([1, 60, 3600]))
def test_every_event_is_in_the_bucket_of_its_time(
    spark: SparkSession, events: list[Event], width: int
) -> None:
    expected: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for event in events:
        second = int(START.timestamp()) + event[5]
        if not is_probe(event):
            expected[second - second % width][is_denied(event)] += 1
    rows = frame(spark, events).transform(access.activity, width).collect()
    assert {r["bucket_start"]: [r["allowed"], r["denied"]] for r in rows} == expected


@QUICK
@given(events=EVENTS)
def test_each_event_is_allowed_denied_or_a_probe_and_the_rollup_counts_the_same(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    rows = frame(spark, events)
    counts = rows.transform(access.access_counts)
    [sums] = counts.transform(access.totals).collect()
    assert (sums["allowed"], sums["denied"], sums["probes"]) == (
        sum(event[3] == "ALLOWED" for event in events),
        sum(map(is_denied, events)),
        sum(map(is_probe, events)),
    )
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    parquet.write_table(rows.toArrow(), path)
    rollup = pa.Table.from_batches(rolled_up_parts([FilePart(str(path))]), schema=ROLLUP)
    of_rollup = spark.createDataFrame(rollup.to_pylist(), AUDIT_ROLLUP_SCHEMA)
    assertDataFrameEqual(of_rollup.transform(access.counts_of_rollup), counts)


def test_a_name_left_out_of_a_list_and_a_probe_are_no_denied_attempts(spark: SparkSession) -> None:
    listed: Event = ("bob", "READ", "a", "DENIED", "LISTING", 1)
    others: list[Event] = [
        ("bob", "READ", "b", "ERROR", "ACCESS", 1),
        ("bob", "READ", "c", "ALLOWED", "ACCESS", 1),
    ]
    probe: Event = ("bob", "READ", "d", "DENIED", "PROBE", 1)
    counts = frame(spark, [listed, listed, probe, probe, *others]).transform(access.access_counts)
    top = counts.transform(access.top_denials, 10).collect()
    assert [(row["resource_name"], row["attempts"]) for row in top] == [("b", 1)]
