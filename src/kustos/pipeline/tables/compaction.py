"""Many small files of a day become few: the same rows, with columns that this version does not know."""

from collections import Counter
from typing import Final

from kustos.pipeline.tables.delta import vacuum
from kustos.pipeline.tables.runs import UPKEEP
from kustos.pipeline.tables.store import GROWING, Tables
from kustos.pipeline.tables.transaction import Compaction

MOST_FILES: Final = 32
"""Files of a day above which a run compacts it: opening one costs some milliseconds."""

MAXIMUM_DAYS: Final = 64
"""Days compacted in one transaction; the next run compacts the next ones."""

FILE_BYTES: Final = 128 * 1024 * 1024
"""About the size of a compacted file."""


def compact_tables(tables: Tables, *, most_files: int = MOST_FILES) -> tuple[str, ...]:
    """Compact each day of more than `most_files` files; return the days as `TABLE/day=DAY`.

    Rows do not change, and a kill at any moment leaves either the old files or the new ones. Files that no
    reader needs any more are removed. Raises `TablesInUseError` if another run is writing.
    """
    changes = [
        Compaction(table=table, days=days, file_bytes=FILE_BYTES)
        for table in sorted(GROWING)
        if (days := _crowded_days(tables, table, most_files))
    ]
    if not changes:
        return ()
    with tables.transaction() as change:
        change.commit("compact", UPKEEP, changes)
    for one in changes:
        vacuum(tables.place(one.table))
    return tuple(f"{one.table}/day={day}" for one in changes for day in one.days)


def _crowded_days(tables: Tables, table: str, most_files: int) -> tuple[str, ...]:
    counts = Counter(file.day for file in tables.snapshot(table))
    crowded = sorted(day for day, count in counts.items() if day is not None and count > most_files)
    return tuple(crowded[:MAXIMUM_DAYS])
