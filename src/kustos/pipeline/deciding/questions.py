"""Stages that decide: questions in, the same rows with a decision out, by the gateway's own authorizer."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from kustos.authorizer import RuleKind
from kustos.pipeline.deciding.shipped_acls import ShippedAcls, compiled
from kustos.pipeline.errors import QuestionsError
from kustos.pipeline.schemas import QUESTION_COLUMNS

VERDICT_SCHEMA: Final = StructType([StructField("decision", StringType()), StructField("rule", StringType())])

_KEY: Final = "_question_{}"


def principal_text() -> Column:
    """Return the principal of an audit event as `Type:name`."""
    return sql.concat("principal_type", sql.lit(":"), "principal_name")


def with_principal(events: DataFrame) -> DataFrame:
    """Return events with the column `principal`, which joins their type and name."""
    return events.withColumn("principal", principal_text())


def is_by_super_user(super_users: Collection[str]) -> Column:
    """Return whether a super user decided a recorded row: its rule says so.

    Lines of older brokers and of Confluent may name no rule: there `super_users` (`Type:name`) decide.
    """
    kind = sql.col("rule.kind")
    is_said = kind.eqNullSafe(RuleKind.SUPER_USER.value)
    if not super_users:
        return is_said
    is_one = sql.coalesce(sql.col("principal").isin(*sorted(super_users)), sql.lit(False))
    return is_said | (kind.isNull() & is_one)


def distinct_questions(rows: DataFrame) -> DataFrame:
    """Return each combination of `QUESTION_COLUMNS` once."""
    return rows.select(*QUESTION_COLUMNS).distinct()


def verdict(shipped: ShippedAcls, *, with_rule: bool = True) -> Column:
    """Return the verdict on each row by its `QUESTION_COLUMNS`: `decision` and `rule`, or the decision alone.

    ALLOWED, DENIED, or ERROR for an invalid question (an unknown operation, a principal without a type); the
    rule is the text of the audit line. No value of a row fails the query.
    """

    def judge(
        principal: pa.Array, host: pa.Array, operation: pa.Array, resource_type: pa.Array, name: pa.Array
    ) -> pa.Array:
        columns = [principal, host, operation, resource_type, name]
        texts = answered(shipped, columns, with_rule=with_rule)
        if not with_rule:
            return texts[0]
        return pa.StructArray.from_arrays(texts, names=VERDICT_SCHEMA.fieldNames())

    return evaluated_once(judge, VERDICT_SCHEMA if with_rule else StringType(), *QUESTION_COLUMNS)


def answered(
    shipped: ShippedAcls, columns: Sequence[pa.Array], *, with_rule: bool, as_codes: bool = False
) -> list[pa.Array]:
    """Return in a worker the decision of each row of `QUESTION_COLUMNS` and, with `with_rule`, its rule.

    As texts or, `as_codes`, as Arrow's dictionaries.
    """
    questions = dict(zip(QUESTION_COLUMNS, columns, strict=True))
    answers = compiled(shipped, with_rule=with_rule).authorize(questions)
    found = [answers.column(name) for name in answers.column_names]
    if not as_codes:
        found = [column.cast(pa.string()) for column in found]
    return [column.combine_chunks() for column in found]


def evaluated_once(function: Callable[..., pa.Array], kind: DataType, *columns: str | Column) -> Column:
    """Return a function (Arrow arrays to one array) of these columns, evaluated in one place.

    Else Spark pushes a filter on the result below the function, and below the step that makes the questions
    distinct, and evaluates it twice.
    """
    make: Any = arrow_udf
    column: Column = make(function, kind).asNondeterministic()(*columns)
    return column


def decide_each(
    questions: DataFrame,
    shipped: ShippedAcls,
    *,
    with_rule: bool = True,
    decision_column: str = "decision",
    rule_column: str = "rule",
) -> DataFrame:
    """Return the rows with the ACLs' decision on each: for rows that hardly repeat, or must keep their place.

    Columns of these names are replaced. Raises `QuestionsError` unless `QUESTION_COLUMNS` are there, texts.
    """
    check_questions(questions)
    if not with_rule:
        return questions.withColumn(decision_column, verdict(shipped, with_rule=False))
    judged = questions.withColumn(_KEY.format("verdict"), verdict(shipped))
    found = sql.col(_KEY.format("verdict"))
    return judged.withColumns(
        {decision_column: found.getField("decision"), rule_column: found.getField("rule")}
    ).drop(_KEY.format("verdict"))


def decide(
    questions: DataFrame,
    shipped: ShippedAcls,
    *,
    with_rule: bool = True,
    decision_column: str = "decision",
    rule_column: str = "rule",
) -> DataFrame:
    """Return the rows with the ACLs' decision on each; each distinct question is decided once.

    The rows of `decide_each`, in no fixed order.
    """
    check_questions(questions)
    answers = decide_each(distinct_questions(questions), shipped, with_rule=with_rule)
    names = {decision_column: "decision"} | ({rule_column: "rule"} if with_rule else {})
    keys = [sql.col(name).alias(_KEY.format(name)) for name in QUESTION_COLUMNS]
    decided = answers.select(*keys, *[sql.col(own).alias(name) for name, own in names.items()])
    condition = sql.lit(True)
    for name in QUESTION_COLUMNS:
        # by name: for Connect a column of `questions` would belong to both sides
        condition = condition & sql.col(name).eqNullSafe(sql.col(_KEY.format(name)))
    return questions.drop(*names).join(decided, condition).drop(*(_KEY.format(n) for n in QUESTION_COLUMNS))


def check_questions(questions: DataFrame) -> None:
    """Raise `QuestionsError` unless rows have the `QUESTION_COLUMNS`, as texts."""
    types = {field.name: field.dataType for field in questions.schema.fields}
    for name in QUESTION_COLUMNS:
        if name not in types:
            raise QuestionsError(f"questions need a column `{name}`")
        if not isinstance(types[name], StringType):
            raise QuestionsError(
                f"column `{name}` of questions is of type `{types[name].simpleString()}`, cast it to string"
            )
