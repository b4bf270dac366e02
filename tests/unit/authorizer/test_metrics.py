"""The rates per minute are equal to the rates of Kafka's own class."""

import random
import subprocess
from pathlib import Path

import pytest

from kustos.authorizer import AuthorizerMetrics
from kustos.authorizer.metrics import RatePerMinute
from testkit.kafka.compiled import java_program

CHANCE = random.Random(20261121)
STEPS_MS = (0, 1, 500, 7_000, 29_999, 30_000, 30_001, 45_000, 59_999, 60_000, 61_000, 200_000)


def story() -> list[tuple[int, int]]:
    """Return (time, count) to record and (time, -1) to measure, in the order of time."""
    now_ms, steps = 5_000, [(5_000, -1)]
    for _ in range(2_000):
        now_ms += CHANCE.choice(STEPS_MS)
        steps.append((now_ms, CHANCE.choice((-1, 1, 3, 20))))
    return steps


def test_two_thousand_steps_are_measured_as_kafka_measures_them() -> None:
    steps = story()
    process = subprocess.run(
        java_program(Path(__file__).with_name("RateProbe.java")),
        input="".join(f"{now_ms} {count}\n" for now_ms, count in steps),
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    rate = RatePerMinute()
    ours = []
    for now_ms, count in steps:
        if count < 0:
            ours.append(rate.measure(now_ms))
        else:
            rate.record(count, now_ms)
    assert ours == pytest.approx([float(line) for line in process.stdout.split()], rel=1e-12)
    assert len({round(each) for each in ours}) > 50


@pytest.mark.behaviour("B028")
def test_rates_have_kafkas_names() -> None:
    now_ms = 1_000
    metrics = AuthorizerMetrics(lambda: now_ms)
    metrics.record(allowed=3, denied=1)
    metrics.record(allowed=0, denied=0)
    now_ms = 31_000
    assert metrics.rates() == {
        "authorization-allowed-rate-per-minute": 6.0,
        "authorization-denied-rate-per-minute": 2.0,
        "authorization-request-rate-per-minute": 8.0,
    }
