"""Whole commands: five million lines of logs into tables, and their replay, beside DuckDB's SQL alone.

- ingest-5m: `kustos pipeline run` of two brokers' audit logs of twenty days, with two million distinct uses,
  into empty tables, duplicates looked for, the roll-up included. Theirs: one `regexp_extract`, Parquet by
  day, a `GROUP BY` for the roll-up
- replay-5m-cold: `kustos pipeline replay` of those tables by 20,000 ACLs. Theirs: the roll-up joined with the
  ACLs by name, prefix and wildcard
- ingest-5m-s3, replay-5m-cold-s3: both with the tables in an object store, a server of S3 on the same machine
  over the same disk; theirs are ours with the tables in a folder
- session-start: of each of our commands, what a process takes that opens a session and counts one row

Each command is a process of its own, by the wall from its start to its end, in turns; medians of the rounds.
Both sides must find the same events, uses and flips.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.whole.data import write_logs
from testkit.object_store import ObjectStore, object_store

LINES: Final = 100_000 if QUICK else 5_000_000
ACLS: Final = 2_000 if QUICK else 20_000
ROUNDS: Final = 1 if QUICK else 3

CONFIGURATION: Final = """\
version: 1
tables: {{path: "{tables}"}}
inputs:
  - files: {folder}/audit
"""

START: Final = """
from kustos.pipeline.session import open_session
with open_session("start") as spark:
    spark.range(1).count()
"""

PYTHON: Final = sys.executable


def timed(*command: str) -> tuple[float, str]:
    """Run a command to its end; return its seconds and what it prints."""
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.monotonic() - start
    if done.returncode:
        raise SystemExit(f"`{' '.join(command[1:])}` failed:\n{done.stderr[-3000:]}")
    return took, done.stdout


def ours(folder: Path, tables: str, *arguments: str) -> tuple[float, Any]:
    """Run a command of `kustos pipeline` over the tables of an address; return its seconds and its answer."""
    configuration = folder / "pipeline.yml"
    configuration.write_text(CONFIGURATION.format(folder=folder, tables=tables), encoding="utf-8")
    command = (PYTHON, "-m", "kustos", "pipeline", *arguments, "--output", "json")
    took, said = timed(*command, "--config", str(configuration))
    return took, json.loads(said)


def theirs(folder: Path, step: str) -> tuple[float, Any]:
    """Run a step of DuckDB's side; return its seconds and what it found."""
    took, said = timed(PYTHON, "-m", "benchmarks.whole.theirs", step, str(folder))
    return took, json.loads(said)


def of_one_round(folder: Path, candidate: Path, store: ObjectStore) -> dict[str, float]:
    """Run each command once, into empty tables in the folder and in the store; return their seconds.

    Raises `SystemExit` where both sides find something else.
    """
    for place in (folder / "tables", folder / "theirs", store.folder / "tables"):
        shutil.rmtree(place, ignore_errors=True)
    took: dict[str, float] = {}
    took["their ingest"], their_counts = theirs(folder, "ingest")
    took["their replay"], their_flips = theirs(folder, "replay")
    for side, tables in (("our", str(folder / "tables")), ("S3", store.address("tables"))):
        took[f"{side} ingest"], ran = ours(folder, tables, "run")
        took[f"{side} replay"], replayed = ours(folder, tables, "replay", str(candidate))
        events = ran["inputs"][0]["events"]
        flips = {kind["kind"]: [kind["flip_count"], kind["event_count"]] for kind in replayed["kinds"]}
        if (events, flips) != (their_counts["events"], their_flips) or events != LINES:
            raise SystemExit(f"we find {events} events and {flips}, they {their_counts} and {their_flips}")
    took["start"], _ = timed(PYTHON, "-c", START)
    return took


def main() -> None:
    rounds: list[dict[str, float]] = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-whole-") as scratch,
        object_store(Path(scratch), optimized=True) as store,
    ):
        folder = Path(scratch)
        os.environ.update(store.environment)
        progress(f"writing {LINES:,} lines")
        candidate = write_logs(folder, LINES, ACLS)
        for number in range(1, ROUNDS + 1):
            rounds.append(of_one_round(folder, candidate, store))
            shown = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in rounds[-1].items())
            progress(f"round {number} of {ROUNDS}: {shown}")
    taken = {name: median(each[name] for each in rounds) for name in rounds[0]}
    common: dict[str, Any] = {"unit": "s", "size": LINES}
    figures = [
        Figure(name="ingest-5m", ours=taken["our ingest"], theirs=taken["their ingest"], floor=0.4, **common),
        Figure(
            name="replay-5m-cold",
            ours=taken["our replay"],
            theirs=taken["their replay"],
            floor=0.15,
            **common,
        ),
        Figure(name="ingest-5m-s3", ours=taken["S3 ingest"], theirs=taken["our ingest"], **common),
        Figure(name="replay-5m-cold-s3", ours=taken["S3 replay"], theirs=taken["our replay"], **common),
        Figure(name="session-start", ours=taken["start"], theirs=taken["our replay"], **common),
    ]
    for figure in figures:
        progress(figure.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
