"""A verdict on each event, in its place: no grouping, no join."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.deciding import ShippedAcls, decide_each, with_principal
from kustos.pipeline.replay.flips import kind_of_flip


def verdict_on_each_event(events: DataFrame, candidate: ShippedAcls, *, with_rule: bool = False) -> DataFrame:
    """Return `audit_events` with `to_decision`, `to_rule` (`with_rule`), and `flip` (LOST, GAINED or null).

    For the events themselves; to count flips, use the roll-up.
    """
    decided = decide_each(
        with_principal(events),
        candidate,
        with_rule=with_rule,
        decision_column="to_decision",
        rule_column="to_rule",
    )
    before = decided.withColumn("from_decision", sql.col("decision"))
    return before.withColumn("flip", kind_of_flip(rule_changes=False)).drop("from_decision", "principal")
