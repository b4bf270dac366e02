"""What stages decide is what Kafka's own `StandardAuthorizer` decides, rule by rule."""

import pytest
from pyspark.sql import SparkSession

from kustos.acl import AclOperation, ResourceType
from kustos.pipeline.deciding import decide, ship
from kustos.pipeline.schemas import QUESTION_COLUMNS
from testkit.differential.oracle import Oracle
from testkit.differential.worlds import Add, Ask, Start, Step, to_lines
from tests.pipeline.deciding.worlds import Question, asked_around, made_world

SEEDS = range(6)
ANSWERS_MIN = 2_000
STUCK_MILLIS = 60_000
"""No question here runs on for ever; a JVM that starts beside others may take its time over the first."""


def steps_of(seed: int) -> tuple[list[Step], list[Question]]:
    """Return a world for the oracle, and the questions that it can be asked: whole ones, whoever asks."""
    acl_set, asks = made_world(seed)
    questions = list(
        dict.fromkeys(
            question
            for question in asked_around(asks, seed)
            if all(question[:4])
            and question[2] in AclOperation.__members__
            and AclOperation[str(question[2])] > AclOperation.ANY
            and question[3] in ResourceType.__members__
            and ResourceType[str(question[3])] > ResourceType.ANY
            and ":" in str(question[0])
            and question[0] != "User:*"
            and not {"\0", "\t", "\n"} & set("".join(each or "" for each in question))
        )
    )
    users = ";".join(sorted(acl_set.super_users))
    steps: list[Step] = [Start(users, acl_set.allow_everyone_if_no_acl_found, ready=True)]
    steps += [Add(number, binding) for number, binding in enumerate(acl_set.bindings)]
    steps += [
        Ask(str(who), str(host), AclOperation[str(operation)], ResourceType[str(kind)], name)
        for who, host, operation, kind, name in questions
    ]
    return steps, questions


@pytest.fixture(scope="module")
def theirs() -> dict[int, list[str]]:
    """Return Kafka's answers to each world."""
    with Oracle(512, f"-Dstuck.millis={STUCK_MILLIS}") as oracle:
        return {seed: oracle.answers(list(to_lines(steps_of(seed)[0]))) for seed in SEEDS}


def test_decisions_and_rules_are_kafkas(spark: SparkSession, theirs: dict[int, list[str]]) -> None:
    names = ", ".join(f"{name} string" for name in QUESTION_COLUMNS)
    for seed in SEEDS:
        _, questions = steps_of(seed)
        numbered = [(number, *question) for number, question in enumerate(questions)]
        asked = spark.createDataFrame(numbered, f"number int, {names}")
        rows = asked.transform(decide, ship(spark, made_world(seed)[0])).orderBy("number").collect()
        ours = [
            row["decision"] if row["resource_name"] is None else f"{row['decision']}\t{row['rule']}"
            for row in rows
        ]
        assert ours == theirs[seed]
    assert sum(map(len, theirs.values())) > ANSWERS_MIN
