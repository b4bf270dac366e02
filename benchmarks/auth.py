"""`login-*`: logins for each second of the server's processor time, beside a Kafka broker in the same run.

A login is all of it: connect (with TLS: its handshake), ApiVersions, SaslHandshake, the tokens, one answered
ApiVersions of the session, close. `…-metadata` has a Metadata in its place, for which kustos opens a
connection to the broker behind it. `theirs` is a broker of Kafka that was warmed up by thousands of
logins of each kind, `ours` a node of one process with the same users, keys, certificates and tokens' secret,
and as by default without an audit log. A few clients log in at once; rounds alternate, medians are compared.
What either takes when nobody does anything is measured first and taken off. `login-p99-200` is how long a
login takes while 200 log in at once, again and again: the 99th percentile; `…-of-2` that of a node of two
workers.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.authenticating.load import Target, log_in_often
from benchmarks.authenticating.words import of_side
from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.guarding.load import cpu_s
from testkit.conversations.play import Side
from testkit.conversations.scene import Scene, scene
from testkit.jars import KAFKA

FLOORS: Final = {
    "plain": 1.0,
    "scram-256": 1.0,
    "scram-256-metadata": None,
    "scram-512": 1.0,
    "mtls": 1.0,
    "oauthbearer": 1.0,
    "token": 1.0,
}
"""Kind of login → the least share of the broker's logins."""

LOGINS: Final = 200 if QUICK else 1_500
WARM_UP: Final = 300 if QUICK else 3_000
"""Logins of each kind at the broker before anything is measured: the JVM compiles what it does often."""

WARM_UP_OF_OURS: Final = 200

CLIENTS: Final = 8
WORKERS: Final = 2
ROUNDS: Final = 1 if QUICK else 5
CROWD: Final = 200
CROWD_LOGINS: Final = 1_000 if QUICK else 2_000
"""Half a second of one process: at real-time priority Linux lets a core work for 0.95 s of each second
(`sched_rt_runtime_us`), and a process that has one core alone would stand still for the rest."""

CROWD_REST_S: Final = 0.6
"""Nobody does anything before a round, so that one second never has two of them."""

CROWD_ROUNDS: Final = 1 if QUICK else 31
"""The percentile of a round is a third higher or lower than that of the next of the same side."""

CROWD_KIND: Final = "scram-256"
IDLE_S: Final = 2.0 if QUICK else 6.0
P99: Final = "p99-200"


@dataclass(frozen=True, slots=True)
class Measured:
    """A side, what each kind of login is told to it, and what it takes at rest."""

    side: Side
    targets: dict[str, Target]
    idle: float
    """Processor seconds a second."""

    async def cpu_us(self, kind: str, logins: int) -> float:
        """Return the microseconds of the server's processor time for each of these logins."""
        before_s, begun_s = cpu_s(self.side.pid), time.perf_counter()
        await log_in_often(self.targets[kind], logins, CLIENTS)
        took_s = time.perf_counter() - begun_s
        spent_s = cpu_s(self.side.pid) - before_s - self.idle * took_s
        return spent_s * 1e6 / logins

    async def p99_ms(self) -> float:
        """Return the 99th percentile of a crowd's logins."""
        await asyncio.sleep(CROWD_REST_S)
        target = self.targets[CROWD_KIND]
        took_s = await log_in_often(target, CROWD_LOGINS, CROWD, leaves_out_first=True)
        return statistics.quantiles(took_s, n=100)[-1] * 1000


def targets_of(side: Side) -> dict[str, Target]:
    """Return where each kind of login goes at a side."""
    found = {}
    for kind, words in of_side(side).items():
        tls = side.tls["alice"] if kind == "mtls" else None
        host, _, port = side.addresses["SASL_PLAINTEXT" if tls is None else "SSL"].rpartition(":")
        found[kind] = Target(host=host, port=int(port), words=words(), tls=tls)
    return found


def at_rest(sides: Sequence[Side]) -> list[Measured]:
    """Return the sides with what they take when nobody does anything."""
    before = [cpu_s(side.pid) for side in sides]
    time.sleep(IDLE_S)
    spent = [(cpu_s(side.pid) - since) / IDLE_S for side, since in zip(sides, before, strict=True)]
    progress(
        "at rest: " + ", ".join(f"{side.name} {idle:.3f}" for side, idle in zip(sides, spent, strict=True))
    )
    return [Measured(side, targets_of(side), idle) for side, idle in zip(sides, spent, strict=True)]


async def alternate(
    name: str, sides: Sequence[Measured], rounds: int, run: Callable[[Measured], Awaitable[float]]
) -> list[float]:
    """Return the median of each side's rounds; every other round goes through the sides backwards."""
    taken: dict[str, list[float]] = {each.side.name: [] for each in sides}
    for number in range(1, rounds + 1):
        for each in sides[:: 1 if number % 2 else -1]:
            taken[each.side.name].append(await run(each))
        told = ", ".join(f"{key} {values[-1]:.4g}" for key, values in taken.items())
        progress(f"  {name} {number}/{rounds}: {told}")
    return [statistics.median(values) for values in taken.values()]


async def warm_up(side: Measured, logins: int) -> None:
    """Have a side do everything often."""
    for kind in FLOORS:
        await log_in_often(side.targets[kind], logins, 2 * CLIENTS)


async def per_second(kind: str, sides: Sequence[Measured]) -> Figure:
    """Return the figure of one kind of login."""
    ours, theirs = await alternate(f"login-{kind}, µs", sides, ROUNDS, lambda each: each.cpu_us(kind, LOGINS))
    return Figure(
        name=f"login-{kind}",
        unit="logins/s of one core",
        ours=1e6 / ours,
        theirs=1e6 / theirs,
        size=LOGINS,
        higher_is_better=True,
        floor=FLOORS[kind],
    )


async def crowded(sides: Sequence[Measured]) -> list[Figure]:
    """Return the figures of many logins at once."""
    ours, of_workers, theirs = await alternate(
        f"login-{P99}, ms", sides, CROWD_ROUNDS, lambda each: each.p99_ms()
    )
    return [
        Figure(
            name=f"login-{P99}{suffix}", unit="ms", ours=value, theirs=theirs, size=CROWD_LOGINS, floor=1.0
        )
        for suffix, value in (("", ours), (f"-of-{WORKERS}", of_workers))
    ]


async def measured(both: Scene, words: Sequence[str]) -> list[Figure]:
    """Return the figures whose names hold one of the words."""
    if both.kustos_of_workers is None:
        raise ValueError("the scene has a node of workers")
    ours, of_workers, theirs = at_rest((both.kustos, both.kustos_of_workers, both.kafka))
    progress(f"warming up, {WARM_UP} logins of each kind")
    for side, logins in ((theirs, WARM_UP), (ours, WARM_UP_OF_OURS), (of_workers, WARM_UP_OF_OURS)):
        await warm_up(side, logins)
    figures = []
    for kind in FLOORS:
        if any(word in f"login-{kind}" for word in words):
            figures.append(await per_second(kind, (ours, theirs)))
            progress(figures[-1].sentence())
    if any(word in f"login-{P99}" for word in words):
        for figure in await crowded((ours, of_workers, theirs)):
            progress(figure.sentence())
            figures.append(figure)
    return figures


def main() -> None:
    """Measure the kinds of login whose names hold one of the words, all without a word; print the figures."""
    words = sys.argv[1:] or [""]
    with tempfile.TemporaryDirectory(prefix="kustos-bench-") as folder:
        progress(f"starting Kafka {KAFKA.version} and kustos")
        with scene(Path(folder), for_speed=True, audit=False, workers=WORKERS) as both:
            figures = uvloop.run(measured(both, words))
    emit(figures)


if __name__ == "__main__":
    main()
