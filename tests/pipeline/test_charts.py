"""Axes have round numbers and calendar moments, few enough to be read, for any counts and times."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.report.charts import TICKS_MAX, Bar, chart_of, round_top, time_ticks, width_text
from kustos.pipeline.report.model import BARS_MAX, DAY_SECONDS, DAYS_MAX, bucket_seconds_for

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
SPANS = st.integers(0, 3_000 * 365 * DAY_SECONDS) | st.integers(0, 500 * DAY_SECONDS) | st.integers(0, 9_999)


@given(st.integers(0, 10**18))
def test_the_top_of_an_axis_is_round_and_little_above_the_peak(peak: int) -> None:
    top = round_top(peak)
    assert peak <= top <= max(1, 2 * peak)
    assert top == 1 or top % 2 == 0
    assert len(str(top).rstrip("0")) == 1


@given(MOMENTS, SPANS)
def test_bars_and_ticks_are_as_many_as_a_screen_shows(first: datetime, seconds: int) -> None:
    last = min(first.timestamp() + seconds, datetime(9999, 12, 31, tzinfo=UTC).timestamp())
    width = bucket_seconds_for(first, datetime.fromtimestamp(last, UTC))
    begin = int(first.timestamp()) // width * width
    bars = [Bar(datetime.fromtimestamp(at, UTC), 1, 0) for at in range(begin, int(last) + 1, width)]
    assert len(bars) <= (BARS_MAX if width < DAY_SECONDS else DAYS_MAX)
    chart = chart_of(bars, width)
    assert chart is not None
    places = [tick.place for tick in chart.times]
    assert all(0 <= place <= 100 for place in places)
    assert all(earlier < later for earlier, later in pairwise(places))
    assert len(places) <= TICKS_MAX + 1
    assert all(earlier.label != later.label for earlier, later in pairwise(chart.times))


@pytest.mark.parametrize(
    ("first", "seconds", "labels"),
    [
        (
            "2026-11-03T08:00:07",
            6,
            [f"08:00:{second:02}" for second in range(7, 14)],
        ),
        ("2026-11-03T22:00:00", 6 * 3600, ["22:00", "23:00", "4 Nov", "01:00", "02:00", "03:00", "04:00"]),
        (
            "2026-11-03T00:00:00",
            3 * 86400,
            ["3 Nov", "12:00", "4 Nov", "12:00", "5 Nov", "12:00", "6 Nov"],
        ),
        ("2026-10-28T00:00:00", 35 * 86400, ["2 Nov", "9 Nov", "16 Nov", "23 Nov", "30 Nov"]),
        ("2026-06-03T00:00:00", 172 * 86400, ["Jul 2026", "Aug 2026", "Sep 2026", "Oct 2026", "Nov 2026"]),
        ("2019-06-03T00:00:00", 8 * 365 * 86400, ["2020", "2022", "2024", "2026"]),
    ],
)
def test_ticks_are_moments_of_the_calendar(first: str, seconds: int, labels: list[str]) -> None:
    start = datetime.fromisoformat(first).replace(tzinfo=UTC)
    assert [tick.label for tick in time_ticks(start, seconds)] == labels


@pytest.mark.parametrize(
    ("days", "width"), [(10, "3 hours"), (14, "one day"), (366, "one day"), (500, "7 days")]
)
def test_bars_are_days_where_there_are_days(days: int, width: str) -> None:
    first = datetime(2025, 3, 1, tzinfo=UTC)
    assert width_text(bucket_seconds_for(first, first + timedelta(days=days))) == width


def test_without_events_there_is_no_chart() -> None:
    assert chart_of([], 60) is None
