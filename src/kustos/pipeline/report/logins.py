"""The report's data on logins: failures by name, address and time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import DataFrame

from kustos.pipeline.queries import logins as queries
from kustos.pipeline.report.charts import Bar, Chart, chart_of

SOURCES_SHOWN: Final = 15
"""Names and addresses that failed most; table `security_events` has them all."""


@dataclass(frozen=True, slots=True)
class FailureSource:
    """A name tried from an address; a null name means none or many, a null address many."""

    name: str | None
    host: str | None
    failed: int
    succeeded: int
    first_time: datetime
    last_time: datetime
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Logins:
    """Sums of all logins, and the sources that failed most."""

    succeeded: int
    failed: int
    names: int
    hosts: int
    chart: Chart | None
    """Logins that succeeded (allowed) and failed (denied)."""
    sources: tuple[FailureSource, ...]


def collect_logins(
    security: DataFrame, width_for: Callable[[datetime | None, datetime | None], int]
) -> Logins | None:
    """Return the logins of `security_events`, None if it has none; `width_for` gives the seconds of a bar."""
    found = queries.logins(security).cache()
    try:
        sums = queries.login_totals(found).collect()[0].asDict()
        if sums["first_time_ms"] is None:
            return None
        width = width_for(_time(sums.pop("first_time_ms")), _time(sums.pop("last_time_ms")))
        buckets = {
            int(row["bucket_start"]): (int(row["succeeded"]), int(row["failed"]))
            for row in queries.login_activity(found, width).collect()
        }
        sources = queries.failure_sources(found, SOURCES_SHOWN).collect()
    finally:
        found.unpersist()
    starts = range(min(buckets), max(buckets) + 1, width)
    return Logins(
        **{name: int(value) for name, value in sums.items()},
        chart=chart_of([Bar(_time(at * 1000), *buckets.get(at, (0, 0))) for at in starts], width),
        sources=tuple(
            FailureSource(
                row["claimed_name"],
                row["host"],
                int(row["failed"]),
                int(row["succeeded"]),
                _time(row["first_time_ms"]),
                _time(row["last_time_ms"]),
                tuple(row["reasons"]),
            )
            for row in sources
        ),
    )


def _time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
