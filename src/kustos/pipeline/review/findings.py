"""The table `findings` of ACLs: the finding, its evidence, and whether the ACL can be removed.

- `UNUSED_ACL`: it was the deciding rule of no use for `unused_days`, which the record covers
  (`queries.record`) and in which it was granted, as far as that is known; names that it kept in a list do not
  count. Where an event does not name its rule, the rule is worked out (`review.deciders`). Kafka names one of
  several ACLs that allow, so the evidence shows whether another replaces it.
- `REDUNDANT_ACL`, `SHADOWED_ACL`: exact, by `kustos.analysis`.
- `ORPHANED_ACL`: no resource has the name; or the principal was not seen for that long, likewise; or the user
  does not exist or was deleted, unless it was seen since (it may log in by other means than SCRAM).

The score is the certainty: 1 for exact findings, else the share of `unused_days` with a record. What rests on
the record is safe to remove only if the record covers `unused_days` and the ACL is as old.
"""

from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.acl import EVERY_PRINCIPAL
from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.queries.record import RecordCoverage, record_of
from kustos.pipeline.review.candidates import FOUND_SCHEMA, decided, deleted_users, held_acls, last_seen
from kustos.pipeline.review.deciding_acls import with_deciding_acls
from kustos.pipeline.review.existing_names import NOTHING_KNOWN, Existing
from kustos.pipeline.review.kinds import EXACT, Cause, FindingKind
from kustos.pipeline.review.period import moment, until, with_grant_time
from kustos.pipeline.review.recorded_questions import review_questions
from kustos.pipeline.review.supports import carried, safe_together
from kustos.pipeline.schemas import ACL_SCHEMA, FINDINGS_SCHEMA

UNUSED_DAYS: Final = 90
"""Days without use after which an ACL is unused, by default."""

_EVIDENCE: Final = (
    "cause",
    "code",
    "fix",
    "related",
    "window_days",
    "recorded_since",
    "recorded_days",
    "covered_since",
    "longest_gap_days",
    "granted_since",
    "last_decided",
    "decided_event_count",
    "worked_out_event_count",
    "listing_event_count",
    "matching_event_count",
    "needed_event_count",
    "needed_last_time",
    "needed_sample_event_id",
    "last_seen",
    "deleted_at",
    "is_safe_together",
)


def acl_findings(
    spark: SparkSession,
    rollup: DataFrame,
    acls: AclsInForce,
    *,
    as_of: datetime,
    unused_days: int = UNUSED_DAYS,
    existing: Existing = NOTHING_KNOWN,
    history: DataFrame | None = None,
    scram_history: DataFrame | None = None,
    questions: DataFrame | None = None,
    record: RecordCoverage | None = None,
) -> DataFrame:
    """Return the findings about the ACLs in force at `as_of`, as FINDINGS_SCHEMA.

    With `history` (ACL_HISTORY_SCHEMA) ACLs younger than `unused_days` are not unused; `scram_history`
    (SCRAM_CREDENTIAL_HISTORY_SCHEMA) has the deleted users. `questions` is the result of `review_questions`,
    if the caller has persisted it: it is read twice. `record` is the result of `record_of`, if the caller has
    it. In `evidence`, `is_safe_together` marks ACLs that can all be removed at once (`removable_together`).
    Raises `ReviewError` for a time without a zone.
    """
    recorded = until(rollup, as_of)
    covered = record or record_of(rollup, as_of, unused_days)
    if questions is None:
        questions = review_questions(rollup, ship(spark, acls), as_of)
    held = held_acls(spark, acls, existing)
    worked_out = with_deciding_acls(spark, recorded, acls, history)
    seen = _seen(held, recorded, worked_out, history, scram_history, as_of)
    weighed = seen.join(carried(questions), "number", "left")
    found = _found(weighed, as_of - timedelta(days=unused_days), covered)
    is_needed = sql.coalesce("needed_event_count", sql.lit(0)) > 0
    is_exact = sql.col("found.cause").isin(*(cause.value for cause in EXACT))
    rows = found.withColumns(
        {
            "is_safe_to_remove": sql.when(is_needed, sql.lit(False)).when(
                is_exact | sql.col("is_evident"), sql.lit(True)
            ),
            # two that say the same are each safe to remove by the set alone, both only by the record
            "is_candidate": sql.col("is_evident") & ~is_needed,
        }
    )
    candidates = rows.filter("is_candidate").select("number", "rank").distinct()
    judged = rows.join(safe_together(questions, candidates), "number", "left").withColumn(
        "is_safe_together", sql.coalesce("is_safe_together", sql.lit(False))
    )
    return judged.select(*[column.alias(name) for name, column in _columns(moment(as_of)).items()])


def _seen(
    held: DataFrame,
    recorded: DataFrame,
    worked_out: DataFrame,
    history: DataFrame | None,
    scram_history: DataFrame | None,
    as_of: datetime,
) -> DataFrame:
    """Return the ACLs with the record of each and of its principal."""
    frame = held.withColumn("principal", sql.col("acl").getField("principal"))
    frame = frame.join(decided(recorded, held, worked_out), "number", "left").join(
        last_seen(recorded), "principal", "left"
    )
    frame = with_grant_time(frame, history, as_of)
    if scram_history is None:
        frame = frame.withColumn("deleted_at", sql.lit(None).cast("timestamp"))
    else:
        frame = frame.join(deleted_users(scram_history, as_of), "principal", "left")
    return frame.crossJoin(sql.broadcast(recorded.agg(sql.min("first_time").alias("recorded_since"))))


def _found(frame: DataFrame, threshold: datetime, record: RecordCoverage) -> DataFrame:
    """Return a row for each finding of each ACL.

    `is_evident`: the record covers the window, and nothing says that the ACL is younger.
    """
    limit = sql.lit(threshold)
    sureness = sql.lit(record.share)
    granted = sql.col("granted_since")
    is_evident = sql.lit(record.is_enough) & sql.coalesce(granted <= limit, sql.lit(True))
    of_unknown_age = sql.when(granted.isNull(), sql.lit("; when it was granted is unknown")).otherwise("")
    is_named = sql.col("principal") != sql.lit(EVERY_PRINCIPAL)

    def not_since(name: str, time: Column) -> Column:
        return sql.col(name).isNull() | (sql.col(name) <= time)

    days = sql.lit(f"{record.window_days} days")
    quoted_principal = sql.concat(sql.lit("`"), "principal", sql.lit("`"))
    unused = _finding(
        FindingKind.UNUSED_ACL,
        Cause.NEVER_DECIDED,
        sureness,
        sql.concat("text", sql.lit(" decided no use in "), days, of_unknown_age),
    )
    unseen = _finding(
        FindingKind.ORPHANED_ACL,
        Cause.PRINCIPAL_NOT_SEEN,
        sureness,
        sql.concat(quoted_principal, sql.lit(" sent no request in "), days, of_unknown_age),
    )
    no_user = _finding(
        FindingKind.ORPHANED_ACL,
        Cause.NO_SUCH_USER,
        sql.lit(1.0),
        sql.concat(quoted_principal, sql.lit(" is not an existing user")),
    )
    deleted = _finding(
        FindingKind.ORPHANED_ACL,
        Cause.USER_DELETED,
        sql.lit(1.0),
        sql.concat(quoted_principal, sql.lit(" was deleted on "), sql.to_date("deleted_at").cast("string")),
    )
    is_unseen = is_named & not_since("last_seen", limit)
    detected = sql.array_compact(
        sql.array(
            sql.when(is_evident & not_since("last_decided", limit), unused),
            sql.when(is_evident & is_unseen, unseen),
            sql.when(sql.col("lacks_user") & is_unseen, no_user),
            sql.when(
                sql.col("deleted_at").isNotNull() & not_since("last_seen", sql.col("deleted_at")), deleted
            ),
        )
    )
    return frame.withColumns(
        {
            "found": sql.explode(sql.concat("of_the_set", detected)),
            "is_evident": is_evident,
            "window_days": sql.lit(record.window_days),
            "recorded_days": sql.lit(record.recorded_days),
            "covered_since": sql.lit(record.covered_since).cast("date"),
            "longest_gap_days": sql.lit(record.longest_gap_days),
        }
    )


def _finding(kind: FindingKind, cause: Cause, score: Column, reason: Column) -> Column:
    values = {"kind": sql.lit(kind.value), "cause": sql.lit(cause.value), "severity": sql.col("severity")}
    values |= {"score": score, "reason": reason}
    return sql.struct(
        *[
            values.get(field.name, sql.lit(None)).cast(field.dataType).alias(field.name)
            for field in FOUND_SCHEMA.fields
        ]
    )


def _columns(at: Column) -> dict[str, Column]:
    found, acl = sql.col("found"), sql.col("acl")
    of_finding = {"cause", "code", "fix", "related"}
    evidence = [
        (found.getField(name) if name in of_finding else sql.col(name)).alias(name) for name in _EVIDENCE
    ]
    identity = sql.to_json(sql.struct(found.getField("kind"), found.getField("cause"), acl))
    columns = {
        "finding_id": sql.sha2(identity, 256),
        "kind": found.getField("kind"),
        "severity": found.getField("severity"),
        "score": found.getField("score"),
        "principal": sql.col("principal"),
        "resource_type": acl.getField("resource_type"),
        "resource_name": acl.getField("resource_name"),
        "acl": acl,
        "day": sql.to_date(at),
        "first_time": sql.col("first_decided"),
        "last_time": sql.col("last_decided"),
        "event_count": sql.coalesce("decided_event_count", sql.lit(0).cast("long")),
        "reason": found.getField("reason"),
        "evidence": sql.to_json(sql.struct(*evidence)),
        "is_safe_to_remove": sql.col("is_safe_to_remove"),
    }
    return {name: columns[name] for name in FINDINGS_SCHEMA.fieldNames()}


def removable_together(findings: DataFrame) -> DataFrame:
    """Return the ACLs that can all be removed at once without flipping a recorded decision, as ACL_SCHEMA."""
    marked = sql.get_json_object("evidence", "$.is_safe_together") == "true"
    fields = [sql.col("acl").getField(name).alias(name) for name in ACL_SCHEMA.fieldNames()]
    return findings.filter(marked).select(*fields).distinct()
