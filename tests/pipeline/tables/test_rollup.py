"""The roll-up equals plain Python's and DuckDB's."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.authorizer.audit.fields import AUDIT_FIELDS
from kustos.pipeline.columns.file_parts import FilePart
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, AUDIT_ROLLUP_SCHEMA, ROLLUP_GRAIN
from kustos.pipeline.tables.rollup.columns import rolled_up_parts

SCHEMA = to_arrow_schema(AUDIT_EVENTS_SCHEMA, timezone="UTC")
ROLLUP = to_arrow_schema(AUDIT_ROLLUP_SCHEMA, timezone="UTC")

MIDNIGHT_MS = 1_795_219_200_000
"""The beginning of 2026-11-21 in UTC."""
DAY_MS = 86_400_000
RULES: tuple[dict[str, str | None], ...] = (
    {"kind": "SuperUser"},
    {"kind": "MatchingAcl", "resource_type": "TOPIC", "resource_name": "a", "pattern_type": "PREFIXED"},
    {"kind": "MatchingAcl", "resource_type": "TOPIC", "resource_name": "a", "pattern_type": "LITERAL"},
)
RULE_NAMES = [f.name.removeprefix("rule.") for f in AUDIT_FIELDS if f.name.startswith("rule.")]


def event(number: int, **changes: Any) -> dict[str, Any]:
    rule = dict.fromkeys(RULE_NAMES)
    row: dict[str, Any] = dict.fromkeys(AUDIT_EVENTS_SCHEMA.fieldNames())
    row |= {"event_id": f"{number * 7919 % 1000:03d}", "time_ms": MIDNIGHT_MS, "principal_type": "User"}
    row |= {"principal_name": "bob", "host": "::1", "operation": "READ", "resource_type": "TOPIC"}
    row |= {"resource_name": "a", "decision": "ALLOWED", "access": "ACCESS", "reference_count": 1}
    row |= {"cluster": ""}
    row |= changes
    return row | {"rule": rule | changes.get("rule", RULES[0])}


def some_events(seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    return [
        event(
            number,
            time_ms=MIDNIGHT_MS + random.choice([-DAY_MS, -1, 0, 1, 3_600_000, DAY_MS - 1, 3 * DAY_MS]),
            principal_name=random.choice(["bob", "a:b", ""]),
            host=random.choice(["::1", "10.0.0.1"]),
            cluster=random.choice(["", None, "east", "west"]),
            resource_name=random.choice(["a", "", None]),
            decision=random.choice(["ALLOWED", "DENIED", "ERROR"]),
            access=random.choice(["ACCESS", "LISTING"]),
            log_if_denied=random.choice([True, False, None]),
            reference_count=random.choice([0, 1, 2**31 - 1, None]),
            decision_count=random.choice([None, None, 1, 7, 2**31 - 1]),
            rule=random.choice(RULES),
        )
        for number in range(random.choice([1, 40, 300]))
    ]


def way(row: dict[str, Any]) -> Any:
    """A denial is a probe if another question decides: it says so, and asks about one name."""
    unlogged = row["decision"] == "DENIED" and row["log_if_denied"] is False
    return (
        "PROBE"
        if unlogged and row["access"] == "ACCESS" and row["resource_name"] is not None
        else row["access"]
    )


def rolled_up(path: Path, rows: list[dict[str, Any]]) -> pa.Table:
    """Return the roll-up of events, by way of a file, as a run makes it."""
    parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    return pa.Table.from_batches(rolled_up_parts([FilePart(str(path))]), schema=ROLLUP)


def by_python(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        time = datetime.fromtimestamp(row["time_ms"] // 1000, UTC)
        principal = f"{row['principal_type']}:{row['principal_name']}"
        special = {"access": way(row), "cluster": row["cluster"] or ""}
        plain = (special.get(name, row[name]) for name in ROLLUP_GRAIN[2:-1])
        groups[time.date(), principal, *plain, rule_of(row)].append(row)
    return {
        grain: (
            sum(one["decision_count"] or 1 for one in members),
            sum(one["reference_count"] or 0 for one in members),
            min(one["time_ms"] for one in members),
            max(one["time_ms"] for one in members),
            sum({1 << one["time_ms"] // 3_600_000 % 24 for one in members}),
            min(one["event_id"] for one in members),
        )
        for grain, members in groups.items()
    }


def as_python(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    found = {}
    for row in rows:
        grain = (*(row[name] for name in ROLLUP_GRAIN[:-1]), rule_of(row))
        assert grain not in found, "each row of the grain once"
        times = (milliseconds(row["first_time"]), milliseconds(row["last_time"]))
        found[grain] = (
            row["event_count"],
            row["reference_count"],
            *times,
            row["hours"],
            row["sample_event_id"],
        )
    return found


def rule_of(row: Mapping[str, Any]) -> tuple[Any, ...] | None:
    return None if row["rule"] is None else tuple(row["rule"].values())


def milliseconds(time: datetime) -> int:
    return (time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def by_duckdb(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    events = pa.Table.from_pylist(rows)
    way_of = """CASE WHEN access = 'ACCESS' AND decision = 'DENIED' AND log_if_denied IS FALSE
        AND resource_name IS NOT NULL THEN 'PROBE' ELSE access END"""
    special = {"access": way_of, "cluster": "coalesce(cluster, '')"}
    grain = ", ".join(special.get(name, name) for name in ROLLUP_GRAIN[2:-1])
    query = f"""
        SELECT epoch_ms(time_ms)::DATE, principal_type || ':' || principal_name, {grain}, rule::VARCHAR,
               sum(coalesce(decision_count, 1))::BIGINT, coalesce(sum(reference_count), 0)::BIGINT,
               min(time_ms), max(time_ms),
               bit_or(1::INT << hour(epoch_ms(time_ms))::INT), min(event_id)
        FROM events GROUP BY ALL"""
    with duckdb.connect() as connection:
        connection.register("events", events)
        found = connection.execute(query).fetchall()
    return {row[: len(ROLLUP_GRAIN)]: row[len(ROLLUP_GRAIN) :] for row in found}


def test_a_row_counts_the_events_of_its_day_and_rule(tmp_path: Path) -> None:
    rows = [
        event(1, time_ms=MIDNIGHT_MS + 5, reference_count=3),
        event(2, time_ms=MIDNIGHT_MS + DAY_MS - 1),
        event(3, time_ms=MIDNIGHT_MS - 1),
    ]
    at = [row["time_ms"] for row in rows]
    common = ("User:bob", "", "::1", "READ", "TOPIC", "a", "ALLOWED", "ACCESS", rule_of(rows[0]))
    assert as_python(rolled_up(tmp_path / "events.parquet", rows).to_pylist()) == {
        (date(2026, 11, 21), *common): (2, 4, at[0], at[1], 1 | 1 << 23, "838"),
        (date(2026, 11, 20), *common): (1, 1, at[2], at[2], 1 << 23, "757"),
    }


@pytest.mark.parametrize("nth", range(2))
def test_rolled_up_as_by_plain_python_and_duckdb(tmp_path: Path, seed: int, nth: int) -> None:
    seed += nth
    rows = some_events(seed)
    expected = by_python(rows)
    assert as_python(rolled_up(tmp_path / "events.parquet", rows).to_pylist()) == expected
    counted: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for grain, values in by_duckdb(rows).items():
        counted[grain[:-1]].append(values)
    theirs: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for grain, values in expected.items():
        theirs[grain[:-1]].append(values)
    assert {key: sorted(values) for key, values in counted.items()} == {
        key: sorted(values) for key, values in theirs.items()
    }
