"""Reviews of one small record by two sets of ACLs, here or in a process of its own that is killed.

`reviewing TABLES ACLS`: the process kills itself when it has committed one table of the review.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kustos.pipeline.deciding import read_acl_set
from kustos.pipeline.review.job import ReviewQuestion, run_review
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import Tables, delta
from testkit.spark_quick import INTERPRETED, PLANNED_ONCE, SETTINGS
from tests.pipeline.tables.driver import BEGUN, after

ANSWERS = ("access_review", "entitlements", "findings")
AS_OF = datetime(2026, 11, 22, tzinfo=UTC)
_HEAD = "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, patternType=LITERAL)`:"


def acls_for(path: Path, *names: str) -> Path:
    """Write ACLs by which these users may read a topic, and a redundant one for each."""
    entries = [
        f" \t(principal=User:{name}, host={host}, operation=READ, permissionType=ALLOW)"
        for name in names
        for host in ("*", "10.0.0.1")
    ]
    path.write_text("\n".join([_HEAD, *entries, ""]))
    return path


def review(spark: SparkSession, tables: Tables, acls: Path) -> tuple[Tables, dict[str, Any]]:
    """Review the tables by these ACLs."""
    question = ReviewQuestion(acls=read_acl_set(acls, name=acls.name), as_of=AS_OF, dormant_days=30, teams={})
    return run_review(spark, tables, question)


def principals(spark: SparkSession, tables: Tables) -> dict[str, set[str]]:
    """Return the principals that each answer of a review names."""
    return {
        name: {row["principal"] for row in tables.read(spark, name).select("principal").collect()}
        for name in ANSWERS
    }


def main(folder: str, acls: str) -> None:
    with open_session("kustos killed", settings=SETTINGS | INTERPRETED | PLANNED_ONCE) as spark:
        delta.write = after(1, delta.write)
        print(BEGUN, flush=True)
        review(spark, Tables.at(folder), Path(acls))


if __name__ == "__main__":
    main(*sys.argv[1:])
