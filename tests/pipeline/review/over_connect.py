"""Every answer of review, findings and reach on one small world, as text: the same from any kind of session.

python -m tests.pipeline.review.over_connect URL
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kustos.analysis import parse_policy
from kustos.pipeline.deciding import AclSet
from kustos.pipeline.findings import Existing, acl_findings, removable_together
from kustos.pipeline.reach import (
    edges,
    flow_paths,
    parse_duties,
    rule_findings,
)
from kustos.pipeline.review import access_review, lost_uses
from kustos.pipeline.session import open_session
from tests.pipeline.review.worlds import AS_OF, acl, history, rollup, row

READ_PAY = acl("User:alice", "READ", "TOPIC", "pay.", prefixed=True)
WRITE_OLD = acl("User:bob", "WRITE", "TOPIC", "old")
ALTER = acl("User:bob", "ALTER", "CLUSTER", "kafka-cluster")
ACLS = [READ_PAY, acl("User:alice", "READ", "TOPIC", "pay.in"), WRITE_OLD, ALTER]
ROWS = [
    row("User:alice", "READ", "pay.in", day=110, count=5, rule=READ_PAY),
    row("User:bob", "WRITE", "pay.in", day=111, count=2, decision="DENIED"),
    row("User:bob", "WRITE", "pay.in", day=1),
    row("User:root", "READ", None, day=112),
]
DUTIES = "version: 1\nduties: [{whoever: WRITE topic old, must_not: ALTER cluster}]"
POLICY = 'version: 1\nstatements: [{never: "anyone but User:alice WRITE topics under pay."}]'


def answers(spark: Any) -> dict[str, list[str]]:
    """Return the rows of each answer as JSON, sorted."""
    acls = AclSet.of("t", ACLS, super_users="User:root")
    recorded = rollup(spark, ROWS)
    since = history(spark, [(WRITE_OLD, 3, None)])
    teams = {"User:al*": "shops"}
    found = acl_findings(
        spark, recorded, acls, as_of=AS_OF, existing=Existing.of(topics=["pay.in"]), history=since
    )
    tables: dict[str, DataFrame] = {
        "access_review": access_review(spark, recorded, acls, as_of=AS_OF, teams=teams, history=since),
        "acl_findings": found,
        "removable_together": removable_together(found),
        "rule_findings": rule_findings(
            spark,
            recorded,
            acls,
            as_of=AS_OF,
            duties=parse_duties(DUTIES),
            policy=parse_policy(POLICY),
        ),
        "flow_paths": flow_paths(edges(recorded), hops_max=2),
    }
    told = {
        name: sorted(one[0] for one in table.select(sql.to_json(sql.struct(*table.columns))).collect())
        for name, table in tables.items()
    }
    lost = lost_uses(spark, recorded, acls, as_of=AS_OF)(acls.with_bindings("none", []))
    return told | {"lost_uses": [json.dumps(one) for one in lost]}


def main(url: str) -> None:
    with open_session("over connect", remote=url) as spark:
        print(json.dumps(answers(spark)))


if __name__ == "__main__":
    main(sys.argv[1])
