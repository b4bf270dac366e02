"""What other programs do to tables: each function damages a table, and returns what an error must say."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from kustos.pipeline.tables import integrity, runs
from kustos.pipeline.tables.delta import files_of
from testkit.waiting import wait_until


def forget() -> None:
    """Forget what this process knows of tables, as a new process does not know it."""
    integrity._checked.clear()
    for cache in (integrity._files, runs._state, runs._rows):
        cache.cache_clear()


def newest_log(table: Path) -> Path:
    return max((table / "_delta_log").glob("*.json"))


def an_add_removed(table: Path) -> str:
    """Take an entry out of the last commit that has one; return the file that it adds."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    commit = next(each for each in reversed(commits) if '"add"' in each.read_text())
    lines = commit.read_text().splitlines()
    gone = next(line for line in lines if '"add"' in line)
    commit.write_text("\n".join(line for line in lines if line != gone) + "\n")
    return str(json.loads(gone)["add"]["path"])


def some_file(table: Path) -> Path:
    return table / files_of(DeltaTable(str(table)))[0].name


def a_file_gone(table: Path) -> str:
    file = some_file(table)
    file.unlink()
    return file.name


def a_file_replaced(table: Path) -> str:
    file = some_file(table)
    parquet.write_table(pa.table({"text": ["another", "and another"]}), file)
    return file.name


def a_foreign_vacuum(table: Path) -> str:
    """Go back to the first version, and remove the files that it does not have."""
    file = some_file(table)
    found = DeltaTable(str(table))
    found.restore(0)

    def vacuumed() -> bool:
        # a vacuum keeps a file that was removed in the same millisecond
        found.vacuum(0, dry_run=False, enforce_retention_duration=False)
        return not file.exists()

    wait_until(vacuumed, what="the vacuum removes the file")
    return "`RESTORE` of `delta-rs"


def an_optimize_and_a_vacuum(table: Path) -> str:
    found = DeltaTable(str(table))
    for _ in range(2):  # a table whose days have one file each changes, too
        found.delete()
    found.vacuum(0, dry_run=False, enforce_retention_duration=False)
    return "`DELETE` of `delta-rs"


def an_older_state(table: Path) -> str:
    """Take away the last commit, as a restored copy of the folder lacks it."""
    newest_log(table).unlink()
    return "has restored an older state"


def an_older_state_with_other_commits(table: Path) -> str:
    """Restore an older state, and reach the version that `runs` names with commits of another program."""
    newest_log(table).unlink()
    found = DeltaTable(str(table))
    file = pa.table({"text": ["forged"] * 9, "day": pa.array([None] * 9, pa.date32())})
    write_deltalake(found, file, mode="append")
    return "rows by its log, but run 2"


def a_gap_in_the_log(table: Path) -> str:
    (table / "_delta_log" / f"{1:020d}.json").unlink()
    return table.name


def a_commit_emptied(table: Path) -> str:
    newest_log(table).write_text("")
    return "rows by its log, but run 2"


def a_table_gone(table: Path) -> str:
    shutil.rmtree(table)
    return "is gone"


def unreadable_log(table: Path) -> str:
    newest_log(table).write_text("{\n")
    return table.name
