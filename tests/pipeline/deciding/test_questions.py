"""What stages say of each row is what a session of the authorizer says of it."""

from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.testing import assertDataFrameEqual

from kustos.pipeline.deciding import AclsInForce, decide, decide_each, ship, with_principal
from kustos.pipeline.errors import QuestionsError
from kustos.pipeline.schemas import QUESTION_COLUMNS
from testkit.acls.one_line import acls
from tests.pipeline.deciding.worlds import Question, asked_around, decided_singly, made_world

pytestmark = pytest.mark.usefixtures("users_plans")

QUESTIONS_DDL = ", ".join(f"{name} string" for name in QUESTION_COLUMNS)
QUICK = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
READS = "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, {}])"
SMALL = AclsInForce.of(
    "small",
    acls(["ALLOW READ User:alice TOPIC orders", "DENY READ User:* TOPIC orders from 10.0.0.2"]),
    super_users="User:root",
)
ALICE: Question = ("User:alice", "10.0.0.1", "READ", "TOPIC", "orders")
ELSEWHERE: Question = ("User:alice", "10.0.0.2", "READ", "TOPIC", "orders")
ROOT: Question = ("User:root", "10.0.0.2", "READ", "TOPIC", None)


def frame(spark: SparkSession, questions: list[Question]) -> DataFrame:
    rows = [(number, *question) for number, question in enumerate(questions)]
    return spark.createDataFrame(rows, f"number int, {QUESTIONS_DDL}")


def test_a_decision_stands_beside_each_question(spark: SparkSession) -> None:
    asked = frame(spark, [ALICE, ROOT, ELSEWHERE, ALICE]).withColumn("decision", sql.lit("recorded"))
    shipped = ship(spark, SMALL)
    allows = READS.format("principal=User:alice, host=*, operation=READ, permissionType=ALLOW")
    denies = READS.format("principal=User:*, host=10.0.0.2, operation=READ, permissionType=DENY")
    expected = spark.createDataFrame(
        [
            (0, *ALICE, "recorded", "ALLOWED", allows),
            (1, *ROOT, "recorded", "ALLOWED", "SuperUser"),
            (2, *ELSEWHERE, "recorded", "DENIED", denies),
            (3, *ALICE, "recorded", "ALLOWED", allows),
        ],
        f"number int, {QUESTIONS_DDL}, decision string, now string, why string",
    )
    names = {"decision_column": "now", "rule_column": "why"}
    assertDataFrameEqual(asked.transform(decide, shipped, **names), expected)
    assertDataFrameEqual(asked.transform(decide_each, shipped, **names), expected)
    bare = expected.select("number", *QUESTION_COLUMNS, sql.col("now").alias("decision"))
    assertDataFrameEqual(
        asked.transform(decide, shipped, with_rule=False).select("number", *QUESTION_COLUMNS, "decision"),
        bare,
    )


@QUICK
@given(seed=st.integers(0, 10_000))
def test_each_row_says_what_a_session_says(spark: SparkSession, seed: int) -> None:
    acl_set, asks = made_world(seed)
    questions = asked_around(asks, seed)
    shipped, asked = ship(spark, acl_set), frame(spark, questions)
    both = asked.transform(decide, shipped).transform(
        decide_each, shipped, with_rule=False, decision_column="each"
    )
    rows = both.orderBy("number").collect()
    assert [row["number"] for row in rows] == list(range(len(questions)))
    expected = decided_singly(acl_set.authorizer(), questions)
    for row, (decision, rule) in zip(rows, expected, strict=True):
        assert (row["decision"], row["each"]) == (decision, decision)
        assert row["rule"].startswith("Error(") if decision == "ERROR" else row["rule"] == rule


def test_a_filter_on_the_decision_asks_no_question_twice(spark: SparkSession) -> None:
    asked = frame(spark, [ALICE, ELSEWHERE, ALICE]).transform(decide_each, ship(spark, SMALL))
    denied = asked.filter(sql.col("decision") == "DENIED")
    said = StringIO()
    with redirect_stdout(said):
        denied.explain()
    assert said.getvalue().count("ArrowEvalPython") == 1
    assert [row["number"] for row in denied.collect()] == [1]


def test_an_event_is_a_question_once_its_principal_is_whole(spark: SparkSession) -> None:
    event = spark.createDataFrame([("User", "a:b")], "principal_type string, principal_name string")
    assert [row["principal"] for row in event.transform(with_principal).collect()] == ["User:a:b"]


def test_columns_that_are_missing_or_no_texts_are_named(spark: SparkSession) -> None:
    shipped = ship(spark, SMALL)
    for questions, said in (
        (frame(spark, [ALICE]).drop("host"), "questions need a column `host`"),
        (frame(spark, [ALICE]).withColumn("host", sql.lit(1)), "column `host` of questions is of type `int`"),
    ):
        for stage in (decide, decide_each):
            with pytest.raises(QuestionsError, match=said):
                stage(questions, shipped)
