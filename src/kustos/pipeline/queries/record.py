"""What the record covers: it bounds every claim that something was not used.

"Not used in 90 days" needs a record of these days. A day has a record if it has a decision that allowed
something: a log of denials alone shows no use. Days between them are covered, too, unless they are too many
(see the limits below). A log of only some brokers, or of some hours, cannot be told from a whole one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, Final, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.runtime import SystemClock

GAP_DAYS_MAX: Final = 3
"""Days in a row without a record that are covered none the less: a weekend and a holiday, on which no client
of a small cluster is up. After more, the log was probably off, lost or not read."""

RECORDED_SHARE_MIN: Final = 0.6
"""The least share of days with a record: weekdays are 5 of 7, and holidays take some of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCoverage:
    """What the record of a cluster has of the `window_days` up to `last_wanted`, both in days of UTC.

    `first_day` and `last_day` have a record, whenever they were; None without any. `recorded_days` are those
    of the window, `longest_gap_days` the most days of it in a row without a record. From `covered_since` to
    the end of the window no gap is longer than `GAP_DAYS_MAX`; None: not even its last days are covered.
    """

    window_days: int
    last_wanted: date
    first_day: date | None
    last_day: date | None
    recorded_days: int
    longest_gap_days: int
    covered_since: date | None

    @classmethod
    def of(cls, days: Iterable[date], as_of: datetime, window_days: int) -> Self:
        """Return the record of these days as of a moment; at midnight UTC the day that begins is no part."""
        end = as_of.astimezone(UTC)
        last = end.date() if end.time() > time() else end.date() - timedelta(days=1)
        first = last - timedelta(days=window_days - 1)
        known = sorted({day for day in days if day <= last})
        after = last + timedelta(days=1)
        covered = None
        for day, following in reversed(list(pairwise([*known, after]))):
            if _days_between(day, following) > GAP_DAYS_MAX:
                break
            covered = day
        inside = [day for day in known if day >= first]
        edges = [first - timedelta(days=1), *inside, after]
        return cls(
            window_days=window_days,
            last_wanted=last,
            first_day=known[0] if known else None,
            last_day=known[-1] if known else None,
            recorded_days=len(inside),
            longest_gap_days=longest_gap_days(edges),
            covered_since=covered,
        )

    @property
    def covered_days(self) -> int:
        """How many days up to the end of the window are covered."""
        return 0 if self.covered_since is None else (self.last_wanted - self.covered_since).days + 1

    @property
    def is_enough(self) -> bool:
        """Whether the record can show that something was not used in the window."""
        is_dense = self.recorded_days >= RECORDED_SHARE_MIN * self.window_days
        return is_dense and self.covered_days >= self.window_days

    @property
    def share(self) -> float:
        """The share of the window's days that have a record."""
        return self.recorded_days / self.window_days

    def text(self, unclear: str = "what is unused") -> str:
        """Return what the record covers, for people; if that is not enough, what it is too early to say."""
        window = f"{self.window_days:,} days up to {self.last_wanted}"
        said = f"{self.recorded_days:,} of the {window} have a record"
        if self.first_day is not None:
            said += f" (all of it from {self.first_day} to {self.last_day}"
            said += f", {self.covered_days:,} days covered, longest gap {self.longest_gap_days:,} days)"
        return said if self.is_enough else f"{said}: too early to say {unclear}"

    def columns(self) -> dict[str, Column]:
        """Return `recorded_days` and `covered_since` for each row of an answer."""
        return {
            "recorded_days": sql.lit(self.recorded_days),
            "covered_since": sql.lit(self.covered_since).cast("date"),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the same as a document."""
        days = ("last_wanted", "first_day", "last_day", "covered_since")
        return {
            "window_days": self.window_days,
            **{name: None if getattr(self, name) is None else str(getattr(self, name)) for name in days},
            "recorded_days": self.recorded_days,
            "covered_days": self.covered_days,
            "longest_gap_days": self.longest_gap_days,
            "is_enough": self.is_enough,
            "text": self.text(),
        }


def longest_gap_days(days: Iterable[date]) -> int:
    """Return the most days that are missing in a row between two of these days, which are in order."""
    return max((_days_between(*pair) for pair in pairwise(days)), default=0)


def _days_between(day: date, following: date) -> int:
    return (following - day).days - 1


RECORD_COLUMNS: Final = ("day", "decision", "first_time")
"""The columns of a roll-up that `recorded_days` and `record_of` read."""


def recorded_days(rollup: DataFrame, *, with_denials: bool = False) -> list[date]:
    """Return the days with a record in a roll-up of one cluster, in order; an action.

    `with_denials`: also those with denials alone, for claims that something was not tried.
    """
    chosen = rollup if with_denials else rollup.filter("decision = 'ALLOWED'")
    days = chosen.filter("day is not null").select("day").distinct()
    return sorted(row["day"] for row in days.collect())


def end_of(last: date | None) -> datetime:
    """Return the end of the last day of a period, now without one."""
    if last is None:
        return datetime.fromtimestamp(SystemClock().wall_ms() / 1000, UTC)
    return datetime.combine(last + timedelta(days=1), time(), UTC)


def window_of(first: date | None, end: datetime, window_days: int) -> int:
    """Return the days of a period that begins with a day; `window_days` if it has no first day."""
    return window_days if first is None else max(1, (end - datetime.combine(first, time(), UTC)).days)


def record_of(rollup: DataFrame, as_of: datetime, window_days: int) -> RecordCoverage:
    """Return what a roll-up of one cluster covers of the days before a moment; an action."""
    until = rollup.filter(sql.col("first_time") <= sql.lit(as_of))
    return RecordCoverage.of(recorded_days(until), as_of, window_days)
