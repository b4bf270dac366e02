"""The review over the tables: `entitlements`, `access_review` and `findings` from one read of the roll-up.

All three are replaced in one commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.task_errors import task_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kustos.analysis import Duty, Policy
    from kustos.pipeline.deciding import AclsInForce
    from kustos.pipeline.queries.record import RecordCoverage
    from kustos.pipeline.review.existing_names import Existing
    from kustos.pipeline.tables import Tables

REVIEW_STEPS: Final = (
    "reviewing access",
    "counting what each ACL entitles to",
    "looking for ACLs that nobody needs",
    "summing up",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQuestion:
    """The inputs of a review: ACLs, moment, and what else is known.

    `metadata` is a metadata log, from which each ACL gets its time of creation; `existing` None: the existing
    names are unknown. Broken `duties` and `policy` become findings.
    """

    acls: "AclsInForce"
    as_of: datetime
    dormant_days: int
    teams: Mapping[str, str]
    metadata: Path | None = None
    existing: "Existing | None" = None
    duties: "Sequence[Duty]" = ()
    policy: "Policy | None" = None


def run_review(
    spark: "SparkSession", tables: "Tables", question: ReviewQuestion, progress: Progress = silent
) -> "tuple[Tables, dict[str, Any]]":
    """Replace what `entitlements`, `access_review` and `findings` have on the cluster of the tables, at once.

    Returns the tables as of that commit, and sums of each with what the record covers of the days before as
    `record` (`RecordCoverage.as_dict`).

    Raises what `Tables` raises, `ReviewError`, `MetadataHistoryError` and `AnalysisError`.
    """
    tables = tables.rolled_up(spark).of_cluster()
    with task_errors():
        record, answers = _review(spark, tables, question, progress)
    tables = tables.update("review", lambda _: answers)
    progress(REVIEW_STEPS[3])
    return tables, {"record": record.as_dict(), **_sums(spark, tables)}


def _review(
    spark: "SparkSession", tables: "Tables", question: ReviewQuestion, progress: Progress
) -> "tuple[RecordCoverage, dict[str, DataFrame]]":
    """Return what the record covers, and the rows of each table, which are computed already."""
    from kustos.pipeline.deciding import ship
    from kustos.pipeline.queries.record import record_of
    from kustos.pipeline.review.access import access_review
    from kustos.pipeline.review.entitled import entitlement_rows
    from kustos.pipeline.review.existing_names import NOTHING_KNOWN
    from kustos.pipeline.review.recorded_questions import review_questions

    progress(REVIEW_STEPS[0])
    history, scram_history = _histories(spark, question.metadata)
    rollup = tables.read(spark, "audit_rollup")
    record = record_of(rollup, question.as_of, question.dormant_days)
    shipped = ship(spark, question.acls)
    # read several times by each of the three
    questions = review_questions(rollup, shipped, question.as_of).persist()
    try:
        reviewed = access_review(
            spark,
            rollup,
            question.acls,
            as_of=question.as_of,
            dormant_days=question.dormant_days,
            teams=question.teams,
            history=history,
            questions=questions,
            record=record,
        )
        # computed before the tables are locked, as all of these
        answers = {"access_review": reviewed.localCheckpoint()}
        progress(REVIEW_STEPS[1])
        existing = question.existing or NOTHING_KNOWN
        entitled = entitlement_rows(
            spark,
            rollup,
            question.acls,
            shipped,
            as_of=question.as_of,
            questions=questions,
            dormant_days=question.dormant_days,
            teams=question.teams,
            history=history,
            names={kind.name: names for kind, names in existing.listing().items()},
            principals=existing.known_principals(),
            record=record,
        )
        answers["entitlements"] = entitled.localCheckpoint()
        progress(REVIEW_STEPS[2])
        histories = {"history": history, "scram_history": scram_history}
        found = _findings(spark, rollup, question, questions=questions, record=record, **histories)
        answers["findings"] = found.localCheckpoint()
        return record, answers
    finally:
        questions.unpersist()


def _findings(
    spark: "SparkSession", rollup: "DataFrame", question: ReviewQuestion, **known: Any
) -> "DataFrame":
    """Return the findings about ACLs, and those about broken rules if the question has rules."""
    from kustos.pipeline.review.broken_rules import rule_findings
    from kustos.pipeline.review.existing_names import NOTHING_KNOWN
    from kustos.pipeline.review.findings import acl_findings

    found = acl_findings(
        spark,
        rollup,
        question.acls,
        as_of=question.as_of,
        unused_days=question.dormant_days,
        existing=question.existing or NOTHING_KNOWN,
        **known,
    )
    if not question.duties and question.policy is None:
        return found
    broken = rule_findings(
        spark,
        rollup,
        question.acls,
        as_of=question.as_of,
        duties=question.duties,
        policy=question.policy,
    )
    return found.unionByName(broken)


def _histories(spark: "SparkSession", metadata: Path | None) -> tuple[Any, Any]:
    from kustos.pipeline.history import read_history

    if metadata is None:
        return None, None
    return read_history(spark, metadata), read_history(spark, metadata, "scram_credentials")


def _sums(spark: "SparkSession", tables: "Tables") -> dict[str, Any]:
    from kustos.pipeline.queries.answers import entitlement_sums, findings_by_safety, review_sums

    review, findings = tables.read(spark, "access_review"), tables.read(spark, "findings")
    kinds = [row.asDict() for row in findings_by_safety(findings).collect()]
    entitlements = entitlement_sums(tables.read(spark, "entitlements"))
    return {
        "entitlements": [row.asDict() for row in entitlements.collect()],
        "accesses": review_sums(review).collect()[0].asDict(),
        "findings": kinds,
    }
