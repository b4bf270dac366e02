"""One job of the pipeline, for spark-submit or in a Spark of its own.

    job.py CASE INPUT OUTPUT ACLS [MASTER]

reads the folder INPUT, writes into the folder OUTPUT and prints one JSON line with the seconds of the job.
ACLS: how many today's set has. Without a MASTER the cluster is that of spark-submit.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.replaying.estate import acl_sets
from benchmarks.replaying.events import DAYS, START_MS, files_by_day
from kustos.pipeline.replay.job import replay_of_tables
from kustos.pipeline.review.job import ReviewQuestion, run_review
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import Tables
from kustos.pipeline.tables.layout import AUDIT_ROLLUP, RUNS, stored_schema
from kustos.pipeline.tables.rollup.days import write_rollup
from kustos.pipeline.tables.runs import UPKEEP
from kustos.pipeline.tables.transaction import Write

DORMANT_DAYS: Final = 3
UNBOUNDED: Final = "8g"


def roll_up(spark: SparkSession, source: Path, target: Path, _acls: int) -> None:
    """Make the roll-up of events by column, as a run does."""
    with Tables(target).transaction() as change:
        place, partial = change.place(AUDIT_ROLLUP), change.stage("partial")
        files = write_rollup(spark, files_by_day(source), place, partial, change.mark)
        change.add(AUDIT_ROLLUP, files)
        written = Write(table=AUDIT_ROLLUP, schema=stored_schema(AUDIT_ROLLUP))
        change.commit("roll-up", UPKEEP, [written])


def replay_with_rules(spark: SparkSession, source: Path, target: Path, acls: int) -> None:
    """Replay a candidate over a roll-up, with the rules that change."""
    _, candidate = acl_sets(acls)
    found = replay_of_tables(spark, Tables(source), candidate, rule_changes=True)
    found.flips.write.parquet(str(target / "flips"))


def replay(spark: SparkSession, source: Path, target: Path, acls: int) -> None:
    """Replay a candidate over the same roll-up, with what is lost and gained alone."""
    _, candidate = acl_sets(acls)
    found = replay_of_tables(spark, Tables(source), candidate, rule_changes=False)
    found.flips.write.parquet(str(target / "flips"))


def review(spark: SparkSession, source: Path, target: Path, acls: int) -> None:
    """Review all access and look for ACLs that nobody needs."""
    target.mkdir(parents=True)
    (target / AUDIT_ROLLUP).symlink_to(source / AUDIT_ROLLUP)
    shutil.copytree(source / RUNS, target / RUNS)
    today, _ = acl_sets(acls)
    as_of = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(days=DAYS)
    run_review(
        spark, Tables(target), ReviewQuestion(acls=today, as_of=as_of, dormant_days=DORMANT_DAYS, teams={})
    )


def take_in(spark: SparkSession, source: Path, target: Path, _acls: int) -> None:
    """Take lines of audit into tables, each event once."""
    run_pipeline(spark, tables=Tables(target), audit=source)


CASES: Final[dict[str, Callable[[SparkSession, Path, Path, int], None]]] = {
    "rollup": roll_up,
    "replay-with-rules": replay_with_rules,
    "replay": replay,
    "review": review,
    "take-in": take_in,
}


def main() -> None:
    case, source, target, acls, *masters = sys.argv[1:]
    settings = {"spark.driver.memory": UNBOUNDED} if masters else {}
    with open_session("spilling", master=masters[0] if masters else "", settings=settings) as spark:
        start = time.monotonic()
        CASES[case](spark, Path(source), Path(target), int(acls))
        seconds = time.monotonic() - start
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
