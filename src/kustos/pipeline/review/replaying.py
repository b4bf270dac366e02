"""The replay that checks the changes of a review: recorded uses decided again by the remaining ACLs."""

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.deciding import AclsInForce, decide, ship
from kustos.pipeline.review.access import used_questions
from kustos.pipeline.review.changes import Flipped, ReplayFunction

FLIPS_MAX: Final = 10_000
"""Accesses that a replay names: a longer list is unreadable."""


def lost_uses(
    spark: SparkSession, rollup: DataFrame, acls: AclsInForce, *, as_of: datetime
) -> ReplayFunction:
    """Return a function that names the recorded uses that `acls` allow and the remaining ACLs do not.

    Each call runs one query and names at most FLIPS_MAX, the first in order.
    """
    used = used_questions(rollup, as_of).filter("use_count > 0")
    allowed = decide(used, ship(spark, acls), with_rule=False, decision_column="before").filter(
        sql.col("before") == "ALLOWED"
    )

    def replay(left: AclsInForce) -> list[Flipped]:
        after = decide(allowed, ship(spark, left), with_rule=False, decision_column="after")
        names = ("principal", "operation", "resource_type", "resource_name")
        lost = after.filter(sql.col("after") != "ALLOWED").select(*names).distinct()
        return [tuple(row) for row in lost.orderBy(*names).limit(FLIPS_MAX).collect()]

    return replay
