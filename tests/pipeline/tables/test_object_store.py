"""Tables in an object store keep the promises of tables on a disk: shown on servers of S3 and of Google's."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import polars
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.pipeline.anomalies import Window, acknowledge, reopen, stored_states
from kustos.pipeline.anomalies.job import run_anomalies
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.places import StorePath, names_below, names_in, remove_file, size_of, source_of
from kustos.pipeline.replay.job import replay_of_tables
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.run.stream import StreamOptions, run_stream
from kustos.pipeline.run.topic import TopicSettings
from kustos.pipeline.tables import (
    IngestOptions,
    Retention,
    Tables,
    TablesDamagedError,
    TablesError,
    check_tables,
    compact_tables,
    drop_expired,
    line_writer,
)
from kustos.pipeline.tables import transaction as transactions
from kustos.pipeline.tables.deduplication import of_runs
from kustos.pipeline.tables.delta import new_name, write_file
from kustos.pipeline.tables.layout import stored_schema
from kustos.pipeline.tables.rollup import days
from kustos.pipeline.tables.runs import RUN, add_rows
from kustos.pipeline.tables.transaction import Write, transaction
from testkit.kafka import KafkaNode
from testkit.object_store import KEY, ObjectStore, Store
from testkit.paths import ROOT
from testkit.processes import spawn
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.run.topics import fill, make_topic
from tests.pipeline.tables.damage import forget
from tests.pipeline.tables.driver import BEGUN
from tests.pipeline.tables.races import one_of_writers_wins
from tests.pipeline.tables.test_ingest import StoppedClock
from tests.pipeline.tables.test_other_readers import same_rows
from tests.pipeline.tables.test_runs import contents

TIME_MS = 1_795_233_600_123
DAY_MS = 86_400_000
LONGEST_RUN_S = 240.0
SOON_S = 4.0
RACES_MAX = 20
"""In one race of six writers the server mostly refuses some."""

IN_EACH = pytest.mark.parametrize("kind", ["s3", "gs"])


@pytest.fixture
def kind() -> str:
    return "s3"


@pytest.fixture
def store(request: pytest.FixtureRequest, store: ObjectStore, kind: str) -> Store:
    """Return the server of the kind that a test is for."""
    found: Store = request.getfixturevalue("google_store") if kind == "gs" else store
    return found


def lines_of_days(*numbers: int) -> list[str]:
    return [event_line(number, time_ms=TIME_MS + number * DAY_MS // 3) for number in numbers]


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    folder = tmp_path / "audit"
    folder.mkdir()
    lines = [*lines_of_days(*range(8)), "junk", kafka_line(), kafka_line()]
    (folder / "a").write_text("".join(f"{line}\n" for line in lines))
    return folder


def add_more(audit: Path) -> None:
    lines = [*lines_of_days(*range(4, 12)), "junk of another file", kafka_line(principal="User:eve")]
    (audit / "b").write_text("".join(f"{line}\n" for line in lines))


@IN_EACH
def test_short_and_long_runs_there_write_the_tables_that_they_write_on_a_disk(
    near: SparkSession, store: Store, tmp_path: Path, audit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = IngestOptions(keep_raw=True)
    there, here = Tables.at(store.address("both")), Tables(tmp_path / "tables")
    for more in (False, True):
        if more:
            add_more(audit)
            monkeypatch.setattr(of_runs, "BUCKET_LINES_MAX", 2)
            monkeypatch.setattr(line_writer, "FEW_LINES", 0)
            monkeypatch.setattr(days, "DRIVER_FILES_MAX", 0)
        summaries = [
            run_pipeline(near, tables=tables, audit=audit, options=options) for tables in (there, here)
        ]
        assert [(one.new_files, one.events, one.duplicates) for one in summaries] == [
            (1, 5, 4) if more else (1, 10, 0)
        ] * 2
        assert contents(near, there) == contents(near, here)
        assert sorted(map(repr, there.read(near, "audit_raw").collect())) == sorted(
            map(repr, here.read(near, "audit_raw").collect())
        )
    assert run_pipeline(near, tables=there, audit=audit).new_files == 0
    assert not [name for name in names_in(there.folder) if name.startswith("_")], "nothing is left"
    assert "COPY" not in store.log.read_text(), "files are written once, where they are committed"


@IN_EACH
def test_answers_there_are_those_of_tables_on_a_disk(
    near: SparkSession, store: Store, tmp_path: Path, audit: Path
) -> None:
    there, here = Tables.at(store.address("answers")), Tables(tmp_path / "tables")
    nobody = AclsInForce.of("none", [], super_users="", allow_everyone_if_no_acl_found=False)
    for tables in (there, here):
        run_pipeline(near, tables=tables, audit=audit)
        for rules in (True, False):
            found = replay_of_tables(near, tables, nobody, rule_changes=rules)
            tables.replace(f"replay_{'flips' if rules else 'by_file'}", found.flips)
        tables.replace("replay_flips", tables.read(near, "replay_flips").limit(3))
        run_tables_report(near, tables, tmp_path / f"{tables is there}.html")
    for name in ("replay_flips", "replay_by_file"):
        rows = [sorted(map(repr, tables.read(near, name).collect())) for tables in (there, here)]
        assert rows[0] == rows[1] != []
    assert (tmp_path / "True.html").read_text() == (tmp_path / "False.html").read_text()


@IN_EACH
def test_polars_reads_tables_there(near: SparkSession, store: Store, audit: Path) -> None:
    tables = Tables.at(store.address("polars"))
    run_pipeline(near, tables=tables, audit=audit)
    for name in ("audit_events", "audit_rollup", "quarantine"):
        found = polars.scan_delta(str(tables.place(name)), storage_options=store.environment).collect()
        assert same_rows(found.to_arrow(), tables.read(near, name).toArrow()) > 0


def denied_lines(day: int, who: str) -> list[str]:
    """Return the lines of a client that retries a missing right for an hour and a half."""
    return [
        event_line(
            1_000 * (day + 1) + number, time_ms=TIME_MS + day * DAY_MS + number * 40_000, principal_name=who,
            operation="WRITE", decision="DENIED", rule__kind="DefaultDeny",
        )
        for number in range(140)
    ]  # fmt: skip


def test_anomalies_there_outlive_runs_with_what_was_said_of_them(
    near: SparkSession, store: ObjectStore, audit: Path
) -> None:
    (audit / "denied").write_text("\n".join(denied_lines(0, "poor") + denied_lines(2, "typo")) + "\n")
    tables = Tables.at(store.address("findings"))
    first = datetime.fromtimestamp(TIME_MS / 1000, UTC).date()

    def judged(*days: int) -> tuple[int, dict[str, int]]:
        window = Window(*(first + timedelta(days=day) for day in days))
        made = run_anomalies(near, tables, window, limit=10)
        return made["new"], made["states"]

    run_pipeline(near, tables=tables, audit=audit)
    assert judged(0, 3) == (2, {"OPEN": 2})
    once = stored_states(tables)
    assert judged(0, 3) == (0, {"OPEN": 2})
    assert stored_states(tables) == once, "the same run again changes nothing"
    ids = {row["principal"]: row["anomaly_id"] for row in once}
    at = datetime(2026, 12, 1, tzinfo=UTC)
    acknowledge(tables, [each[:8] for each in ids.values()], by="alice", reason="INC-7", at=at)
    reopen(tables, [ids["User:typo"]])
    assert judged(2, 3) == (0, {"OPEN": 1})
    states = {row["principal"]: row["state"] for row in stored_states(tables)}
    assert states == {"User:poor": "ACKNOWLEDGED", "User:typo": "OPEN"}, "a run of one day forgets nothing"
    assert tables.read(near, "anomalies").count() == 2


@IN_EACH
def test_days_there_are_compacted_and_dropped(near: SparkSession, store: Store, audit: Path) -> None:
    tables = Tables.at(store.address("upkeep"))
    for number in range(3):
        (audit / f"more{number}").write_text(event_line(100 + number, time_ms=TIME_MS))
        run_pipeline(near, tables=tables, audit=audit, compact=False)
    before = contents(near, tables)
    assert compact_tables(tables, most_files=2)
    assert contents(near, tables) == before
    days = tables.days("audit_events")
    dropped = drop_expired(tables, Retention(days=1), clock=StoppedClock(TIME_MS + 2 * DAY_MS))
    assert dropped.event_days
    assert tables.days("audit_events") == days - set(dropped.event_days)
    assert tables.read(near, "audit_events").count() == len(before["audit_events"]) - dropped.events


def test_a_stream_into_it_takes_each_record_once(
    near: SparkSession, store: ObjectStore, kafka: KafkaNode, tmp_path: Path
) -> None:
    tables, topic, now = (
        Tables.at(store.address("stream")),
        make_topic(kafka),
        StreamOptions(available_now=True),
    )
    settings = TopicSettings(topic=topic, client_properties={"bootstrap.servers": kafka.bootstrap})
    fill(kafka, topic, [event_line(1), event_line(2), event_line(2), "junk"])
    first = run_stream(near, settings, tables, tmp_path / "checkpoint", options=now)
    assert (first.lines, first.events, first.quarantined, first.duplicates) == (4, 2, 1, 1)
    fill(kafka, topic, [event_line(2), event_line(3)])
    second = run_stream(near, settings, tables, tmp_path / "checkpoint", options=now)
    assert (second.lines, second.events, second.duplicates) == (2, 1, 1)
    lost = run_stream(near, settings, tables, tmp_path / "another", options=now)
    assert (lost.events, lost.duplicates) == (0, 6)
    assert tables.read(near, "audit_rollup").selectExpr("sum(event_count) AS n").collect()[0]["n"] == 3


def drive(store: Store, audit: Path, tables: str, point: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.pipeline.tables.driver", str(audit), tables, point]
    driver = spawn(command, stdout=subprocess.PIPE, cwd=ROOT, environment=store.environment)
    assert driver.stdout is not None
    assert driver.stdout.readline().decode().strip() == BEGUN
    return driver


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        ("s3", "writing audit_rollup"),
        ("s3", "committing two tables"),
        ("s3", "random"),
        ("gs", "committing two tables"),
    ],
)
def test_killed_there_and_run_again_no_event_is_there_twice(
    near: SparkSession, store: Store, tmp_path: Path, audit: Path, point: str, seed: int
) -> None:
    tables, here = Tables.at(store.address(f"killed/{point.replace(' ', '-')}")), Tables(tmp_path / "tables")
    for each in (tables, here):
        run_pipeline(near, tables=each, audit=audit)
    before = contents(near, tables)
    add_more(audit)
    run_pipeline(near, tables=here, audit=audit)
    driver = drive(store, audit, str(tables.folder), point)
    if point == "random":
        try:
            driver.wait(Random(seed).uniform(0, SOON_S))
        except subprocess.TimeoutExpired:
            driver.kill()
        driver.wait(LONGEST_RUN_S)
    else:
        assert driver.wait(LONGEST_RUN_S) == -signal.SIGKILL
        assert contents(near, tables) == before, "all of a run or nothing"
    run_pipeline(near, tables=tables, audit=audit)
    assert contents(near, tables) == contents(near, here)
    assert run_pipeline(near, tables=tables, audit=audit).new_files == 0


@IN_EACH
def test_of_runs_at_once_one_wins_and_the_others_say_so(store: Store) -> None:
    """There is no lock: the server takes one commit of `runs` with a number, by a conditional put.

    Writers look at the log before they commit, so the server refuses only those who come a moment later.
    """
    for number in range(RACES_MAX):
        one_of_writers_wins(StorePath(store.address(f"race/{number}")))
        if any("412" in line.split() for line in store.log.read_text().splitlines()):
            return
    pytest.fail("the store has refused no commit")


@IN_EACH
@pytest.mark.parametrize("is_committed", [False, True])
def test_where_the_last_commit_fails_there_no_file_goes_that_it_may_have_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """A request that failed may be on its way, so what is not there yet does not count as refused."""
    place = StorePath(store.address(f"failing-{is_committed}"))

    def fail(*args: Any, **more: Any) -> int:
        if is_committed:
            add_rows(*args, **more)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def take(run_id: str) -> list[StorePath]:
        with transaction(place) as change:
            folder, name = change.place("quarantine"), new_name(change.mark, "2026-11-20")
            change.add("quarantine", [write_file(folder, name, pa.table({"line": ["x"]}), "2026-11-20")])
            change.commit(run_id, RUN, [Write(table="quarantine", schema=stored_schema("quarantine"))])
        return [place / "quarantine" / file.name for file in Tables(place).snapshot("quarantine")]

    with monkeypatch.context() as patch:
        patch.setattr(transactions, "add_rows", fail)
        with pytest.raises(TablesError, match="input/output error"):
            take("failed")
    written = [name for name in names_below(place / "quarantine") if name.startswith("day=")]
    assert len(written) == 1
    assert sorted(Tables(place).state().runs) == (["failed"] if is_committed else [])
    found = take("next")
    assert len(found) == 1 + is_committed
    assert all(size_of(path) for path in found)


def test_errors_tell_the_place_and_the_reason_and_no_secret(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables.at(store.address("errors"))
    assert tables.state().number == 0
    for name, value, reason in (
        ("AWS_SECRET_ACCESS_KEY", "wrong-secret-of-somebody", "permission denied"),
        ("AWS_ACCESS_KEY_ID", "nobody", "permission denied|the store answers"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(TablesError, match=reason) as caught:
                tables.state()
        said = f"{caught.value!r} {caught.value.__cause__!r}"
        assert "errors" in said
        assert not [text for text in (KEY, store.secret, value, "Signature", "<") if text in said]
    with pytest.raises(TablesError, match="nosuchbucket"):
        Tables.at("s3://no-such-bucket/errors").state()
    assert store.secret not in repr(tables) + repr(store)


@IN_EACH
def test_a_file_of_many_parts_is_there_whole_and_may_be_gone_when_it_is_removed(store: Store) -> None:
    rows = pa.table({"line": [Random(number).randbytes(1 << 20) for number in range(12)]})
    place = StorePath(store.address("parts"))
    file = write_file(place, new_name("mark", "2026-11-20"), rows, "2026-11-20")
    assert parquet.read_table(source_of(place / file.name)).equals(rows)
    assert size_of(place / file.name) > 12 << 20
    for _ in range(2):
        remove_file(place / file.name)
        assert not names_below(place)


@pytest.mark.parametrize(
    "address",
    [
        "s3://key:secret@bucket/access",
        "s3://bucket/access?secret=secret",
        "s3://bucket/a%20b",
        "s3://bucket/../other",
        "http://bucket/access",
        "abfss://container@account.dfs.core.windows.net:secret/x",
    ],
)
def test_an_address_with_a_secret_or_of_another_form_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(TablesError, match="credentials belong into the environment") as caught:
        Tables.at(address)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["gs://bucket/a/b", "abfss://lake@account.dfs.core.windows.net/a"])
def test_addresses_of_other_stores_have_the_same_parts(address: str) -> None:
    place = StorePath(f"{address}/")
    assert str(place / "day=2026-11-20" / "x.parquet") == f"{address}/day=2026-11-20/x.parquet"
    assert (place / "x").parent == place
    assert f"{place.root}/{place.key}" == address


def test_tables_there_are_checked_and_a_lost_roll_up_is_rebuilt(
    near: SparkSession, store: ObjectStore, audit: Path
) -> None:
    tables = Tables.at(store.address("checked"))
    run_pipeline(near, tables=tables, audit=audit)
    found = check_tables(near, tables)
    assert (found.faults, found.days > 0) == ((), True)
    assert not [each for each in found.tables if each.orphans]
    wanted = sorted(map(repr, tables.read(near, "audit_rollup").collect()))
    name = tables.snapshot("audit_rollup")[0].name
    (store.folder / "checked" / "audit_rollup" / name).unlink()
    [fault] = check_tables(near, tables).faults
    assert (fault.table, fault.file) == ("audit_rollup", name)
    forget()
    assert sorted(map(repr, tables.read(near, "audit_rollup").collect())) == wanted
    assert check_tables(near, tables).is_whole


def test_damage_there_is_named(near: SparkSession, store: ObjectStore, audit: Path) -> None:
    tables = Tables.at(store.address("damaged"))
    run_pipeline(near, tables=tables, audit=audit)
    name = tables.snapshot("audit_events")[0].name
    path = store.folder / "damaged" / "audit_events" / name
    path.write_bytes(b"no Parquet")
    with pytest.raises(TablesDamagedError, match="is not a readable Parquet file"):
        tables.read(near, "audit_events")
    shutil.rmtree(store.folder / "damaged" / "audit_events")
    with pytest.raises(TablesError, match="audit_events"):
        tables.read(near, "audit_events")
