"""Every number of report, review, recommendation and anomalies, computed again from the raw lines.

The lines are read here by regular expressions and `json`, counted by SQL in DuckDB, and share nothing with
the pipeline: three clusters, brokers in two time zones on both sides of a change of the clocks, Kafka's text,
kustos' JSON and Confluent's events, rotated, packed, overlapping and late files, over two runs. Each run of
the tests draws another world.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.anomalies import AnomalyParameters, Window
from kustos.pipeline.anomalies.job import run_anomalies
from kustos.pipeline.deciding import AclsInForce, read_acl_set
from kustos.pipeline.privilege import recommendation
from kustos.pipeline.replay.job import replay_of_tables
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.report.model import Report
from kustos.pipeline.review.job import ReviewQuestion, run_review
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import DeclaredCluster, IngestOptions, Tables
from testkit.seeds import seed_of_run
from tests.pipeline.plain_anomalies import PlainAnomalies
from tests.pipeline.plain_difference import PlainDifference, Rules
from tests.pipeline.plain_entitlements import Acl, Plain, counted, drawn_acls, text_of
from tests.pipeline.plain_findings import PlainFindings
from tests.pipeline.plain_logins import PlainLogins
from tests.pipeline.plain_page import (
    PlainPage,
    bars_of,
    check_findings,
    check_grants,
    check_replayed,
    milliseconds,
)
from tests.pipeline.plain_recommendation import PlainRecommendation, plain_acl
from tests.pipeline.plain_uses import Habits, check_anomalies, check_states, day_of, documented
from tests.pipeline.rich_logs import (
    CLUSTERS,
    FILES,
    GUESSER,
    PRINCIPALS,
    SPRAYER,
    ZONES,
    rows_of_json,
    rows_of_text,
    write_first,
    write_second,
)
from tests.pipeline.rich_oddities import BOSSES


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    random = Random(seed_of_run())

    def run(*groups: tuple[str, ...]) -> None:
        for brokers in groups:
            options = IngestOptions(time_zone=ZONES[brokers[0]], cluster=DeclaredCluster("east"))
            audit = [folder / "audit" / "east" / broker for broker in brokers]
            run_pipeline(spark, tables=Tables(folder / "tables"), audit=audit, options=options)
        run_pipeline(spark, tables=Tables(folder / "tables"), audit=folder / "audit" / "others")

    acls = {name: acls_of(name) for name in CLUSTERS}
    write_first(folder / "audit", random, acls)
    run(("broker-1",), ("broker-2",), ("strimzi", "legacy"))
    write_second(folder / "audit", random, acls)
    run(("broker-1",))
    return folder


def acls_of(cluster: str) -> list[Acl]:
    """Return the ACLs of a cluster: those that its rules name, and that its review is about."""
    return drawn_acls(Random(f"{seed_of_run()} {cluster} ACLs"), PRINCIPALS)


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


SINCE = datetime(2026, 11, 5, 12, tzinfo=UTC)
TEAMS = {"User:al*": "sales", "User:mallory": "unknown"}
HOURS = (date(2026, 11, 11), date(2026, 11, 13))
"""Days whose page has a bar for each hour."""
JUDGED = (date(2026, 11, 6), date(2026, 11, 16))
"""The window of anomalies: the second day is not judged."""
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
ATTACKERS = {SPRAYER, GUESSER}


@dataclass(frozen=True)
class Reviewed:
    """The ACLs, settings and moment of a review of a cluster, and the tables that have its answers."""

    plain: Plain
    tables: Tables
    rows: list[dict[str, Any]]
    """Every decision of the cluster, also those after the review."""


@pytest.fixture(params=CLUSTERS, scope="module")
def cluster(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def tables(place: Path, cluster: str) -> Tables:
    return Tables(place / "tables").of_cluster(cluster)


def rows_of(tables: Tables, name: str) -> list[dict[str, Any]]:
    """Return the rows of an answer about the cluster of the tables."""
    return [row for row in tables.read_small(name) if row["cluster"] == tables.chosen_cluster.name]


def test_the_roll_up_has_each_event_once(
    spark: SparkSession, raw: duckdb.DuckDBPyConnection, tables: Tables, cluster: str
) -> None:
    rows = [row.asDict(recursive=True) for row in tables.read(spark, "audit_rollup").collect()]
    PlainPage(raw, cluster).check_rollup(rows)
    assert len(rows) > 50


def shown_by(spark: SparkSession, tables: Tables, out: Path, **more: Any) -> Report:
    """Return what a page on a cluster shows, as values."""
    shown: list[Report] = []

    def render(report: Report) -> str:
        shown.append(report)
        return ""

    with mock.patch("kustos.pipeline.report.render.render_report", render):
        run_tables_report(spark, tables, out, **more)
    (report,) = shown
    return report


@pytest.fixture(scope="module")
def page(
    spark: SparkSession,
    place: Path,
    cluster: str,
    reviewed: Reviewed,
    replayed: Plain,
    searched: dict[str, Any],
) -> Report:
    """The page on all days and all answers, after one that ended with an event of `SINCE`."""
    out = place / f"{cluster}.html"
    out.write_text(f'<meta name="kustos-last-event" content="{SINCE.isoformat()}">')
    return shown_by(spark, reviewed.tables, out, teams=TEAMS)


def test_every_number_of_the_page(raw: duckdb.DuckDBPyConnection, page: Report, cluster: str) -> None:
    plain = PlainPage(raw, cluster)
    plain.check_totals(page.totals)
    plain.check_rows(page)
    plain.check_matrix(page)
    query = "SELECT cluster, count(*) FROM decisions WHERE cluster <> $cluster GROUP BY 1"
    assert page.others == dict(asked(raw, query, cluster))


def test_every_bar_of_the_page(raw: duckdb.DuckDBPyConnection, page: Report, cluster: str) -> None:
    PlainPage(raw, cluster).check_bars(page, DAY_MS, "one day")
    assert page.files == FILES


def test_every_bar_of_a_page_of_some_days(
    spark: SparkSession, raw: duckdb.DuckDBPyConnection, place: Path, tmp_path: Path
) -> None:
    (first, last), cluster = HOURS, "west"
    tables = Tables(place / "tables").of_cluster(cluster)
    page = shown_by(spark, tables, tmp_path / "page.html", first_day=first, last_day=last)
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    plain = PlainPage(raw, cluster, (start, start + (last - first) + timedelta(days=1)))
    plain.check_bars(page, HOUR_MS, "one hour")
    plain.check_totals(page.totals)


def test_every_number_of_news_and_of_teams(
    raw: duckdb.DuckDBPyConnection, page: Report, cluster: str
) -> None:
    plain, news = PlainPage(raw, cluster), page.news
    assert news is not None
    assert news.since == SINCE
    since_ms = milliseconds(SINCE) or 0
    sums = (news.allowed, news.denied, news.principals, news.silent_principals, news.recorded_days)
    assert [sums] == plain.news(since_ms)
    assert [(row.decision == "ALLOWED", row.event_count) for row in news.rows] == plain.new_counts(since_ms)
    by_team = {(row.team, row.principals, row.allowed, row.denied) for row in page.by_team}
    assert by_team == plain.by_team(TEAMS)


def test_every_number_of_the_answers_on_the_page(page: Report, reviewed: Reviewed, replayed: Plain) -> None:
    tables = reviewed.tables
    assert page.replayed is not None
    assert page.grants is not None
    assert page.findings is not None
    check_replayed(page.replayed, reviewed.rows, replayed.allows)
    assert page.replayed.lost or page.replayed.gained
    check_grants(page.grants, rows_of(tables, "access_review"))
    check_findings(page.findings, rows_of(tables, "findings"), rows_of(tables, "anomaly_states"))


def test_every_number_of_logins(raw: duckdb.DuckDBPyConnection, page: Report, cluster: str) -> None:
    query = """
        SELECT coalesce(sum(attempt_count) FILTER (result = 'SUCCESS'), 0)::BIGINT,
               coalesce(sum(attempt_count) FILTER (result = 'FAILURE'), 0)::BIGINT,
               count(DISTINCT claimed_name) FILTER (result = 'FAILURE'),
               count(DISTINCT host) FILTER (result = 'FAILURE')
        FROM logins WHERE cluster = $cluster"""
    logins = page.logins
    found = (0, 0, 0, 0) if logins is None else (logins.succeeded, logins.failed, logins.names, logins.hosts)
    assert [found] == asked(raw, query, cluster)
    assert (logins is None) == (cluster != "west")
    if logins is None:
        return
    plain = PlainPage(raw, cluster)
    sources = {
        (row.name, row.host, row.failed, row.succeeded, milliseconds(row.first_time),
         milliseconds(row.last_time), row.reasons)
        for row in logins.sources
    }  # fmt: skip
    expected = plain.login_sources()
    assert sources <= expected
    most = sorted((row[2] for row in expected), reverse=True)
    assert [row.failed for row in logins.sources] == most[:15]
    assert logins.chart is not None
    assert (bars_of(logins.chart), logins.chart.width) == (plain.login_activity(DAY_MS), "one day")


def test_what_is_no_event_is_counted_by_its_reason(page: Report, cluster: str) -> None:
    reasons = {one.reason: one.line_count for one in page.reasons}
    # `{` names no cluster, so each page has it; the logs of two brokers have a line of junk each, that of a
    # third begins with a banner, and AclAuthorizer remarks that somebody is a super user
    foreign = {"cluster_mismatch": 1, "format_unknown": 3, "kafka_note": 1} if cluster == "east" else {}
    assert reasons == {"json_malformed": 1} | foreign


@pytest.fixture(scope="module")
def reviewed(
    spark: SparkSession, place: Path, raw: duckdb.DuckDBPyConnection, tables: Tables, cluster: str
) -> Reviewed:
    random = Random(f"{seed_of_run()} {cluster}")
    as_of = datetime(2026, 11, 2, tzinfo=UTC) + timedelta(days=random.randrange(19))
    super_users = {"User:root", random.choice(["User:alice", "User:bob", "User:spare"])}
    query = "SELECT * FROM decisions WHERE cluster = $cluster"
    decided: Any = raw.sql(query, params={"cluster": cluster}).to_arrow_table().to_pylist()
    as_of_ms = milliseconds(as_of) or 0
    plain = Plain(
        acls=acls_of(cluster),
        super_users=frozenset(super_users),
        # questions about any topic are recorded in the west alone, and the default has other rules for them
        is_open=cluster != "west" and random.choice([True, False]),
        recorded=[row for row in decided if row["time_ms"] <= as_of_ms],
        as_of_ms=as_of_ms,
        limit_days=random.randrange(2, 20),
    )
    question = ReviewQuestion(
        acls=in_force(plain, place / f"{cluster}.txt"),
        as_of=as_of, dormant_days=plain.limit_days, teams={},
    )  # fmt: skip
    run_review(spark, tables, question)
    return Reviewed(plain, tables, decided)


def in_force(plain: Plain, path: Path) -> AclsInForce:
    """Return ACLs and settings as the pipeline takes them."""
    path.write_text(text_of(plain.acls))
    users = ";".join(plain.super_users)
    return read_acl_set(path, name="acls", super_users=users, allow_everyone_if_no_acl_found=plain.is_open)


@pytest.fixture(scope="module")
def replayed(spark: SparkSession, place: Path, reviewed: Reviewed, cluster: str) -> Plain:
    """ACLs without every third one of those in force, whose replay the tables have."""
    plain = replace(reviewed.plain, acls=[acl for n, acl in enumerate(reviewed.plain.acls) if n % 3])
    candidate = in_force(plain, place / f"{cluster}-new.txt")
    found = replay_of_tables(spark, reviewed.tables, candidate, rule_changes=False)
    reviewed.tables.replace("replay_flips", found.flips)
    return plain


@pytest.fixture(scope="module")
def searched(spark: SparkSession, tables: Tables) -> dict[str, Any]:
    """What a search for what is unusual says; the tables have it."""
    return run_anomalies(spark, tables, Window(*JUDGED), super_users=BOSSES, limit=5)


def test_every_number_of_the_review(raw: duckdb.DuckDBPyConnection, reviewed: Reviewed, cluster: str) -> None:
    rows = rows_of(reviewed.tables, "access_review")
    PlainPage(raw, cluster).check_review(rows, reviewed.plain.super_users, reviewed.plain.as_of_ms)


def test_every_number_of_the_entitlements(reviewed: Reviewed, cluster: str) -> None:
    plain, rows = reviewed.plain, rows_of(reviewed.tables, "entitlements")
    assert {(row["cluster"], milliseconds(row["as_of"])) for row in rows} == {(cluster, plain.as_of_ms)}
    found = dict(map(counted, rows))
    assert len(found) == len(rows)
    assert found == plain.rows()
    for row in rows:
        assert row["deny_count"] == len(row["denied_by"])
        if row["granted_by"]:
            names = ("resource_type", "resource_name", "pattern_type", "principal", "host")
            assert all(row[name] == row["granted_by"][0][name] for name in names)
        assert (row["team"], row["granted_since"]) == (None, None)
    assert {row["effect"] for row in rows} >= {"WHOLE"}


def test_every_number_of_the_findings(reviewed: Reviewed) -> None:
    PlainFindings(reviewed.plain).check(rows_of(reviewed.tables, "findings"))


def test_every_number_and_region_of_the_recommendation(
    spark: SparkSession, raw: duckdb.DuckDBPyConnection, place: Path, reviewed: Reviewed, cluster: str
) -> None:
    plain = reviewed.plain
    today = in_force(plain, place / f"{cluster}-today.txt")
    rollup = reviewed.tables.read(spark, "audit_rollup")
    is_within = Random(f"{seed_of_run()} {cluster} within").random() < 0.3
    recommended = recommendation(spark, rollup, today=today, within_today=is_within)
    acls, shown = [plain_acl(acl.binding) for acl in recommended.acls], json.loads(recommended.to_json())
    difference = PlainDifference(
        Rules(plain.acls, plain.super_users, plain.is_open), Rules(acls, plain.super_users, is_open=False)
    )
    difference.check(shown.pop("difference"))
    assert shown.pop("unproven") == []
    # the days of the record lie within the window up to the last of them
    assert shown.pop("record")["recorded_days"] == shown["recorded_days"]
    known = PlainRecommendation.of(raw, cluster, acls)
    beside = known.numbers_beside(plain.acls, difference.counts())
    assert shown == known.numbers() | beside | known.record() | {
        "is_within_today": is_within, "is_proven": True,
    }  # fmt: skip
    assert not known.superfluous()


def test_every_number_of_the_anomalies(
    raw: duckdb.DuckDBPyConnection, tables: Tables, searched: dict[str, Any], cluster: str
) -> None:
    decided, logged = (
        raw.sql(f"SELECT * FROM {name} WHERE cluster = $cluster", params={"cluster": cluster})
        for name in ("decisions", "logins")
    )
    window = day_of(JUDGED[0]), day_of(JUDGED[1])
    habits = Habits(decided.to_arrow_table().to_pylist(), *window, super_users=BOSSES)
    expected = [
        *PlainAnomalies(habits).all(),
        *PlainLogins(habits, logged.to_arrow_table().to_pylist()).all(),
    ]
    rows, states = rows_of(tables, "anomalies"), rows_of(tables, "anomaly_states")
    check_anomalies(rows, expected)
    check_states(states, rows, searched, JUDGED[1] - timedelta(days=1))
    attacks = {one.kind for one in expected if one.host in ATTACKERS}
    assert attacks == ({"PASSWORD_SPRAYING", "LOGIN_AFTER_FAILURES"} if cluster == "west" else set())


def test_the_page_on_anomalies_has_every_threshold() -> None:
    assert documented() == asdict(AnomalyParameters())
