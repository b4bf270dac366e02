"""A program that runs commands of the pipeline in one Spark, each with one path closed; tells how each ended.

Its arguments: a file of steps, and where its answers go, both JSON.
"""

import hashlib
import io
import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from kustos.cli.run import run
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import Tables
from testkit import spark_daemon
from testkit.spark_quick import INTERPRETED, PLANNED_ONCE, SETTINGS


@contextmanager
def closed(path: Path, mode: int) -> Iterator[None]:
    """Give a path this mode for a while."""
    former = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(former)


def digest(tables: Path) -> str:
    """Return what tells the rows of tables and their state, as readers see them."""
    held = Tables(tables)
    state = held.state()
    found = hashlib.sha256(repr(state).encode())
    for name in state.versions:
        for file in held.snapshot(name):
            found.update(file.name.encode() + b"\0" + (tables / name / file.name).read_bytes())
    return found.hexdigest()


def taken(step: dict[str, Any], tables: Path) -> dict[str, Any]:
    """Run a step's command; return its exit code, what it said, and whether the tables are as before."""
    before = digest(tables)
    output, errors = io.StringIO(), io.StringIO()
    path = next(tables.parent.glob(step["path"]))
    with closed(path, step["mode"]), redirect_stdout(output), redirect_stderr(errors):
        try:
            code: int | str = run(step["words"])
        except Exception:  # noqa: BLE001 - the answer says what a person would have seen
            code = traceback.format_exc()
    said = {"path": str(path), "code": code, "out": output.getvalue(), "err": errors.getvalue()}
    return {**said, "unchanged": before == digest(tables)}


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings = {**SETTINGS, **INTERPRETED, **PLANNED_ONCE}
    settings["spark.python.daemon.module"] = spark_daemon.MODULE
    with open_session("permissions", master="local[1]", settings=settings):
        answers = [taken(step, Path(plan["tables"])) for step in plan["steps"]]
    Path(sys.argv[2]).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
