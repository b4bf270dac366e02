"""Every number of report, review, recommendation and anomalies, computed again from the raw lines.

The lines are read here by regular expressions and `json`, counted by SQL in DuckDB, and share nothing with
the pipeline: three clusters, brokers in two time zones on both sides of a change of the clocks, Kafka's text,
kustos' JSON and Confluent's events, rotated, packed, overlapping and late files, over two runs. Each run of
the tests draws another world.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.anomalies import Window, find_anomalies, kept
from kustos.pipeline.deciding import read_acl_set
from kustos.pipeline.findings.job import ReviewQuestion, run_review
from kustos.pipeline.privilege import recommendation
from kustos.pipeline.report.model import Report
from kustos.pipeline.run import run_pipeline, run_tables_report
from kustos.pipeline.tables import DeclaredCluster, IngestOptions, Tables
from testkit.seeds import seed_of_run
from tests.pipeline.plain_entitlements import Plain, counted, drawn_acls, text_of
from tests.pipeline.rich_logs import (
    CLUSTERS,
    PRINCIPALS,
    ZONES,
    rows_of_json,
    rows_of_text,
    write_first,
    write_second,
)


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    random = Random(seed_of_run())

    def run() -> None:
        for broker, zone in ZONES.items():
            options = IngestOptions(time_zone=zone, cluster=DeclaredCluster("east"))
            audit = folder / "audit" / "east" / broker
            run_pipeline(spark, tables=Tables(folder / "tables"), audit=audit, options=options)
        run_pipeline(spark, tables=Tables(folder / "tables"), audit=folder / "audit" / "others")

    write_first(folder / "audit", random)
    run()
    write_second(folder / "audit", random)
    run()
    return folder


@pytest.fixture(scope="module")
def raw(place: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The raw lines in DuckDB: `decisions` and `logins`."""
    found: dict[str, list[dict[str, Any]]] = {"decisions": [], "logins": []}
    found["decisions"] += rows_of_text(place / "audit")
    for table, row in rows_of_json(place / "audit"):
        found[table].append(row)
    with duckdb.connect() as connection:
        for table, rows in found.items():
            connection.register(f"{table}_rows", pa.Table.from_pylist(rows))
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {table}_rows")
        yield connection


def asked(raw: duckdb.DuckDBPyConnection, query: str, cluster: str) -> list[tuple[Any, ...]]:
    return raw.execute(query, {"cluster": cluster}).fetchall()


@pytest.fixture(params=CLUSTERS, scope="module")
def cluster(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def tables(place: Path, cluster: str) -> Tables:
    return Tables(place / "tables").of_cluster(cluster)


def milliseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def test_the_roll_up_has_each_event_once(
    spark: SparkSession, raw: duckdb.DuckDBPyConnection, tables: Tables, cluster: str
) -> None:
    keys = ("principal", "host", "operation", "resource_name", "decision", "access")
    rows = tables.read(spark, "audit_rollup").collect()
    found = sorted(
        (row["day"], *(row[key] or "" for key in keys), row["event_count"], row["reference_count"],
         milliseconds(row["first_time"]), milliseconds(row["last_time"]), row["hours"])
        for row in rows
    )  # fmt: skip
    query = f"""
        SELECT epoch_ms(time_ms)::DATE, {", ".join(f"coalesce({key}, '')" for key in keys)}, count(*),
               coalesce(sum(reference_count), 0)::BIGINT, min(time_ms), max(time_ms),
               bit_or(1::INT << hour(epoch_ms(time_ms))::INT)
        FROM decisions WHERE cluster = $cluster GROUP BY ALL"""
    assert found == sorted(asked(raw, query, cluster))
    assert len(found) > 50


@pytest.fixture
def page(spark: SparkSession, tables: Tables, tmp_path: Path) -> Report:
    """What the page of a cluster shows, as values."""
    shown: list[Report] = []

    def render(report: Report) -> str:
        shown.append(report)
        return ""

    with mock.patch("kustos.pipeline.report.render.render_report", render):
        run_tables_report(spark, tables, tmp_path / "page.html")
    (report,) = shown
    return report


def test_every_number_of_the_page(raw: duckdb.DuckDBPyConnection, page: Report, cluster: str) -> None:
    totals = page.totals
    query = """
        SELECT count_if(decision = 'ALLOWED'), count_if(decision <> 'ALLOWED' AND access <> 'PROBE'),
               count_if(access = 'PROBE'), count_if(decision <> 'ALLOWED' AND access = 'LISTING'),
               count_if(decision = 'ERROR'), count(DISTINCT principal),
               count(DISTINCT coalesce(resource_name, '')), min(time_ms), max(time_ms)
        FROM decisions WHERE cluster = $cluster"""
    found = (
        totals.allowed, totals.denied, totals.probes, totals.denied_listing, totals.error, totals.principals,
        totals.resources, milliseconds(totals.first_time), milliseconds(totals.last_time),
    )  # fmt: skip
    assert [found] == asked(raw, query, cluster)

    query = """
        SELECT principal, operation, resource_name, decision, count(*) AS events,
               count_if(access <> 'LISTING') AS attempts, min(time_ms), max(time_ms)
        FROM (SELECT *, access = 'PROBE' AS is_probe FROM decisions WHERE cluster = $cluster)
        GROUP BY principal, operation, resource_name, decision"""
    groups = {row[:4]: row[4:] for row in asked(raw, query, cluster)}
    of_probes = query.replace("WHERE cluster", "WHERE access = 'PROBE' AND cluster")
    probes = {row[:4]: row[4] for row in asked(raw, of_probes, cluster)}

    def check(row: Any) -> None:
        key = (row.principal, row.operation, row.resource_name, row.decision)
        events, attempts, first, last = groups[key]
        hidden = probes.get(key, 0)
        assert (row.event_count, row.attempts) == (events - hidden, attempts - hidden), key
        assert (milliseconds(row.first_time), milliseconds(row.last_time)) == (first, last), key

    for row in (*page.denials, *(row for _, rows in page.drill_down for row in rows)):
        check(row)
    attempts = sorted(
        (found[1] - probes.get(key, 0) for key, found in groups.items() if key[3] != "ALLOWED"), reverse=True
    )
    assert [row.attempts for row in page.denials] == [count for count in attempts if count][
        : len(page.denials)
    ]
    assert len(page.denials) == min(15, sum(count > 0 for count in attempts))

    query = """
        SELECT principal, resource_name, count_if(decision = 'ALLOWED'), count_if(decision <> 'ALLOWED')
        FROM decisions WHERE cluster = $cluster AND access <> 'PROBE' GROUP BY ALL"""
    cells = {row[:2]: row[2:] for row in asked(raw, query, cluster)}
    named = {
        key: cell for key, cell in page.matrix.cells.items() if key[1] is not None and key[0] is not None
    }
    assert {(who, label[1]): cell for (who, label), cell in named.items() if label} == {
        key: cells[key] for key in ((who, label[1]) for who, label in named if label)
    }
    everything = [sum(cell[at] for cell in page.matrix.cells.values()) for at in (0, 1)]
    assert everything == [totals.allowed, totals.denied]
    query = "SELECT cluster, count(*) FROM decisions WHERE cluster <> $cluster GROUP BY 1"
    assert page.others == dict(asked(raw, query, cluster))


def test_every_number_of_logins(raw: duckdb.DuckDBPyConnection, page: Report, cluster: str) -> None:
    query = """
        SELECT coalesce(sum(attempt_count) FILTER (result = 'SUCCESS'), 0)::BIGINT,
               coalesce(sum(attempt_count) FILTER (result = 'FAILURE'), 0)::BIGINT
        FROM logins WHERE cluster = $cluster"""
    found = (0, 0) if page.logins is None else (page.logins.succeeded, page.logins.failed)
    assert [found] == asked(raw, query, cluster)
    assert (page.logins is None) == (cluster != "west")
    if page.logins is not None:
        query = """
            SELECT claimed_name, host, sum(attempt_count) FILTER (result = 'FAILURE')::BIGINT,
                   coalesce(sum(attempt_count) FILTER (result = 'SUCCESS'), 0)::BIGINT
            FROM logins WHERE cluster = $cluster GROUP BY 1, 2"""
        sources = {(row.name, row.host, row.failed, row.succeeded) for row in page.logins.sources}
        assert sources == {row for row in asked(raw, query, cluster) if row[2]}


def test_what_is_no_event_is_counted_by_its_reason(page: Report, cluster: str) -> None:
    reasons = {one.reason: one.line_count for one in page.reasons}
    # `{` names no cluster, so each page has it; each broker's log has one line of junk
    foreign = {"cluster_mismatch": 1, "format_unknown": 2} if cluster == "east" else {}
    assert reasons == {"json_malformed": 1} | foreign


@pytest.fixture(scope="module")
def reviewed(
    spark: SparkSession, place: Path, raw: duckdb.DuckDBPyConnection, cluster: str
) -> tuple[Plain, Tables]:
    """The ACLs, settings and moment of a review of a cluster, and the tables that have its answers."""
    random = Random(f"{seed_of_run()} {cluster}")
    as_of = datetime(2026, 11, 2, tzinfo=UTC) + timedelta(days=random.randrange(19))
    super_users = {"User:root", random.choice(["User:alice", "User:bob", "User:spare"])}
    names = ("principal", "host", "operation", "resource_name", "decision", "access", "time_ms")
    query = f"SELECT {', '.join(names)} FROM decisions WHERE cluster = $cluster AND time_ms <= $end"
    rows = raw.execute(query, {"cluster": cluster, "end": milliseconds(as_of)}).fetchall()
    plain = Plain(
        acls=drawn_acls(random, PRINCIPALS),
        super_users=frozenset(super_users),
        # questions about any topic are recorded in the west alone, and the default has other rules for them
        is_open=cluster != "west" and random.choice([True, False]),
        recorded=[dict(zip(names, row, strict=True)) for row in rows],
        as_of_ms=milliseconds(as_of) or 0,
        limit_days=random.randrange(2, 20),
    )
    path = place / f"{cluster}.txt"
    path.write_text(text_of(plain.acls))
    acls = read_acl_set(
        path, name="acls", super_users=";".join(super_users), allow_everyone_if_no_acl_found=plain.is_open
    )
    tables = Tables(place / "tables").of_cluster(cluster)
    run_review(spark, tables, ReviewQuestion(acls=acls, as_of=as_of, dormant_days=plain.limit_days, teams={}))
    return plain, tables


def test_every_number_of_the_review(
    spark: SparkSession, raw: duckdb.DuckDBPyConnection, reviewed: tuple[Plain, Tables], cluster: str
) -> None:
    plain, tables = reviewed
    rows = tables.read(spark, "access_review").collect()
    assert {row["cluster"] for row in rows} == {cluster}
    query = """
        SELECT principal, operation, coalesce(resource_name, ''), count_if(decision = 'ALLOWED') AS used,
               count_if(decision <> 'ALLOWED'), max(time_ms) FILTER (decision = 'ALLOWED')
        FROM decisions WHERE cluster = $cluster AND access = 'ACCESS' AND time_ms <= $end
        GROUP BY 1, 2, 3 HAVING used > 0"""
    expected = raw.execute(query, {"cluster": cluster, "end": plain.as_of_ms}).fetchall()
    found = [
        (row["principal"], row["operation"], row["resource_name"] or "", row["use_count"],
         row["denied_count"], milliseconds(row["last_used"]))
        for row in rows if row["use_count"] and row["resource_type"] != "ANY"
    ]  # fmt: skip
    assert sorted(found) == sorted(expected)
    of_super_users = {
        row["principal"]: (row["use_count"], row["denied_count"], milliseconds(row["last_used"]))
        for row in rows if row["resource_type"] == "ANY"
    }  # fmt: skip
    query = """
        SELECT count(*) FILTER (decision = 'ALLOWED'), count(*) FILTER (decision <> 'ALLOWED'),
               max(time_ms) FILTER (decision = 'ALLOWED')
        FROM decisions WHERE cluster = $cluster AND access = 'ACCESS' AND time_ms <= $end
        AND principal = $principal"""
    asked_for = {"cluster": cluster, "end": plain.as_of_ms}
    assert of_super_users == {
        who: raw.execute(query, asked_for | {"principal": who}).fetchone() for who in plain.super_users
    }
    assert [row["principal"] for row in rows if not row["use_count"]].count("User:nobody") == 1


def test_every_number_of_the_entitlements(
    spark: SparkSession, reviewed: tuple[Plain, Tables], cluster: str
) -> None:
    plain, tables = reviewed
    rows = tables.read(spark, "entitlements").collect()
    assert {(row["cluster"], milliseconds(row["as_of"])) for row in rows} == {(cluster, plain.as_of_ms)}
    found = dict(counted(row.asDict(recursive=True)) for row in rows)
    assert len(found) == len(rows)
    assert found == plain.rows()
    for row in rows:
        assert row["deny_count"] == len(row["denied_by"])
        if row["granted_by"]:
            names = ("resource_type", "resource_name", "pattern_type", "principal", "host")
            assert all(row[name] == row["granted_by"][0][name] for name in names)
        assert (row["team"], row["granted_since"]) == (None, None)
    assert {row["effect"] for row in rows} >= {"WHOLE"}


def test_every_number_of_the_recommendation(
    spark: SparkSession, raw: duckdb.DuckDBPyConnection, tables: Tables, cluster: str
) -> None:
    recommended = recommendation(spark, tables.read(spark, "audit_rollup"))
    numbers = recommended.numbers
    query = """
        WITH asked AS (
            SELECT principal, host, operation, resource_name,
                   count_if(decision = 'ALLOWED' AND access <> 'LISTING') AS events,
                   max(time_ms) FILTER (decision = 'ALLOWED') AS allowed,
                   max(time_ms) FILTER (decision = 'DENIED') AS denied
            FROM decisions WHERE cluster = $cluster GROUP BY ALL),
        judged AS (SELECT *, allowed IS NULL OR coalesce(denied >= allowed, false) AS is_denied FROM asked)
        SELECT count_if(NOT is_denied AND events > 0),
               coalesce(sum(events) FILTER (NOT is_denied), 0)::BIGINT,
               count_if(is_denied), coalesce(sum(events) FILTER (is_denied), 0)::BIGINT
        FROM judged"""
    found = (numbers.needed_accesses, numbers.needed_events, numbers.denied_accesses, numbers.left_out_events)
    assert [found] == asked(raw, query, cluster)
    assert numbers.is_proven


def test_what_is_unusual_counts_the_events_of_its_cluster(
    spark: SparkSession, raw: duckdb.DuckDBPyConnection, tables: Tables, cluster: str
) -> None:
    window = Window.before(datetime(2026, 11, 16, tzinfo=UTC).date(), 10)
    found = find_anomalies(
        spark, window=window, rollup=tables.read(spark, "audit_rollup"),
        security_events=tables.read(spark, "security_events"), keep=kept,
    ).collect()  # fmt: skip
    planted = [row for row in found if row["principal"] == "User:mallory"]
    assert bool(planted) == (cluster == "west")
    query = """
        SELECT count(*), min(time_ms), max(time_ms) FROM decisions
        WHERE cluster = $cluster AND principal = 'User:mallory'"""
    for row in planted:
        counted = (row["event_count"], milliseconds(row["first_time"]), milliseconds(row["last_time"]))
        assert [counted] == asked(raw, query, cluster), row["kind"]
