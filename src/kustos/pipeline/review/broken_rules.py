"""Declared rules as findings: principals that break a duty or a policy statement, by grant and by use.

By grant is exact and covers every possible request; by use covers the recorded ones. Kinds: `BROKEN_DUTY` and
`BROKEN_POLICY`; `by` in the evidence is `grant` or `use`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from kustos.acl import AclOperation, ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis import Duty, Policy, Statement, StatementKind, breaches, verify
from kustos.pipeline.columns.probes import ACCESS, PROBE
from kustos.pipeline.deciding import AclsInForce, evaluated_once
from kustos.pipeline.review.period import moment, until
from kustos.pipeline.schemas import FINDINGS_SCHEMA, QUESTION_COLUMNS
from kustos.pipeline.session import frame_of_rows

BROKEN_DUTY: Final = "BROKEN_DUTY"
BROKEN_POLICY: Final = "BROKEN_POLICY"

EXAMPLES_MAX: Final = 1_000
"""Principals reported for one statement of a policy."""

_CLAIM_SCHEMA: Final = ArrayType(
    StructType([StructField("rule", IntegerType()), StructField("side", IntegerType())])
)
_RULE_SCHEMA: Final = StructType(
    [
        StructField("rule", IntegerType()),
        StructField("kind", StringType()),
        StructField("rule_id", StringType()),
        StructField("text", StringType()),
        StructField("why", StringType()),
        StructField("sides", IntegerType()),
    ]
)


def rule_findings(
    spark: SparkSession,
    rollup: DataFrame,
    acls: AclsInForce,
    *,
    as_of: datetime,
    duties: Sequence[Duty] = (),
    policy: Policy | None = None,
) -> DataFrame:
    """Return the principals that break each rule at `as_of`, by grant and by use, as FINDINGS_SCHEMA.

    Raises `ReviewError`, and `AnalysisError` for a set that it cannot analyse.
    """
    statements = () if policy is None else policy.statements
    rows = [*_by_duties(acls, duties, as_of), *_by_statements(acls, statements, as_of)]
    granted = frame_of_rows(spark, rows, FINDINGS_SCHEMA)
    return granted.unionByName(_by_use(spark, rollup, acls, as_of, duties, statements))


def _finding(kind: str, rule_id: str, principal: str, as_of: datetime, **columns: Any) -> tuple[Any, ...]:
    identity = json.dumps([kind, "grant", rule_id, principal])
    row = dict.fromkeys(FINDINGS_SCHEMA.fieldNames()) | {
        "finding_id": hashlib.sha256(identity.encode()).hexdigest(),
        "kind": kind,
        "score": 1.0,
        "principal": principal,
        "day": as_of.date(),
        "event_count": 0,
    }
    return tuple((row | columns).values())


def _by_duties(acls: AclsInForce, duties: Iterable[Duty], as_of: datetime) -> Iterator[tuple[Any, ...]]:
    for breach in breaches(acls.bindings, duties, acls.rules):
        duty = breach.duty
        evidence = {
            "by": "grant",
            "rule_id": duty.duty_id,
            "rule": duty.text(),
            "why": duty.reason,
            "who_can": breach.who_can.to_json(),
            "must_not": breach.must_not.to_json(),
            "without": list(breach.without),
        }
        subject = "everyone" if breach.principal == "User:*" else f"`{breach.principal}`"
        yield _finding(
            BROKEN_DUTY,
            duty.duty_id,
            breach.principal,
            as_of,
            severity="MEDIUM",
            reason=f"{subject} may do both of duty `{duty.duty_id}`: {duty.text()}",
            evidence=json.dumps(evidence),
        )


def _by_statements(
    acls: AclsInForce, statements: Sequence[Statement], as_of: datetime
) -> Iterator[tuple[Any, ...]]:
    policy = Policy(tuple(statements))
    for verdict in verify(acls.bindings, policy, acls.rules, counter_examples_max=EXAMPLES_MAX):
        statement = verdict.statement
        for example in verdict.counter_examples:
            probe, binding = example.probe, example.decision.rule.binding
            evidence = {
                "by": "grant",
                "rule_id": statement.statement_id,
                "rule": statement.sentence,
                "why": statement.reason,
                "is_cut": verdict.is_cut,
                **example.to_json(),
            }
            yield _finding(
                BROKEN_POLICY,
                statement.statement_id,
                probe.principal,
                as_of,
                severity="HIGH",
                resource_type=probe.resource_type.name,
                resource_name=probe.name,
                acl=None if binding is None else tuple(texts_of(binding).values()),
                reason=f"statement `{statement.statement_id}` is broken: {example.text()}",
                evidence=json.dumps(evidence),
            )


class _Claims:
    """Finds the rules, and their sides, that a recorded question belongs to; in a worker."""

    def __init__(
        self, duties: Sequence[Duty], statements: Sequence[Statement], super_users: frozenset[str]
    ) -> None:
        self._duties = tuple(duties)
        self._statements = tuple(statements)
        self._super_users = super_users

    def of(
        self, principal: str, host: str, operation: str, kind: str, name: str, *, is_allowed: bool
    ) -> list[tuple[int, int]]:
        acl_operation = AclOperation.__members__.get(operation)
        resource_type = ResourceType.__members__.get(kind)
        if acl_operation is None or resource_type is None:
            return []
        is_super = principal in self._super_users
        found = []
        for number, duty in enumerate(self._duties):
            is_let_off = principal in duty.exempt or (is_super and not duty.counts_super_users)
            if is_allowed and not is_let_off:
                for side, thing in enumerate((duty.who_can, duty.must_not)):
                    if thing.matches(acl_operation, resource_type, name):
                        found.append((number, side))
        for number, statement in enumerate(self._statements, start=len(self._duties)):
            is_never = statement.kind is StatementKind.NEVER
            is_let_off = is_super and is_never and not statement.counts_super_users
            speaks = (
                resource_type is statement.resource_type
                and acl_operation in statement.operations
                and principal in statement.principals
                and any(site.covers(name) for site in statement.sites)
                and host in statement.hosts
            )
            if speaks and is_allowed is is_never and not is_let_off:
                found.append((number, 0))
        return found


def _claimed(claims: _Claims) -> Column:
    arrow = pa.list_(pa.struct({"rule": pa.int32(), "side": pa.int32()}))

    def claim(
        principal: pa.Array,
        host: pa.Array,
        operation: pa.Array,
        kind: pa.Array,
        name: pa.Array,
        is_allowed: pa.Array,
    ) -> pa.Array:
        columns = (principal, host, operation, kind, name)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        found = [
            claims.of(*(text or "" for text in texts), is_allowed=allowed)
            for texts, allowed in zip(rows, is_allowed.to_pylist(), strict=True)
        ]
        return pa.array([[{"rule": rule, "side": side} for rule, side in some] for some in found], arrow)

    return evaluated_once(claim, _CLAIM_SCHEMA, *QUESTION_COLUMNS, "is_allowed")


def _by_use(
    spark: SparkSession,
    rollup: DataFrame,
    acls: AclsInForce,
    as_of: datetime,
    duties: Sequence[Duty],
    statements: Sequence[Statement],
) -> DataFrame:
    rules = [(BROKEN_DUTY, one.duty_id, one.text(), one.reason, 2) for one in duties]
    rules += [(BROKEN_POLICY, one.statement_id, one.sentence, one.reason, 1) for one in statements]
    rule_rows = frame_of_rows(spark, [(number, *rule) for number, rule in enumerate(rules)], _RULE_SCHEMA)
    questions = (
        until(rollup, as_of)
        .filter(sql.col("access").isin(ACCESS, PROBE) & sql.col("resource_name").isNotNull())
        .groupBy(*QUESTION_COLUMNS, (sql.col("decision") == "ALLOWED").alias("is_allowed"))
        .agg(
            sql.sum("event_count").alias("event_count"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.min("sample_event_id").alias("sample_event_id"),
        )
    )
    claims = _Claims(duties, statements, acls.super_users)
    each = questions.withColumn("claim", sql.explode(_claimed(claims))).select("*", "claim.*")
    zero, count = sql.lit(0).cast("long"), sql.col("event_count")

    def on(side: int, value: Column) -> Column:
        return sql.when(sql.col("side") == side, value)

    broken = (
        each.groupBy("principal", "rule")
        .agg(
            sql.count_distinct("side").alias("_sides"),
            sql.sum(sql.coalesce(on(0, count), zero)).alias("who_can_event_count"),
            sql.sum(sql.coalesce(on(1, count), zero)).alias("must_not_event_count"),
            sql.min(on(0, sql.col("sample_event_id"))).alias("who_can_sample_event_id"),
            sql.min(on(1, sql.col("sample_event_id"))).alias("must_not_sample_event_id"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
        )
        .join(sql.broadcast(rule_rows), "rule")
        .filter(sql.col("_sides") == sql.col("sides"))
    )
    return _use_columns(broken, moment(as_of))


def _use_columns(broken: DataFrame, at: Column) -> DataFrame:
    evidence = sql.to_json(
        sql.struct(
            sql.lit("use").alias("by"),
            "rule_id",
            sql.col("text").alias("rule"),
            "why",
            "who_can_event_count",
            "must_not_event_count",
            "who_can_sample_event_id",
            "must_not_sample_event_id",
        )
    )
    identity = sql.to_json(sql.array("kind", sql.lit("use"), "rule_id", "principal"))
    principal, rule_id, text = (sql.col(name) for name in ("principal", "rule_id", "text"))
    reason = sql.concat(sql.lit("`"), principal, sql.lit("` broke `"), rule_id, sql.lit("`: "), text)
    columns = {
        "finding_id": sql.sha2(identity, 256),
        "kind": sql.col("kind"),
        "severity": sql.lit("HIGH"),
        "score": sql.lit(1.0),
        "principal": principal,
        "day": sql.to_date(at),
        "first_time": sql.col("first_time"),
        "last_time": sql.col("last_time"),
        "event_count": sql.col("who_can_event_count") + sql.col("must_not_event_count"),
        "reason": reason,
        "evidence": evidence,
    }
    return broken.select(
        *[
            columns.get(field.name, sql.lit(None)).cast(field.dataType).alias(field.name)
            for field in FINDINGS_SCHEMA.fields
        ]
    )
