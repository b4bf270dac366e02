"""Uses made by hand, and decisions of stories, as rows of the roll-up."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA
from tests.pipeline.plain_page import milliseconds
from tests.pipeline.rich_oddities import FIRST_DAY, Told

START = date(2026, 8, 3)
"""A Monday."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A row of the roll-up; `day` counts from START."""

    day: int
    principal: str = "User:bob"
    host: str = "10.0.0.7"
    operation: str = "READ"
    resource_type: str = "TOPIC"
    resource_name: str | None = "shop.orders"
    decision: str = "ALLOWED"
    access: str = "ACCESS"
    rule: str | None = "MatchingAcl"
    count: int = 10
    hours: tuple[int, ...] = (9, 10)

    @property
    def is_super(self) -> bool:
        """Whether a super user decided it: who was denied was none."""
        return self.decision == "ALLOWED" and self.rule == "SuperUser"

    def row(self) -> dict[str, Any]:
        start = datetime.combine(START + timedelta(days=self.day), datetime.min.time(), UTC)
        row: dict[str, Any] = dict.fromkeys(AUDIT_ROLLUP_SCHEMA.fieldNames())
        row |= {name: getattr(self, name) for name in self.__slots__ if name in row}
        row |= {"day": start.date(), "rule": {"kind": self.rule}, "event_count": self.count}
        row |= {"hours": sum(1 << hour for hour in self.hours)}
        row["first_time"] = start + timedelta(hours=min(self.hours))
        row["last_time"] = start + timedelta(hours=max(self.hours), minutes=59)
        return row


def frame(spark: SparkSession, uses: list[Use]) -> DataFrame:
    return spark.createDataFrame([use.row() for use in uses], AUDIT_ROLLUP_SCHEMA)


def decided(one: Told) -> dict[str, Any]:
    """Return a decision of a story by the names of the roll-up, with its time in milliseconds."""
    allowed = "SuperUser" if one.is_super else "MatchingAcl"
    return {
        "time_ms": milliseconds(one.time),
        "principal": one.who,
        "host": one.host,
        "operation": one.operation,
        "resource_name": one.topic,
        "decision": "ALLOWED" if one.is_allowed else "DENIED",
        "access": "ACCESS",
        "rule": allowed if one.is_allowed else "DefaultDeny",
        "rule_acl": None,
    }


def rolled_up(decisions: Iterable[Told]) -> Iterator[dict[str, Any]]:
    """Yield two rows of the roll-up for decisions that differ in their time only, as after late events."""

    def key(one: Told) -> tuple[Any, ...]:
        return one.time.date(), *decided(replace(one, time=FIRST_DAY)).values()

    for _, same in groupby(sorted(decisions, key=lambda one: (*map(repr, key(one)), one.time)), key):
        mine = list(same)
        row: dict[str, Any] = dict.fromkeys(AUDIT_ROLLUP_SCHEMA.fieldNames())
        row |= {name: value for name, value in decided(mine[0]).items() if name in row}
        row |= {"day": mine[0].time.date(), "rule": {"kind": row["rule"]}, "resource_type": "TOPIC"}
        row |= {"first_time": mine[0].time, "last_time": mine[-1].time}
        row |= {"hours": sum({1 << one.time.hour for one in mine})}
        half = len(mine) // 2
        yield from (row | {"event_count": count} for count in (half, len(mine) - half) if count)
