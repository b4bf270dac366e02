"""Our side, in a process of its own: Spark over all cores, warmed up, then so many rounds of one case.

    python -m benchmarks.replaying.ours CASE EVENTS ACLS ROUNDS MEMORY [TIMES [CANDIDATES]]

prints one JSON line: seconds of each round, what was found, spilled bytes and peaks of memory from Spark's
own event log. TIMES: the files so many times over.
CANDIDATES: ask a set of so many ACLs.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks.replaying.estate import acl_sets
from benchmarks.replaying.event_log import Used, used
from benchmarks.replaying.events import CACHE, WARM_EVENTS, files_by_day, folder_of
from benchmarks.replaying.processor import tree_seconds
from kustos.pipeline.deciding import AclsInForce, decide_each, distinct_questions, ship
from kustos.pipeline.replay import (
    Replay,
    flips_of_files,
    flips_of_rows,
    verdict_on_each_event,
)
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, AUDIT_ROLLUP_SCHEMA
from kustos.pipeline.session import open_session
from kustos.pipeline.tables.rollup.days import write_rollup

OF_ROLLUP: Final = ("replay-rollup", "decide-distinct")
"""Cases that need a roll-up, which only the full size has: their first round is the one that warms up."""

PYTHON_BATCH_ROWS: Final = "65536"

Found = dict[str, Any]
"""Sums of flips, which both sides must have the same of; nothing where a case finds none."""


def answer(flipped: DataFrame) -> Found:
    """Return the report of a replay: by kind, and the sizes and totals of the other sums."""
    found = Replay(flipped).cached()
    kinds = {
        f"{row['kind']} {row['access']}": [row["flip_count"], row["event_count"]]
        for row in found.by_kind.collect()
    }
    by_principal, by_resource = found.by_principal.toArrow(), found.by_resource.toArrow()
    found.release()
    return {
        "kinds": dict(sorted(kinds.items())),
        "principals": by_principal.num_rows,
        "resources": by_resource.num_rows,
    }


class Cases:
    """What can be measured over the events of one folder."""

    def __init__(
        self, spark: SparkSession, events: int, acls: int, candidate: AclsInForce, times: int = 1
    ) -> None:
        self._spark: Final = spark
        self._times: Final = times
        self._folder: Final = folder_of(events, acls)
        self._candidate: Final = candidate

    def events(self) -> DataFrame:
        return self._spark.read.schema(AUDIT_EVENTS_SCHEMA).parquet(str(self._folder))

    def days(self) -> DataFrame:
        return self._spark.read.schema(AUDIT_ROLLUP_SCHEMA).parquet(str(self._rollup))

    def replay_raw(self) -> Found:
        return self._replay_of_files("audit_events", self._folder, with_example=False)

    def replay_raw_examples(self) -> Found:
        return self._replay_of_files("audit_events", self._folder, with_example=True)

    def replay_raw_rules(self) -> Found:
        return self._replay_of_files("audit_events", self._folder, with_example=False, rule_changes=True)

    def replay_rows(self) -> Found:
        shipped = ship(self._spark, self._candidate)
        return answer(
            flips_of_rows(self.events(), "audit_events", shipped, rule_changes=False, with_example=False)
        )

    def rollup_build(self) -> Found:
        shutil.rmtree(self._rollup, ignore_errors=True)
        partial = self._rollup.with_name("partial")
        write_rollup(self._spark, files_by_day(self._folder), self._rollup, partial, "bench")
        return {}

    def replay_rollup(self) -> Found:
        return self._replay_of_files("audit_rollup", self._rollup, with_example=True)

    def decide_distinct(self) -> Found:
        asked = distinct_questions(self.days())
        decided = decide_each(asked, ship(self._spark, self._candidate), with_rule=False)
        return {row["decision"]: row["count"] for row in decided.groupBy("decision").count().collect()}

    def bare_copy(self) -> Found:
        self._write(self.events(), self._folder.with_name("copy"))
        return {}

    def verdicts(self) -> Found:
        shipped = ship(self._spark, self._candidate)
        self._write(verdict_on_each_event(self.events(), shipped), self._folder.with_name("verdicts"))
        return {}

    def _replay_of_files(
        self, table: str, folder: Path, *, with_example: bool, rule_changes: bool = False
    ) -> Found:
        files = sorted(folder.rglob("*.parquet")) * self._times
        shipped = ship(self._spark, self._candidate)
        found = flips_of_files(
            self._spark, table, files, shipped, with_example=with_example, rule_changes=rule_changes
        )
        return answer(found)

    @property
    def _rollup(self) -> Path:
        return self._folder.with_name(f"rollup-of-{self._folder.name}")

    def _write(self, frame: DataFrame, path: Path) -> None:
        frame.write.mode("overwrite").parquet(str(path))

    def by_name(self) -> dict[str, Callable[[], Found]]:
        return {
            "replay-raw": self.replay_raw,
            "replay-raw-examples": self.replay_raw_examples,
            "replay-raw-rules": self.replay_raw_rules,
            "replay-rows": self.replay_rows,
            "rollup-build": self.rollup_build,
            "replay-rollup": self.replay_rollup,
            "decide-distinct": self.decide_distinct,
            "bare-copy": self.bare_copy,
            "verdicts": self.verdicts,
        }


def measure(
    case: str, events: int, acls: int, rounds: int, memory: str, times: int = 1, candidates: int | None = None
) -> dict[str, Any]:
    """Run a case so many times; raise `SystemExit` unless it finds the same each time."""
    _, candidate = acl_sets(candidates or acls)
    log = Path(tempfile.mkdtemp(prefix="event-log-", dir=CACHE))
    settings = {
        "spark.driver.memory": memory,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": log.as_uri(),
        "spark.executor.processTreeMetrics.enabled": "true",
        "spark.local.dir": str(CACHE),
        "spark.sql.execution.arrow.maxRecordsPerBatch": PYTHON_BATCH_ROWS,
    }
    seconds, core_seconds, found = [], [], []
    try:
        with open_session("benchmark", settings=settings) as spark:
            if case not in OF_ROLLUP:
                Cases(spark, WARM_EVENTS, acls, candidate).by_name()[case]()
            for _ in range(rounds + (case in OF_ROLLUP)):
                start, start_of_cores = time.monotonic(), tree_seconds()
                found.append(Cases(spark, events, acls, candidate, times).by_name()[case]())
                seconds.append(time.monotonic() - start)
                core_seconds.append(tree_seconds() - start_of_cores)
        spent: Used = used(log)
    finally:
        shutil.rmtree(log)
    if any(each != found[0] for each in found):
        raise SystemExit(f"{case} finds something else each time: {found}")
    first = 1 if case in OF_ROLLUP else 0
    return {"seconds": seconds[first:], "core_seconds": core_seconds[first:], "found": found[0], **spent}


def main() -> None:
    case, events, acls, rounds, memory, *more = sys.argv[1:]
    print(json.dumps(measure(case, int(events), int(acls), int(rounds), memory, *map(int, more))))


if __name__ == "__main__":
    main()
