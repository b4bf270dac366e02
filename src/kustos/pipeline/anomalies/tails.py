"""How surprising a count is: bounds of tails as column expressions, so that no row leaves the JVM."""

from pyspark.sql import Column
from pyspark.sql import functions as sql

VARIANCE_EXCESS_MIN = 1e-6
"""Below it a negative binomial equals a Poisson distribution within the precision of a double."""


def _times_log(amount: Column, ratio: Column) -> Column:
    """Return amount x ln(ratio), 0 for an amount of 0."""
    return sql.when(amount <= 0, sql.lit(0.0)).otherwise(amount * sql.ln(ratio))


def poisson_surprise(count: Column, mean: Column) -> Column:
    """Return the surprise of `count` or more where `mean` is expected, in nats; 0 up to the mean.

    Chernoff's bound: minus the logarithm of the tail is never smaller than this.
    """
    count = count.cast("double")
    return sql.when(count <= mean, sql.lit(0.0)).otherwise(_times_log(count, count / mean) - count + mean)


def negative_binomial_surprise(count: Column, mean: Column, variance: Column) -> Column:
    """Return the surprise of `count` or more where counts are spread wider than Poisson's.

    Chernoff's bound of a negative binomial of this mean and variance; that of Poisson's distribution where
    the variance is not above the mean. `mean` must be positive.
    """
    count = count.cast("double")
    excess = variance - mean
    size = mean * mean / sql.greatest(excess, sql.lit(VARIANCE_EXCESS_MIN))
    spread = _times_log(count, count / mean) - (count + size) * sql.ln((count + size) / (mean + size))
    return (
        sql.when(count <= mean, sql.lit(0.0))
        .when(excess <= VARIANCE_EXCESS_MIN, poisson_surprise(count, mean))
        .otherwise(spread)
    )


def rarity(seen: Column, looks: Column) -> Column:
    """Return the surprise of what was seen in `seen` of `looks`, in nats; finite (Krichevsky-Trofimov)."""
    return -sql.ln((seen + 0.5) / (looks + 1.0))


def score(surprise: Column, threshold: float) -> Column:
    """Return a score from 0 to 1: one half at the threshold, and 1 never quite."""
    return surprise / (surprise + sql.lit(threshold))
