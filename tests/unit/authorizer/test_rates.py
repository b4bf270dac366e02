"""Rates per minute, computed by hand; another test compares them with Kafka's own class."""

import pytest

from kustos.authorizer import AuthorizerMetrics
from kustos.authorizer.metrics import RatePerMinute

Story = list[tuple[int, int]]
"""Times in milliseconds and how many events happened then."""


@pytest.mark.parametrize(
    ("story", "now_ms", "expected"),
    [
        pytest.param([], 1_000, 0.0, id="nothing-happened"),
        pytest.param([(1_000, 3)], 1_000, 6.0, id="at-once-in-one-sample"),
        pytest.param([(1_000, 3)], 16_000, 4.0, id="in-the-first-sample"),
        pytest.param([(1_000, 3)], 30_999, 3 * 60_000 / 59_999, id="at-the-end-of-the-first-sample"),
        pytest.param([(1_000, 3)], 31_000, 6.0, id="after-one-sample"),
        pytest.param([(1_000, 3)], 46_000, 4.0, id="in-the-second-sample"),
        pytest.param([(1_000, 3)], 60_999, 3 * 60_000 / 59_999, id="just-not-forgotten"),
        pytest.param([(1_000, 3)], 61_000, 0.0, id="forgotten"),
        pytest.param([(0, 1), (30_000, 1)], 30_000, 4.0, id="two-samples"),
        pytest.param([(0, 1), (29_999, 1)], 60_000, 2.0, id="one-sample-that-lasts"),
        pytest.param([(0, 1), (30_000, 1), (60_000, 1)], 60_000, 4.0, id="the-oldest-is-forgotten"),
        pytest.param([(0, 1), (29_999, 1), (59_999, 1)], 60_000, 3.0, id="the-oldest-reaches-into-it"),
        pytest.param(
            [(0, 5), (30_000, 1), (60_000, 1), (90_000, 1)], 90_000, 4.0, id="a-sample-is-used-again"
        ),
        pytest.param(
            [(0, 1), (29_999, 2), (59_999, 3), (89_998, 4)], 89_998, 10 * 60_000 / 89_998, id="three-samples"
        ),
    ],
)
def test_a_rate_is_the_sum_of_its_samples(story: Story, now_ms: int, expected: float) -> None:
    rate = RatePerMinute()
    for at_ms, count in story:
        rate.record(count, at_ms)
    assert rate.measure(now_ms) == pytest.approx(expected, rel=1e-12)


def test_the_first_measurement_starts_a_rate() -> None:
    rate = RatePerMinute()
    assert rate.measure(1_000) == 0.0
    rate.record(1, 31_000)
    assert rate.measure(31_000) == 2.0


def test_expired_samples_stay_expired() -> None:
    rate = RatePerMinute()
    rate.record(7, 0)
    assert rate.measure(60_000) == 0.0
    assert rate.measure(60_001) == 0.0
    rate.record(1, 70_000)
    assert rate.measure(90_000) == 2.0


def test_only_recorded_events_are_counted() -> None:
    now_ms = 0
    metrics = AuthorizerMetrics(lambda: now_ms)
    metrics.record(allowed=2, denied=0)
    metrics.record(allowed=0, denied=3)
    now_ms = 30_000
    assert list(metrics.rates().values()) == [4.0, 6.0, 10.0]
    now_ms = 45_000
    metrics.record(allowed=1, denied=0)
    now_ms = 60_000
    one = pytest.approx(60_000 / 45_000)
    assert list(metrics.rates().values()) == [one, 0.0, one]
