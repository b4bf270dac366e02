"""`bulk-10m`: ten million decisions over Arrow columns, with the ACLs of the Zipf load, on one core.

Each case is a process of its own, so that its memory is. Figures are decisions a second of processor time
(one core's; the machine may be shared) and of the clock, medians over rounds that each prepare everything
again, and by how much the process grew at its highest. A sample of the answers is compared with a
session's. Growth: the same question at a hundredth and a tenth of the rows.
"""

import gc
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.authorizing.loads import ASKED, DOMAINS, HOST, mixed_topics, zipf
from benchmarks.figures import QUICK, progress, rounded
from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import StandardAuthorizer
from kustos.pipeline.bulk import authorize_many

ROWS = 1_000_000 if QUICK else 10_000_000
ROUNDS = 3
ACLS = 100_000
SAMPLE = 20_000
STEP = 7_368_787
"""Shares no factor with the number of all questions, so that its multiples meet each of them once."""

TOPICS = mixed_topics(random.Random(ACLS), ACLS)
PRINCIPALS = [f"User:service-{number}" for number in range(ACLS // 50)]
OPERATIONS = [str(operation) for operation in ASKED]


def zipf_codes(rows: int) -> list[np.ndarray]:
    """Return who asks what of which topic, by the Zipf law of the load: many questions come again."""
    rng = np.random.default_rng(2026)
    weights = np.array(list(accumulate(1 / (rank + 1) for rank in range(len(TOPICS)))))
    topics = np.searchsorted(weights, rng.random(rows) * weights[-1])
    return [rng.integers(0, len(PRINCIPALS), rows), rng.integers(0, len(OPERATIONS), rows), topics]


def distinct_codes(rows: int) -> list[np.ndarray]:
    """Return as many different questions, evenly spread over all that there are."""
    numbers = np.arange(rows) * STEP % (len(PRINCIPALS) * len(OPERATIONS) * len(TOPICS))
    numbers, topics = np.divmod(numbers, len(TOPICS))
    principals, operations = np.divmod(numbers, len(OPERATIONS))
    return [principals, operations, topics]


def table_of(codes: list[np.ndarray], names: pa.Array | None = None) -> pa.Table:
    """Return questions as columns of dictionaries, of strings where names are given."""
    rows = len(codes[0])
    none = pa.array(np.zeros(rows, np.int8))
    principals, operations, topics = (pa.array(column.astype(np.int32)) for column in codes)
    encode = pa.DictionaryArray.from_arrays
    table = pa.table(
        {
            "principal": encode(principals, pa.array(PRINCIPALS)),
            "host": encode(none, pa.array([HOST])),
            "operation": encode(operations, pa.array(OPERATIONS)),
            "resource_type": encode(none, pa.array(["TOPIC"])),
            "resource_name": encode(topics, pa.array(TOPICS)) if names is None else names,
        }
    )
    return (
        table
        if names is None
        else pa.table({name: table[name].cast(pa.string()) for name in table.schema.names})
    )


def strings(codes: list[np.ndarray]) -> pa.Table:
    return table_of(codes, pa.array(TOPICS).take(pa.array(codes[2])))


def new_names(rows: int) -> pa.Table:
    codes = distinct_codes(rows)
    numbers = range(rows)
    return table_of(codes, pa.array([f"{DOMAINS[n % 8]}.{n % 997}.events-{n}" for n in numbers]))


CASES: dict[str, tuple[Callable[[int], pa.Table], float, bool]] = {
    "bulk-10m-zipf": (lambda rows: table_of(zipf_codes(rows)), 10e6, False),
    "bulk-10m-zipf-strings": (lambda rows: strings(zipf_codes(rows)), 10e6, False),
    "bulk-10m-distinct": (lambda rows: table_of(distinct_codes(rows)), 2e6, False),
    "bulk-10m-distinct-strings": (lambda rows: strings(distinct_codes(rows)), 2e6, False),
    "bulk-10m-distinct-names": (new_names, 2e6, False),
    "bulk-10m-zipf-rule": (lambda rows: table_of(zipf_codes(rows)), 0, True),
}
"""Questions, the floor in decisions a second (0: none was set) and whether rules are asked for."""


def loaded() -> StandardAuthorizer:
    return StandardAuthorizer.of(zipf(random.Random(2026), ACLS).bindings)


def check(authorizer: StandardAuthorizer, table: pa.Table, answers: pa.Table) -> None:
    sample = random.Random(1).sample(range(table.num_rows), min(SAMPLE, table.num_rows))
    asked, said = table.take(sample).to_pylist(), answers.take(sample).to_pylist()
    for question, answer in zip(asked, said, strict=True):
        session = authorizer.session(KafkaPrincipal.parse(question["principal"]), question["host"])
        kind = ResourceType[question["resource_type"]]
        decision = session.decide(AclOperation[question["operation"]], kind, question["resource_name"])
        if answer["result"] != decision.result.value or answer.get("rule", str(decision.rule)) != str(
            decision.rule
        ):
            raise SystemExit(f"a session answers `{question}` differently: {decision}, not {answer}")


def begin_peak() -> int:
    """Let the kernel forget how much memory this process had; return how much it has."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident_peak()


def resident_peak() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(peak) * 1024


def run_case(name: str, rows: int) -> dict[str, object]:
    """Measure in this process; print nothing."""
    pa.set_cpu_count(1)
    make, floor, with_rule = CASES[name]
    authorizer, table = loaded(), make(rows)
    gc.collect()
    gc.freeze()
    before = begin_peak()
    of_core, of_clock = [], []
    for _ in range(ROUNDS):
        start, start_of_core = time.perf_counter(), time.process_time()
        answers = authorize_many(authorizer, table, with_rule=with_rule)
        of_core.append(rows / (time.process_time() - start_of_core))
        of_clock.append(rows / (time.perf_counter() - start))
    check(authorizer, table, answers)
    rate = statistics.median(of_core)
    figure: dict[str, object] = {"name": name, "unit": "decisions/s of one core", "ours": rounded(rate)}
    figure |= {"of_the_clock": rounded(statistics.median(of_clock)), "size": rows, "acls": ACLS}
    figure |= {"growth_bytes": resident_peak() - before}
    if floor and rows == ROWS:
        figure |= {"floor": floor, "holds": rate >= floor}
    return figure | ({"quick": True} if QUICK else {})


def main() -> None:
    if len(sys.argv) == 3:
        print(json.dumps(run_case(sys.argv[1], int(sys.argv[2]))))
        return
    for name in CASES:
        sizes = [ROWS // 100, ROWS // 10, ROWS] if name == "bulk-10m-zipf" else [ROWS]
        for size in sizes:
            progress(f"{name}: {size} questions, {ACLS} ACLs")
            command = [sys.executable, "-m", "benchmarks.bulk", name, str(size)]
            print(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout,
                end="",
                flush=True,
            )


if __name__ == "__main__":
    main()
