"""`make bench-front_door`: from nothing to the first decision, in a process of its own.

- front-door-import: `from kustos import StandardAuthorizer`, beside `import kafka` (kafka-python, of pure
  Python as kustos is). Both hold what Python itself takes, which is told beside them.
- front-door-first-decision: a program that loads one ACL, decides and ends, beside a JVM that does so with
  Kafka's StandardAuthorizer.

Rounds alternate, bytecode is in the cache. The import is timed as processor time of the process, since the
machine may be shared; the decision by the wall, since a JVM works with several threads at a time.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.figures import QUICK, Figure, emit, progress, rounded
from testkit.differential.oracle import Oracle, build

ROUNDS = 5 if QUICK else 25
ENOUGH_MS = 100.0
"""A command or a worker that starts for each question is not held up."""

DECIDE = """
from uuid import UUID
from kustos import (AccessControlEntry, AclBinding, AclOperation, AclPermissionType, KafkaPrincipal,
                    PatternType, ResourcePattern, ResourceType, StandardAuthorizer)
entry = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
orders = AclBinding(ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL), entry)
authorizer = StandardAuthorizer()
authorizer.load_snapshot([(UUID(int=1), orders)])
authorizer.complete_initial_load()
alice = authorizer.session(KafkaPrincipal("User", "alice"), "10.0.0.1")
print(alice.decide(AclOperation.READ, ResourceType.TOPIC, "orders").result.value)
"""


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def decide_in_java() -> None:
    with Oracle() as oracle:
        acl = "1\tTOPIC\torders\tLITERAL\tUser:alice\t*\tREAD\tALLOW"
        ask = "ask\tUser:alice\t10.0.0.1\tREAD\tTOPIC\torders"
        [reply] = oracle.answers(["start\t\tfalse", f"add\t{acl}", ask])
    assert reply.startswith("ALLOWED"), reply


def decide_here() -> None:
    assert run_python(DECIDE) == "ALLOWED\n"


def processor_s() -> float:
    """Return the seconds that processors spent on processes that we started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def medians(clock: Callable[[], float], *sides: Callable[[], object]) -> list[float]:
    """Return the median milliseconds of each side, in rounds that alternate; the first warms the caches."""
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(ROUNDS + 1):
        for side, noted in zip(sides, taken, strict=True):
            begin = clock()
            side()
            if number:
                noted.append((clock() - begin) * 1000)
    return [statistics.median(noted) for noted in taken]


def main() -> None:
    build()
    python, ours, theirs = medians(
        processor_s,
        lambda: run_python("pass"),
        lambda: run_python("from kustos import StandardAuthorizer"),
        lambda: run_python("import kafka"),
    )
    progress(f"python alone: {rounded(python):g} ms")
    imported = Figure(
        name="front-door-import",
        unit="ms",
        ours=ours,
        theirs=theirs,
        size=1,
        floor=1,
        enough=ENOUGH_MS,
    )
    ours, theirs = medians(time.perf_counter, decide_here, decide_in_java)
    decided = Figure(name="front-door-first-decision", unit="ms", ours=ours, theirs=theirs, size=1, floor=1)
    for figure in (imported, decided):
        progress(figure.sentence())
    emit([imported, decided])


if __name__ == "__main__":
    main()
