"""Charts of counts over time: their bars, and axes whose ticks are round numbers and calendar moments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Final

TICKS_MAX: Final = 7
"""Labels of times: as many as fit side by side on a screen of 400 px."""

ROUND: Final = (1, 2, 4, 6, 8, 10)
"""Tops of an axis, times a power of ten: half of each is a whole number."""

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86400
WEEK_S: Final = 7 * DAY_S
MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)
MONTHS_A_YEAR: Final = 12
DAYS_A_MONTH: Final = 30.4

SECONDS: Final = (
    *(1, 5, 15, 30),
    *(each * MINUTE_S for each in (1, 5, 15, 30)),
    *(each * HOUR_S for each in (1, 3, 6, 12)),
    *(DAY_S, 2 * DAY_S, WEEK_S, 2 * WEEK_S),
)
"""Steps between ticks that have one length."""

YEARS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
MONTHS: Final = (1, 3, 6, *(MONTHS_A_YEAR * years for years in YEARS))
"""Longer steps, by the calendar."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its place in hundredths of the axis, and its label."""

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Counts from `start` until the next bar."""

    start: datetime
    allowed: int
    denied: int


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars on a scale from 0 to `top`, with the ticks of both axes."""

    bars: tuple[Bar, ...]
    width: str
    """How long a bar is, in words."""
    top: int
    counts: tuple[Tick, ...]
    times: tuple[Tick, ...]


def chart_of(bars: Sequence[Bar], bar_seconds: int) -> Chart | None:
    """Return the chart of bars that follow each other without a gap; None without bars."""
    if not bars:
        return None
    top = round_top(max(bar.allowed + bar.denied for bar in bars))
    counts = [number for number in (0, top // 2, top) if number or top > 1]
    return Chart(
        tuple(bars),
        width_text(bar_seconds),
        top,
        tuple(Tick(100 * number / top, short(number)) for number in dict.fromkeys(counts or (0, top))),
        tuple(time_ticks(bars[0].start, bar_seconds * len(bars))),
    )


def round_top(peak: int) -> int:
    """Return the least round number that is not below a count; 1 at least."""
    power = 1
    while True:
        for each in ROUND:
            if each * power >= peak:
                return each * power
        power *= 10


def short(number: int) -> str:
    """Return a number, rounded down, of at most five characters for a cell or an axis: `9999`, `5.8M`."""
    if number < 10**4:
        return str(number)
    power, unit = next((p, u) for p, u in ((9, "G"), (6, "M"), (3, "k")) if number >= 10**p)
    whole, tenth = number // 10**power, number // 10 ** (power - 1) % 10
    return f"{whole}.{tenth}{unit}" if whole < 10 and tenth else f"{whole}{unit}"


def width_text(seconds: int) -> str:
    """Return a length of time in words."""
    for unit, size in (("day", DAY_S), ("hour", HOUR_S), ("minute", MINUTE_S)):
        if seconds >= size:
            count = seconds // size
            return f"one {unit}" if count == 1 else f"{count} {unit}s"
    return "one second" if seconds == 1 else f"{seconds} seconds"


def time_ticks(start: datetime, seconds: int) -> Iterator[Tick]:
    """Yield the ticks of an axis that begins at `start` and has this length, no further than `TICKS_MAX`."""
    step = next((each for each in SECONDS if seconds / each < TICKS_MAX), None)
    if step is not None:
        moments, label = _every(start, step), _label_of_seconds if step < MINUTE_S else _label
    else:
        months = next(each for each in MONTHS if seconds / (each * DAYS_A_MONTH * DAY_S) < TICKS_MAX)
        moments = _each_month(start, months)
        label = _label_of_months if months < MONTHS_A_YEAR else _label_of_years
    for moment in moments:
        place = (moment - start).total_seconds() / seconds * 100
        if place > 100:
            return
        yield Tick(place, label(moment))


def _label(moment: datetime) -> str:
    """Return the day at midnight, else the time of the day."""
    is_midnight = (moment.hour, moment.minute) == (0, 0)
    return f"{moment.day} {moment:%b}" if is_midnight else f"{moment:%H:%M}"


def _label_of_seconds(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}"


def _label_of_months(moment: datetime) -> str:
    return f"{moment:%b %Y}"


def _label_of_years(moment: datetime) -> str:
    return str(moment.year)


def _every(start: datetime, step: int) -> Iterator[datetime]:
    """Yield round moments from `start` on: weeks begin on Mondays."""
    behind = (start - MONDAY) % timedelta(seconds=step)
    moment = start if not behind else start - behind + timedelta(seconds=step)
    while True:
        yield moment
        moment += timedelta(seconds=step)


def _each_month(start: datetime, months: int) -> Iterator[datetime]:
    """Yield firsts of months from `start` on; years are counted from the year 0."""
    number = -(-(start.year * MONTHS_A_YEAR + start.month - 1) // months) * months
    while True:
        year, month = divmod(number, MONTHS_A_YEAR)
        moment = datetime(year, month + 1, 1, tzinfo=UTC)
        if moment >= start:
            yield moment
        if year + months // MONTHS_A_YEAR + 1 > MAXYEAR:
            return
        number += months
