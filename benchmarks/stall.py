"""`stall-*`: how long others wait while a node is attacked, beside the same attack on a Kafka broker.

A bystander in a process of its own sends a Metadata each 5 ms; a figure is the longest wait for an answer,
the median of the rounds. `theirs` is a broker of Kafka with StandardAuthorizer, `ours` a fresh node for
each attack: of one process, and (`…-of-2`) of two workers, with a bystander at each of them. A figure holds
that is no longer than the broker's, or under 100 ms. `stall-slow-readers-memory` is what a node holds for
clients that fetch and never read; its `theirs` is the limit that we set ourselves.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.stalling import memory
from benchmarks.stalling.attacks import ATTACKS, Attack
from benchmarks.stalling.sides import READY_TIMEOUT_S, Field, Side, Watch, as_admin
from testkit.jars import KAFKA
from testkit.waiting import DeadlineExceededError

ROUNDS: Final = 1 if QUICK else 3
WORKERS: Final = (1, 2)
QUIET_S: Final = 1.0
"""How long a bystander asks in peace before each attack: both sides are warm then."""

ENOUGH_MS: Final = 100.0
"""A wait that is none to a client, however soon a broker would have answered."""

MEMORY: Final = "stall-slow-readers-memory"


def longest_wait(side: Side, attack: Attack) -> float:
    """Return the milliseconds that a bystander waited at most, the median of the rounds.

    A side that is not served again in minutes is given up, with as long as it was waited for.
    """
    attack.prepare(side)
    side.settle()
    if side.node is None:
        attack.run(side)  # a JVM is slow at what it does for the first time
    waits: list[float] = []
    try:
        with side.watched(asks_by_id=attack.asks_by_id) as watch:
            for number in range(1, ROUNDS + 1):
                waits.append(one_round(side, attack, watch, f"{number}/{ROUNDS}"))
                side.settle()
    except DeadlineExceededError as error:
        progress(f"  {attack.name} at {side.name}: given up, {error}")
        return READY_TIMEOUT_S * 1000
    return statistics.median(waits)


def one_round(side: Side, attack: Attack, watch: Watch, number: str) -> float:
    """Return the longest wait from the beginning of an attack until the bystander is served again."""
    time.sleep(QUIET_S)
    quiet_ms = watch.longest_until_served()
    begun_s = time.perf_counter()
    tally = attack.run(side)
    took_s = time.perf_counter() - begun_s
    longest_ms = watch.longest_until_served()
    progress(
        f"  {attack.name} {number} at {side.name}: {longest_ms:.0f} ms ({quiet_ms:.0f} in peace); "
        f"{tally} in {took_s:.1f} s"
    )
    return longest_ms


def suffix(workers: int) -> str:
    """Return what the names of figures with these workers end in."""
    return "" if workers == 1 else f"-of-{workers}"


def waits(field: Field, attack: Attack) -> Iterator[Figure]:
    """Yield the figures of one attack."""
    theirs = longest_wait(field.kafka(), attack)
    for workers in WORKERS:
        with field.kustos(workers) as side:
            yield Figure(
                name=attack.name + suffix(workers),
                unit="ms",
                ours=longest_wait(side, attack),
                theirs=theirs,
                size=attack.size,
                floor=1.0,
                enough=ENOUGH_MS,
            )


def held(field: Field) -> Iterator[Figure]:
    """Yield the figures of clients that never read."""
    for properties in (as_admin(field.measure.bootstrap), {"bootstrap.servers": field.upstream.bootstrap}):
        memory.fill_topic(properties)
    memory.most_held(field.kafka())
    for workers in WORKERS:
        with field.kustos(workers) as side:
            yield Figure(
                name=MEMORY + suffix(workers),
                unit="MB",
                ours=memory.most_held(side),
                theirs=memory.LIMIT_MB,
                size=memory.CLIENTS,
                floor=1.0,
            )


def main() -> None:
    """Run the attacks whose names hold one of the words, all without a word; print the figures."""
    words = sys.argv[1:] or [""]
    chosen = [attack for attack in ATTACKS if any(word in attack.name for word in words)]
    figures = []
    with tempfile.TemporaryDirectory(prefix="kustos-bench-") as folder:
        progress(f"starting Kafka {KAFKA.version} twice")
        field = Field(Path(folder))
        with field.started():
            if any(word in MEMORY for word in words):
                figures += list(held(field))
            for attack in chosen:
                figures += list(waits(field, attack))
    for figure in figures:
        progress(figure.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
