"""Uses made by hand or at random, as rows of the roll-up."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA

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


def random_uses(seed: int, days: int, principals: int) -> list[Use]:
    """Return uses full of coincidences: few hosts, names, hours; rare ones among them."""
    random = Random(seed)
    topics = ["a.x", "a.y", "b.x", "b.y.z", "c", "c-d", "prod", *(f"t.{n}" for n in range(12))]
    uses = []
    for number in range(principals):
        name, presence = f"User:p{number}", random.choice((0.1, 0.3, 0.7, 1.0))
        home, mine = random.randint(1, 4), random.sample(topics, k=3)
        hours = random.choice(((9, 10, 11), (22, 23, 0), tuple(range(24)), (3,)))
        silence = random.randint(5, days), random.randint(2, 12)
        for day in range(random.choice((0, 0, 3, days - 6)), days):
            if random.random() > presence or silence[0] <= day < sum(silence):
                continue
            for _ in range(random.randint(1, 4)):
                is_odd = random.random() < 0.06
                decision = random.choice(("ALLOWED",) * 6 + ("DENIED", "ERROR"))
                uses.append(
                    Use(
                        day=day,
                        principal=name,
                        host=f"10.{random.randint(0, 9) if is_odd else home}.{day // 9 % 2}.{day % 3}",
                        operation=random.choice(("READ", "READ", "WRITE", "ALTER")),
                        resource_name=random.choice(topics) if is_odd else random.choice(mine),
                        decision=decision,
                        access=random.choice(("ACCESS",) * 9 + ("LISTING", "PROBE")),
                        rule="SuperUser" if number == 0 or random.random() < 0.01 else "MatchingAcl",
                        count=random.choice((1, 3, 9, 60)) * (20 if is_odd else 1),
                        hours=(random.randint(0, 23),) if is_odd else random.choice((hours, hours[:1])),
                    )
                )
    return uses
