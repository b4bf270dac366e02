"""Whether a record can show that something was not used, by the words of the docs alone."""

from collections.abc import Set
from datetime import UTC, date, datetime, timedelta

DAY = timedelta(days=1)
GAP_DAYS_MAX = 3
RECORDED_SHARE_MIN = 0.6


def is_enough(days: Set[date], last: date, window: int) -> bool:
    """Return whether each day of the window has a record or is in a short gap, and enough have a record."""
    known = {day for day in days if day <= last}
    wanted = [last - n * DAY for n in range(window)]
    is_covered = all(_gap_at(known, day, last) <= GAP_DAYS_MAX for day in wanted)
    return is_covered and sum(day in known for day in wanted) >= RECORDED_SHARE_MIN * window


def day_of(time_ms: int) -> date:
    """Return the day in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).date()


def _gap_at(days: Set[date], day: date, last: date) -> float:
    """Return how long the gap around a day is, 0 for a day with a record; it never ends before the first."""
    if day in days:
        return 0
    if day < min(days, default=last):
        return float("inf")
    first = day
    while first - DAY not in days:
        if first < min(days, default=last):
            return float("inf")
        first -= DAY
    while day < last and day + DAY not in days:
        day += DAY
    return (day - first).days + 1
