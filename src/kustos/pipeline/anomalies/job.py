"""The search for anomalies over the tables: keeps what earlier runs found, and says what became of it."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.progress import Progress, silent
from kustos.runtime import SystemClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kustos.pipeline.anomalies import State, Suppression, Window
    from kustos.pipeline.tables import Tables

ANOMALY_STEPS: Final = ("looking for anomalies", "summing up")


def run_anomalies(
    spark: "SparkSession",
    tables: "Tables",
    window: "Window",
    *,
    suppressions: "Sequence[Suppression]" = (),
    super_users: Collection[str] = (),
    limit: int,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Search the days of a window, and bring the tables `anomalies` and `anomaly_states` up to date at once.

    Returns of the anomalies of these days how many there are by `kinds` and by `states`, how many are `new`
    (no earlier run found them), and the gravest `anomalies` as rows of `anomaly_states`; suppressed ones are
    only counted. `record`: what the record covers of the judged days
    (`RecordCoverage`), in which days with denials alone count. `super_users` as in `find_anomalies`. The
    tables are those of one cluster. Raises what `find_anomalies` and `Tables.update` raise.
    """
    from kustos.pipeline.anomalies import (
        KEPT_DAYS,
        find_anomalies,
        kept,
        merged,
        of_cluster,
        states_of,
        stored_states,
        suppressed_by,
    )
    from kustos.pipeline.queries.record import RECORD_COLUMNS, RecordCoverage, recorded_days
    from kustos.pipeline.schemas import CLUSTER

    tables = tables.rolled_up(spark)
    progress(ANOMALY_STEPS[0])
    now = datetime.fromtimestamp(SystemClock().wall_ms() / 1000, UTC)
    kept_days = tables.read(
        spark,
        "audit_rollup",
        columns=RECORD_COLUMNS,
        first_day=window.end - timedelta(days=KEPT_DAYS),
        last_day=window.end - timedelta(days=1),
    )
    recorded = recorded_days(kept_days, with_denials=True)
    end = datetime.combine(window.end, time(), UTC)
    record = RecordCoverage.of(recorded, end, (window.end - window.start).days)
    search = find_anomalies(
        spark,
        window=window,
        rollup=tables.read(spark, "audit_rollup"),
        security_events=tables.read(spark, "security_events"),
        super_users=super_users,
        keep=kept,
    )
    # computed before the tables are locked; the plan, which is planned again with each step, ends here
    found = of_cluster(search, tables.chosen_cluster.name).localCheckpoint()

    def rows_after(before: "Tables") -> "dict[str, DataFrame]":
        together = merged(before.read(spark, "anomalies").drop("suppressed_by", CLUSTER), found)
        rows = kept(together.withColumn("suppressed_by", suppressed_by(suppressions)))
        former = before.read(spark, "anomaly_states").drop(CLUSTER)
        judged_until = window.end - timedelta(days=1)
        return {
            "anomalies": rows,
            "anomaly_states": states_of(rows, former, judged_until=judged_until, recorded=recorded, now=now),
        }

    tables = tables.update("find-anomalies", rows_after, is_kept=True)
    progress(ANOMALY_STEPS[1])
    sums = _sums(stored_states(tables), window, now, limit)
    return {"record": record, **sums}


def _sums(states: "Iterable[State]", window: "Window", now: datetime, limit: int) -> dict[str, Any]:
    # an anomaly is of these days if it was first or last seen on one, or before and after them
    seen = [row for row in states if row["last_day"] >= window.start and row["first_day"] < window.end]
    shown = [row for row in seen if row["state"] != "SUPPRESSED"]

    def gravity(row: "State") -> tuple[Any, ...]:
        severity = ("HIGH", "MEDIUM", "LOW").index(row["severity"])
        return row["state"] != "OPEN", severity, -row["score"], row["first_time"], row["anomaly_id"]

    return {
        "kinds": dict(sorted(Counter(row["kind"] for row in shown).items())),
        "states": dict(sorted(Counter(row["state"] for row in seen).items())),
        "new": sum(row["recorded_at"] == now for row in shown),
        "anomalies": sorted(shown, key=gravity)[:limit],
    }
