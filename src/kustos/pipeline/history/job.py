"""The record judged by the ACLs then in force, over the tables."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.tables.store import Tables
from kustos.pipeline.task_errors import task_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JUDGE_STEPS: Final = ("reading the history", "judging by the ACLs then in force", "looking for what differs")

_VERDICTS: Final = ("AGREES", "DIFFERS", "UNCERTAIN", "OUT_OF_RANGE", "NOT_JUDGED")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuestion:
    """The inputs of a judgement: history, settings and days.

    `metadata` is a metadata log, read up to `end_offset`, not including it (None: to its end). The other
    settings are those of that time, see `judged_by_history`. Both days (UTC) are included. `by_rollup`
    judges `audit_rollup` instead of `audit_events`: quicker, but less exact, as it has no offsets.
    """

    metadata: Path
    end_offset: int | None = None
    super_users: str | None = None
    allow_everyone_if_no_acl_found: bool = False
    from_day: date | None = None
    to_day: date | None = None
    by_rollup: bool = False


def run_judgement(
    spark: "SparkSession", tables: Tables, question: JudgeQuestion, progress: Progress = silent
) -> tuple[Tables, dict[str, Any]]:
    """Replace what `judged` and `discrepancies` have on the cluster of the tables, in one commit.

    Returns the tables as of that commit, and sums. `history`: its extent, the row of METADATA_RANGE_SCHEMA.
    `verdicts`: for each, its `events` and `accesses` (rows of `judged`). `discrepancies`: for each kind its
    `count` and `events`. Raises what `Tables` raises and `MetadataHistoryError`.
    """
    from kustos.pipeline.history import (
        discrepancies,
        judged_by_history,
        read_history,
    )
    from kustos.pipeline.history.judgement import EVENT_COLUMNS

    tables = tables.rolled_up(spark).of_cluster()
    with task_errors():
        progress(JUDGE_STEPS[0])
        log_range = read_history(spark, question.metadata, "range", end_offset=question.end_offset).persist()
        try:
            extent = log_range.collect()[0].asDict()
            progress(JUDGE_STEPS[1])
            rows = tables.read(
                spark,
                "audit_rollup" if question.by_rollup else "audit_events",
                columns=None if question.by_rollup else EVENT_COLUMNS,
                first_day=question.from_day,
                last_day=question.to_day,
            )
            judged = judged_by_history(
                rows,
                # of a log that grows meanwhile, read only the part that `log_range` describes
                read_history(spark, question.metadata, end_offset=extent["to_offset"] + 1),
                log_range=log_range,
                super_users=question.super_users,
                allow_everyone_if_no_acl_found=question.allow_everyone_if_no_acl_found,
            )
            # computed before the tables are locked, and read twice
            judged = judged.localCheckpoint()
        finally:
            log_range.unpersist()
    progress(JUDGE_STEPS[2])
    tables = tables.update("judge", lambda _: {"judged": judged, "discrepancies": discrepancies(judged)})
    return tables, {
        "history": extent,
        "verdicts": _verdicts(tables.read(spark, "judged")),
        "discrepancies": _kinds(tables.read(spark, "discrepancies")),
    }


def _verdicts(judged: "DataFrame") -> list[dict[str, Any]]:
    from pyspark.sql import functions as sql

    sums = judged.groupBy("verdict").agg(
        sql.sum("event_count").alias("events"), sql.count(sql.lit(1)).alias("accesses")
    )
    found = {row["verdict"]: row.asDict() for row in sums.collect()}
    return [found[verdict] for verdict in _VERDICTS if verdict in found]


def _kinds(discrepancies: "DataFrame") -> list[dict[str, Any]]:
    from pyspark.sql import functions as sql

    sums = discrepancies.groupBy("kind").agg(
        sql.count(sql.lit(1)).alias("count"), sql.sum("event_count").alias("events")
    )
    return [row.asDict() for row in sums.orderBy("kind").collect()]
