"""Rows brought into tables as a run commits them, without Spark."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from kustos.pipeline.tables import Tables
from kustos.pipeline.tables.runs import UPKEEP
from kustos.pipeline.tables.store import LINES, stored_schema
from kustos.pipeline.tables.transaction import Write


def fill(tables: Tables, name: str, rows: Mapping[str, pa.Table], **options: Any) -> None:
    """Add a file of rows for each day (ISO) to a table; `options` are those of Arrow's writer."""
    with tables.transaction() as change:
        writes = []
        for day, table in rows.items():
            staged = change.stage(name) if name in LINES else change.stage(name) / f"day={day}"
            staged.mkdir(parents=True, exist_ok=True)
            parquet.write_table(table, staged / f"part-{change.state.number}-{day}.parquet", **options)
        taken = date.fromisoformat(next(iter(rows))) if name in LINES else None
        writes.append(Write(table=name, schema=stored_schema(name), day=taken))
        change.commit("fill", UPKEEP, writes)
