"""A recommendation over the tables: least privilege for the roll-up of one cluster."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kustos.pipeline.privilege.legitimate import Legitimate, known_names
from kustos.pipeline.privilege.options import PrivilegeOptions
from kustos.pipeline.privilege.proof import Recommendation, recommendation
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.session import frame_of_rows
from kustos.pipeline.tables.layout import AUDIT_ROLLUP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kustos.pipeline.deciding import AclsInForce
    from kustos.pipeline.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegeQuestion:
    """The inputs of a recommendation.

    `today` None: today's ACLs are unknown. `within_today`: grant nothing that they do not grant. `topics`
    None: the existing topics are those of the roll-up. The record should cover the `window_days` up to
    `as_of`, None for the end of the last recorded day.
    """

    options: PrivilegeOptions
    legitimate: Legitimate
    today: "AclsInForce | None"
    within_today: bool
    topics: Collection[str] | None
    as_of: datetime | None
    window_days: int


def run_recommendation(
    spark: "SparkSession", tables: "Tables", question: PrivilegeQuestion, progress: Progress = silent
) -> Recommendation:
    """Return the recommended ACLs for the roll-up of the cluster of the tables, and their proof.

    Raises what `Tables.read` and `recommendation` raise.
    """
    rollup = tables.read(spark, AUDIT_ROLLUP)
    return recommendation(
        spark,
        rollup,
        question.options,
        question.legitimate,
        names=None if question.topics is None else _names(spark, rollup, question.topics),
        today=question.today,
        within_today=question.within_today,
        as_of=question.as_of,
        window_days=question.window_days,
        progress=progress,
    )


def _names(spark: "SparkSession", rollup: "DataFrame", topics: Collection[str]) -> "DataFrame":
    """Return the known names, with the existing topics instead of the topics in the roll-up."""
    known = known_names(rollup)
    rows = [("TOPIC", name) for name in sorted(topics)]
    existing = frame_of_rows(spark, rows, known.schema)
    return known.filter("resource_type <> 'TOPIC'").unionByName(existing)
