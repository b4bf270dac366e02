"""A million tuples of a real-looking estate, decided in Spark, are what `StandardAuthorizer` says of each."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer.questions import Questioner
from kustos.pipeline.deciding import AclsInForce, decide_each, ship
from kustos.pipeline.schemas import QUESTION_COLUMNS

TUPLES = 1_000_000
WORDS = ["orders", "payments", "клики", "日本", "a", "", "*", "Ünï", "clicks.v2", "\U0001f600"]
NAMES = [
    f"{word}{middle}{number or ''}" for word in WORDS for middle in (".", "-eu.") for number in range(20)
]
NAMES += WORDS
USERS = [f"User:service-{number}" for number in range(60)]
USERS += ["User:日本", "User:", "Group:admins", "User:root", "User:a:b"]
HOSTS = [f"10.{a}.{b}.{a * b}" for a in range(4) for b in range(8)]
HOSTS += ["::1", "2001:db8:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%eth0", "", "not an address"]
PATTERN_HOSTS = ["*", "*", "*", "*", "10.0.0.0/8", "10.1.0.0/16", "10.2.3.6", "2001:db8::/32", "::1"]
KINDS = [ResourceType.TOPIC] * 6 + [ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALTER]


def estate(rng: Random) -> Iterator[AclBinding]:
    """Yield ACLs of every kind: literals, prefixes, `*`, denials, addresses, ranges, names of all scripts."""
    for _ in range(6_000):
        is_prefix = rng.random() < 0.3
        name = rng.choice(NAMES)
        pattern = ResourcePattern(
            rng.choice(KINDS),
            name[: rng.randint(1, 6)] if is_prefix and name else name if rng.random() < 0.97 else "*",
            PatternType.PREFIXED if is_prefix and name else PatternType.LITERAL,
        )
        entry = AccessControlEntry(
            rng.choice(USERS) if rng.random() < 0.97 else "User:*",
            rng.choice(PATTERN_HOSTS),
            rng.choice([*OPERATIONS, AclOperation.ALL]),
            AclPermissionType.DENY if rng.random() < 0.15 else AclPermissionType.ALLOW,
        )
        yield AclBinding(pattern, entry)


def asked_columns(rng: Random) -> dict[str, list[str]]:
    """Return a million questions as columns, of whoever and whatever is spoken of, and of neighbours."""
    names = [*NAMES, *(f"{name}x" for name in NAMES[::3])]
    return {
        "principal": rng.choices([*USERS, "User:stranger"], k=TUPLES),
        "host": rng.choices(HOSTS, k=TUPLES),
        "operation": rng.choices([str(each) for each in OPERATIONS], k=TUPLES),
        "resource_type": rng.choices([str(each) for each in KINDS], k=TUPLES),
        "resource_name": rng.choices(names, k=TUPLES),
    }


@pytest.mark.timeout(900)
def test_a_million_tuples_are_decided_as_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(2026)
    acl_set = AclsInForce.of("estate", estate(rng), super_users="User:root")
    columns = asked_columns(rng)
    path = tmp_path / "questions.parquet"
    parquet.write_table(pa.table({"number": range(TUPLES), **columns}), path, row_group_size=1 << 17)

    asked = spark.read.parquet(str(path)).transform(decide_each, ship(spark, acl_set))
    decided = asked.select("number", "decision", "rule").toArrow().sort_by("number")

    questioner = Questioner(acl_set.authorizer())
    ask, write = questioner.ask, questioner.write
    rows = zip(*(columns[name] for name in QUESTION_COLUMNS), strict=True)
    answers = [write(ask(*row)) for row in rows]
    expected = dict(zip(("decision", "rule"), zip(*answers, strict=True), strict=True))
    assert set(expected["decision"]) == {"ALLOWED", "DENIED"}
    assert len(set(expected["rule"])) > 1_000
    for name in ("decision", "rule"):
        found = decided.column(name).cast(pa.string())
        assert found.equals(pa.chunked_array([pa.array(expected[name], pa.string())]))
