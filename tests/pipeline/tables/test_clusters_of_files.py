"""The clusters of tables by what Delta's log tells of their files: counted by the files that it opens."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kustos.pipeline.tables import Tables, clusters, compact_tables, delta, parquet_reader
from kustos.pipeline.tables.layout import stored_schema
from kustos.pipeline.tables.statistics import CLUSTER_CHARACTERS_MAX
from tests.pipeline.tables.filling import fill

FIRST = date(2026, 1, 1)


def rolled_up(*names: str | None) -> pa.Table:
    """Return a row of a roll-up for each of these clusters."""
    schema = stored_schema("audit_rollup")
    time = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [{"cluster": name, "principal": "User:a", "event_count": 1, "first_time": time} for name in names]
    return pa.Table.from_pylist(rows, schema=schema).drop_columns("day")


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The days whose files were opened."""
    found: Counter[str] = Counter()

    def source_of(place: Path) -> Any:
        found[place.parent.name.removeprefix("day=")] += 1
        return str(place)

    for module in (clusters, parquet_reader):
        monkeypatch.setattr(module, "source_of", source_of)
        monkeypatch.setattr(module, "stamp_of", lambda _: id(found))  # forgets what other tests opened
    return found


def test_days_of_one_cluster_each_are_not_opened(tmp_path: Path, opened: Counter[str]) -> None:
    tables = Tables(tmp_path)
    assert tables.clusters() == ()
    fill(tables, "audit_rollup", {day(n): rolled_up(("east", "west")[n % 2]) for n in range(90)})
    assert tables.clusters() == ("east", "west")
    assert tables.of_cluster("west").chosen_cluster.name == "west"
    assert not opened


def test_only_days_of_several_clusters_are_opened(tmp_path: Path, opened: Counter[str]) -> None:
    tables = Tables(tmp_path)
    days = {day(n): rolled_up("east") for n in range(60)}
    fill(tables, "audit_rollup", days | {day(70): rolled_up("east", "north", "west"), day(71): rolled_up("")})
    assert tables.clusters() == ("", "east", "north", "west")
    assert set(opened) == {day(70)}


def test_what_the_log_cannot_tell_is_read(tmp_path: Path, opened: Counter[str]) -> None:
    tables = Tables(tmp_path)
    long = "x" * CLUSTER_CHARACTERS_MAX
    rows = {
        day(1): rolled_up("east", None),
        day(2): rolled_up("west").drop_columns("cluster"),
        day(3): rolled_up(long),
        day(4): rolled_up(f"{long}y"),
        day(5): rolled_up(f"{'z' * 9_999}1"),
    }
    fill(tables, "audit_rollup", rows)
    assert tables.clusters() == ("", "east", long, f"{long}y", f"{'z' * 9_999}1")
    assert set(opened) == {day(n) for n in (1, 2, 4, 5)}
    assert all(
        len(name or "") <= CLUSTER_CHARACTERS_MAX
        for file in tables.snapshot("audit_rollup")
        for name in (file.statistics.first_cluster, file.statistics.last_cluster)
    )


def test_a_checkpoint_of_the_log_tells_it_too(tmp_path: Path, opened: Counter[str]) -> None:
    tables = Tables(tmp_path)
    fill(tables, "audit_rollup", {day(n): rolled_up("east") for n in range(3)})
    table = delta.open_table(tables.place("audit_rollup"))
    assert table is not None
    table.create_checkpoint()
    (tmp_path / "audit_rollup" / delta.LOG / f"{0:020d}.json").unlink()
    delta.vacuum(tables.place("audit_rollup"))
    fill(tables, "audit_rollup", {day(9): rolled_up("west")})
    assert tables.clusters() == ("east", "west")
    assert not opened


def test_compacted_days_name_the_same_clusters(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    long = "x" * 200
    for names in (("east",), ("east",), (long,), (f"{long}a", f"{long}b"), (None,)):
        fill(tables, "audit_rollup", {day(1): rolled_up(*names)})
    expected = ("", "east", long, f"{long}a", f"{long}b")
    assert tables.clusters() == expected
    assert compact_tables(tables, most_files=2) == (f"audit_rollup/day={day(1)}",)
    assert len(tables.snapshot("audit_rollup")) == 1
    assert tables.clusters() == expected
    for name in (long, long):
        fill(tables, "audit_rollup", {day(2): rolled_up(name)})
    assert compact_tables(tables, most_files=1) == (f"audit_rollup/day={day(2)}",)
    assert tables.clusters() == expected
