"""Rows brought into tables as a run commits them, without Spark."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from kustos.pipeline.tables import Tables
from kustos.pipeline.tables.delta import new_name, write_file
from kustos.pipeline.tables.layout import stored_schema
from kustos.pipeline.tables.runs import UPKEEP
from kustos.pipeline.tables.transaction import Write


def fill(tables: Tables, name: str, rows: Mapping[str, pa.Table], **options: Any) -> None:
    """Add a file of rows for each day (ISO) to a table; `options` are those of Arrow's writer."""
    with tables.transaction() as change:
        for day, table in rows.items():
            file = write_file(change.place(name), new_name(change.mark, day), table, day, **options)
            change.add(name, [file])
        change.commit("fill", UPKEEP, [Write(table=name, schema=stored_schema(name))])


def folder_of(tables: Tables) -> Path:
    """Return the folder of tables that lie on a disk."""
    assert isinstance(tables.folder, Path)
    return tables.folder
