"""What both sides read: a broker's audit logs of twenty days, and the ACLs on trial."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.replaying.estate import estate
from kustos.acl.forms import AclForm, write_acls
from kustos.pipeline.bulk import authorize_many

DAYS: Final = 20
BROKERS: Final = 2
USES_SHARE: Final = 0.44
"""Distinct uses that may be drawn, for each line: each as often as any other, nine of ten are."""

START_MS: Final = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000)
DAY_MS: Final = 86_400_000
SEED: Final = 17


def write_logs(folder: Path, line_count: int, acl_count: int) -> Path:
    """Write a log for each broker and day in Kafka's text; return the file of the candidate's ACLs."""
    made = estate(acl_count, max(1_000, int(line_count * USES_SHARE)))
    rules = authorize_many(made.today.authorizer(), made.questions, with_rule=True).column("rule")
    texts = _texts(made.questions, made.decisions, rules.combine_chunks().cast(pa.string()))
    rng = np.random.default_rng(SEED)
    (folder / "audit").mkdir(parents=True)
    files = DAYS * BROKERS
    for number in range(files):
        count = line_count * (number + 1) // files - line_count * number // files
        first = START_MS + number // BROKERS * DAY_MS
        times = pa.array((first + np.sort(rng.integers(0, DAY_MS, count))) * 1000)
        moments = pc.strftime(times.cast(pa.timestamp("us")).cast(pa.timestamp("ms")), "%Y-%m-%d %H:%M:%S")
        asked = pa.array(rng.integers(0, len(texts), count))
        lines = pc.binary_join_element_wise(
            "[", pc.replace_substring(moments, ".", ","), texts.take(asked), " (kafka.authorizer.logger)", ""
        )
        name = f"broker-{number % BROKERS}-kafka-authorizer.log.{number // BROKERS + 1:02d}"
        with (folder / "audit" / name).open("w", encoding="utf-8") as file:
            file.write("\n".join(lines.to_pylist()))
            file.write("\n")
    candidate = folder / "candidate.jsonl"
    candidate.write_text(write_acls(made.candidate.bindings, AclForm.JSON_LINES), encoding="utf-8")
    return candidate


def _texts(questions: Any, decisions: Any, rules: Any) -> Any:
    """Return the part of a line between its time and its logger, for each question."""
    column = {
        name: questions.column(name).combine_chunks().cast(pa.string()) for name in questions.column_names
    }
    is_denied = pc.equal(decisions, "DENIED")
    kinds = pc.if_else(pc.equal(column["resource_type"], "TOPIC"), "Topic", "Group")
    counts = random.Random(SEED)
    references = pa.array([str(counts.randrange(1, 4)) for _ in range(len(decisions))])
    return pc.binary_join_element_wise(
        pc.if_else(is_denied, "] INFO Principal = ", "] DEBUG Principal = "),
        column["principal"],
        pc.if_else(is_denied, " is Denied operation = ", " is Allowed operation = "),
        column["operation"],
        " from host = ",
        column["host"],
        " on resource = ",
        kinds,
        ":LITERAL:",
        column["resource_name"],
        " for request = Fetch with resourceRefCount = ",
        references,
        " based on rule ",
        rules,
        "",
    )
