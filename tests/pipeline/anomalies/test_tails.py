"""Surprises never say that a count is rarer than it is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies import tails
from tests.pipeline.plain_uses import rarity, tail

CASES = [
    (count, mean, variance)
    for count in (0, 1, 2, 5, 17, 60, 400, 5000)
    for mean in (0.01, 0.5, 3.0, 59.5, 1000.0)
    for variance in (0.0, mean, mean * 1.5, mean * 40)
]


def poisson_tail(count: int, mean: float) -> float:
    """Return P(X >= count): the sum of the terms from there on."""
    upper = count + int(20 * math.sqrt(mean + 1)) + 200
    return math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count, upper))


def negative_binomial_tail(count: int, mean: float, variance: float) -> float:
    size = mean * mean / (variance - mean)
    share = size / (size + mean)
    upper = count + int(60 * math.sqrt(variance + 1)) + 200
    return math.fsum(
        math.exp(
            math.lgamma(k + size)
            - math.lgamma(size)
            - math.lgamma(k + 1)
            + size * math.log(share)
            + k * math.log1p(-share)
        )
        for k in range(count, upper)
    )


def test_columns_equal_plain_python_and_bound_the_exact_tails(spark: SparkSession) -> None:
    frame = spark.createDataFrame(CASES, "count long, mean double, variance double").select(
        "*",
        tails.poisson_surprise(sql.col("count"), sql.col("mean")).alias("poisson"),
        tails.negative_binomial_surprise(sql.col("count"), sql.col("mean"), sql.col("variance")).alias(
            "wide"
        ),
        tails.rarity(sql.col("count"), sql.col("count") + sql.col("mean")).alias("rarity"),
        tails.score(sql.col("mean"), 3.0).alias("score"),
    )
    rows = frame.collect()
    assert len(rows) == len(CASES)
    for row in rows:
        count, mean, variance = row["count"], row["mean"], row["variance"]
        assert row["wide"] == pytest.approx(tail(count, mean, variance), abs=1e-9)
        assert row["poisson"] == pytest.approx(tail(count, mean, 0.0), abs=1e-9)
        assert poisson_tail(count, mean) <= math.exp(-row["poisson"]) * (1 + 1e-9)
        if variance > mean:
            assert negative_binomial_tail(count, mean, variance) <= math.exp(-row["wide"]) * (1 + 1e-9)
            assert row["wide"] <= row["poisson"] + 1e-9, "wider counts are less surprising"
        assert row["rarity"] == pytest.approx(rarity(count, count + mean))
        assert row["score"] == pytest.approx(mean / (mean + 3))


@given(st.integers(0, 10**6), st.floats(0.01, 1e5), st.floats(1, 100), st.integers(1, 1000))
def test_more_is_more_surprising(count: int, mean: float, dispersion: float, more: int) -> None:
    less = tail(count, mean, mean * dispersion)
    assert tail(count + more, mean, mean * dispersion) >= less - 1e-6
