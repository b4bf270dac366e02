"""The declarations of the tables: what is derived from them, and that they are whole."""

import json
from pathlib import Path

from deltalake import DeltaTable

from kustos.pipeline.report.job import ANSWERS, NOTABLE
from kustos.pipeline.schemas.meanings import OF_TABLES, meaning_of
from kustos.pipeline.tables import Tables
from kustos.pipeline.tables.integrity import remedy
from kustos.pipeline.tables.layout import BY_DAY, GROWING, LINES, TABLES, Loss, stored_schema
from kustos.pipeline.tables.runs import UPKEEP
from kustos.pipeline.tables.transaction import Write


def test_every_column_has_a_meaning_and_every_meaning_a_column() -> None:
    for table in TABLES.values():
        names = table.schema.fieldNames()
        assert all(meaning_of(table.name, name) for name in names)
        assert set(OF_TABLES.get(table.name, {})) <= set(names), table.name
        assert set(table.key) <= set(names), table.name
    assert set(OF_TABLES) <= set(TABLES)


def test_each_list_of_tables_is_derived() -> None:
    assert {"audit_events", "security_events", "audit_rollup"} == BY_DAY
    assert {"audit_raw", "quarantine"} == LINES
    assert BY_DAY | LINES == GROWING
    assert {*ANSWERS, *NOTABLE} <= set(TABLES)
    kept = {table.name for table in TABLES.values() if table.loss is Loss.RESTORE}
    assert kept == {
        *("audit_raw", "audit_events", "security_events", "quarantine"),
        *("anomalies", "anomaly_states", "runs", "inputs"),
    }


def test_damage_of_each_kind_of_table_has_its_remedy() -> None:
    assert remedy("audit_events", of_file=True).startswith("restore it from a backup")
    assert remedy("audit_rollup") == "`kustos pipeline run` rebuilds it from the events"
    assert remedy("audit_rollup", of_file=True).startswith(
        "if the events are right, remove the file; `kustos"
    )
    assert "replaces it when it runs again" in remedy("replay_flips")
    assert "replaces it when it runs again" in remedy("a_table_of_mine")


def test_the_logs_of_delta_have_the_meanings_as_comments(tmp_path: Path) -> None:
    with Tables(tmp_path).transaction() as change:
        writes = [
            Write(table=name, schema=stored_schema(name), has_days=name in GROWING)
            for name in ("audit_events", "access_review")
        ]
        change.commit("made", UPKEEP, writes)
    for name in ("audit_events", "access_review", "runs"):
        fields = json.loads(DeltaTable(tmp_path / name).schema().to_json())["fields"]
        for field in fields:
            assert field["metadata"] == {"comment": meaning_of(name, field["name"])}
