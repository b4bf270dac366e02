"""Super users: rights that no ACL limits, used in a way that is new."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope, days_with, only
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, quoted
from kustos.pipeline.anomalies.tails import rarity


def super_user_use(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind SUPER_USER_USE: one for a principal and day.

    A day is surprising if on it a use (an operation on a resource type) occurred that began in the window and
    did not become a habit; a principal's first use as a super user counts too.
    """
    parameters = scope.parameters
    began = everybody.agg(sql.min("principal_first_day").alias("began"))
    use = ("principal", "operation", "resource_type")
    # a first use as a super user is rated by all recorded days: the longer without one, the more surprising
    watched = sql.date_diff("day", "began")
    looks = sql.when(sql.col("super_days") > 0, sql.col("super_days")).otherwise(watched)
    grouped = (
        days.filter("is_super")
        .withColumn("super_days", days_with(scope.is_history(), "principal"))
        .withColumn("first_day", sql.min("day").over(Window.partitionBy(*use)))
        .withColumn("used_days", days_with(sql.lit(True), *use))
        .filter(scope.is_judged("first_day") & (sql.col("used_days") < parameters.habit_days))
        .crossJoin(sql.broadcast(began))
        .filter(watched >= parameters.learning_days)
        .withColumn("surprise", rarity(sql.lit(0), looks))
        .filter(sql.col("surprise") >= parameters.super_user_surprise)
        .groupBy("principal", "day")
        .agg(
            sql.min("resource_type").alias("resource_type"),
            only("resource_name").alias("resource_name"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.sum("event_count").alias("event_count"),
            sql.max("surprise").alias("surprise"),
            sql.max("super_days").alias("super_days"),
            sql.sort_array(sql.collect_set(sql.concat_ws(" ", "operation", "resource_type"))).alias("uses"),
            sql.slice(sql.sort_array(sql.collect_set("resource_name")), 1, NAMES_MAX).alias("names"),
            sql.slice(sql.sort_array(sql.collect_set("host")), 1, NAMES_MAX).alias("hosts"),
        )
    )
    reason = sql.format_string(
        "%s %s (on %s): a super user's right that no ACL limits",
        sql.when(sql.col("super_days") > 0, sql.lit("was a super user before, but never did")).otherwise(
            sql.lit("acted as a super user for the first time:")
        ),
        sql.array_join("uses", ", "),
        quoted(sql.col("names")),
    )
    evidence = {name: sql.col(name) for name in ("uses", "names", "hosts", "super_days")}
    return candidate(
        grouped, "SUPER_USER_USE", parameters.super_user_surprise, reason, evidence, pattern=("uses",)
    )
