"""What a Connect client sees: the same stages over the same worlds; prints each answer that was wrong.

python -m tests.pipeline.deciding.over_connect URL
"""

import sys

from kustos.pipeline.deciding import AclSet, decide, decide_each, ship
from kustos.pipeline.deciding.shipping import FileAcls
from kustos.pipeline.replay import replay
from kustos.pipeline.schemas import QUESTION_COLUMNS
from kustos.pipeline.session import open_session
from tests.pipeline.deciding.worlds import asked_around, decided_singly, made_world
from tests.pipeline.replay.recorded import recorded, rollup_frame
from tests.unit.acl_worlds import acl

SEEDS = (1, 2)


def main(url: str) -> None:
    with open_session("over connect", remote=url) as spark:
        for seed in SEEDS:
            acl_set, asks = made_world(seed)
            questions = asked_around(asks, seed)
            ddl = ", ".join(f"{name} string" for name in QUESTION_COLUMNS)
            rows = [(number, *question) for number, question in enumerate(questions)]
            shipped = ship(spark, acl_set)
            if not isinstance(shipped, FileAcls) or ship(spark, acl_set) != shipped:
                raise SystemExit("a Connect session has no broadcast, and a set sent twice is the same")
            asked = spark.createDataFrame(rows, f"number int, {ddl}")
            decided = asked.transform(decide, shipped).transform(
                decide_each, shipped, with_rule=False, decision_column="each"
            )
            expected = decided_singly(acl_set.authorizer(), questions)
            for row, (decision, rule) in zip(decided.orderBy("number").collect(), expected, strict=True):
                said = row["decision"], row["each"], "" if decision == "ERROR" else row["rule"]
                if said != (decision, decision, rule):
                    raise SystemExit(f"{row} is {decision} by {rule}")
        today = AclSet.of("today", [acl("ALLOW READ User:bob TOPIC orders")])
        events = recorded(today, [("User:bob", "10.0.0.1", "READ", "TOPIC", "orders")], 10, seed=1)
        found = replay(spark, rollup_frame(spark, events), today.with_bindings("none", []), today).cached()
        [kind] = [row for row in found.by_kind.collect() if row["access"] == "ACCESS"]
        found.release()
        print(f"{kind['kind']} {kind['event_count'] == sum(event[1] == 'ACCESS' for event in events)}")


if __name__ == "__main__":
    main(sys.argv[1])
