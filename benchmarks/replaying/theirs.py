"""Their side: DuckDB makes the questions distinct and sums the flips, the same Python index decides between.

    python -m benchmarks.replaying.theirs EVENTS ACLS ROUNDS [TIMES [rules]]

prints one JSON line, as our side does; with `rules` also those of unchanged decisions are compared. One
process on one machine, DuckDB over all its cores.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from benchmarks.replaying.estate import acl_sets
from benchmarks.replaying.events import folder_of
from benchmarks.replaying.processor import tree_seconds
from kustos.pipeline.bulk.blocks import BulkAuthorizer
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.schemas import QUESTION_COLUMNS

RULES: Final = "rules"

RULE_TEXT: Final = """CASE WHEN rule.kind <> 'MatchingAcl' THEN rule.kind
        ELSE 'MatchingAcl(acl=StandardAcl[resourceType=' || rule.resource_type || ', resourceName='
            || rule.resource_name || ', patternType=' || rule.pattern_type || ', principal=' || rule.principal
            || ', host=' || rule.host || ', operation=' || rule.operation || ', permissionType='
            || rule.permission_type || '])' END"""
"""The rule of an event as the audit line writes it."""

DISTINCT = """
    SELECT principal_type || ':' || principal_name AS principal, host, operation, resource_type,
        resource_name, access, decision, count(*) AS event_count, sum(reference_count) AS reference_count,
        min(time) AS first_time, max(time) AS last_time
    FROM read_parquet($files) GROUP BY ALL"""

WITH_RULE = DISTINCT.replace("access, decision,", f"access, decision, {RULE_TEXT} AS rule_text,")

FLIPS = """
    SELECT *, CASE WHEN decision = 'ALLOWED' THEN 'LOST' ELSE 'GAINED' END AS kind
    FROM decided WHERE (decision = 'ALLOWED') <> (to_decision = 'ALLOWED')"""

FLIPS_OF_RULES = f"""{FLIPS}
    UNION ALL SELECT *, 'RULE_CHANGED' AS kind
    FROM decided WHERE (decision = 'ALLOWED') = (to_decision = 'ALLOWED') AND rule_text <> to_rule"""

SUMS = """
    sum(event_count) FILTER (kind = 'LOST' AND access = 'ACCESS'),
    sum(event_count) FILTER (kind = 'GAINED' AND access = 'ACCESS'),
    sum(event_count) FILTER (kind = 'LOST' AND access = 'LISTING'),
    sum(event_count) FILTER (kind = 'GAINED' AND access = 'LISTING'),
    min(first_time), max(last_time)"""


def replay(folder: Path, candidate: AclsInForce, times: int, *, with_rules: bool) -> dict[str, Any]:
    """Return the report of a replay over the files of a folder, each read so many times."""
    database = duckdb.connect()
    database.execute("SET enable_progress_bar = false")
    files = [str(path) for path in sorted(folder.glob("*.parquet"))]
    accesses: Any = database.execute(
        WITH_RULE if with_rules else DISTINCT, {"files": files * times}
    ).to_arrow_table()
    questions = accesses.select(list(QUESTION_COLUMNS))
    answers = BulkAuthorizer(candidate.authorizer(), with_rule=with_rules).authorize(questions)
    decided = accesses.append_column("to_decision", answers.column("result").cast(pa.string()))
    if with_rules:
        decided = decided.append_column("to_rule", answers.column("rule").cast(pa.string()))
    database.register("decided", decided)
    database.execute(f"CREATE TEMP TABLE flips AS {FLIPS_OF_RULES if with_rules else FLIPS}")
    kinds = database.execute(
        "SELECT kind || ' ' || access, count(*), sum(event_count) FROM flips GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    counted = "count(DISTINCT (resource_type, resource_name))"
    by_principal = database.execute(f"SELECT principal, {counted}, {SUMS} FROM flips GROUP BY ALL").fetchall()
    by_resource = database.execute(
        f"SELECT resource_type, resource_name, count(DISTINCT principal), {SUMS} FROM flips GROUP BY ALL"
    ).fetchall()
    return {
        "kinds": {name: [count, int(events)] for name, count, events in kinds},
        "principals": len(by_principal),
        "resources": len(by_resource),
    }


def main() -> None:
    arguments = sys.argv[1:]
    with_rules = arguments[-1] == RULES
    events, acls, rounds, *more = map(int, arguments[:-1] if with_rules else arguments)
    _, candidate = acl_sets(acls)
    seconds, core_seconds, found = [], [], {}
    for _ in range(rounds):
        start, start_of_cores = time.monotonic(), tree_seconds()
        found = replay(folder_of(events, acls), candidate, *(more or [1]), with_rules=with_rules)
        seconds.append(time.monotonic() - start)
        core_seconds.append(tree_seconds() - start_of_cores)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    times = {"seconds": seconds, "core_seconds": core_seconds}
    print(json.dumps({**times, "found": found, "python_resident": resident}))


if __name__ == "__main__":
    main()
