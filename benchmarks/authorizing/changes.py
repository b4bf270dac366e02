"""Loading a snapshot, adding and removing one ACL, and what a million of them weigh."""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import UUID

from benchmarks.authorizing.loads import SHRINK, Load, kept_lines, mixed_acls, zipf
from benchmarks.authorizing.sides import WARM_UP_MS, Ours, Theirs
from benchmarks.figures import Figure, median_per_item, progress, timed
from kustos.acl import AclBinding
from kustos.authorizer import StandardAuthorizer

LOADED: Final = {"load-1k": 1_000, "load-10k": 10_000, "load-100k": 100_000, "load-1m": 1_000_000}
WEIGHED: Final = 1_000_000 // SHRINK
CHANGES: Final = 1_000
CHANGE_ROUNDS: Final = 21
WARM_UP_ROUNDS: Final = 5
DECISIONS_BETWEEN: Final = 20
"""Decisions before each single change, as many on either side."""
FRESH_NUMBER_MIN: Final = 1 << 64
"""Above the ids of every load."""


def distinct_acls(count: int) -> list[AclBinding]:
    """Return so many mixed ACLs, no two equal."""
    made: dict[AclBinding, None] = {}
    for binding in mixed_acls(random.Random(count), max(count, 1_000)):
        made[binding] = None
        if len(made) == count:
            break
    return list(made)


def load_speed(name: str, size: int, floor: float) -> list[Figure]:
    """Load a snapshot as a node does: once, soon after the start; each of theirs has a JVM of its own.

    `…-settled` is beside it for the curious: their compiler has then seen the same load for seconds.
    The garbage collectors work as they do in a node.
    """
    progress(f"{name}: {size} ACLs")
    bindings = distinct_acls(size)
    acls = [(UUID(int=number), binding) for number, binding in enumerate(bindings)]
    lines = list(kept_lines(enumerate(bindings)))
    mine: list[int] = []
    first: list[int] = []
    for _ in range(3 if size >= 1_000_000 else 5):
        mine.append(timed(_loading(acls), collecting=True, clock=time.perf_counter_ns))
        first += _their_loads(lines, "load\t1\t-1")
    settled = _their_loads(lines, "load\t3\t0" if size >= 1_000_000 else f"load\t11\t{WARM_UP_MS}")
    figures = [
        Figure(
            name=name + suffix,
            unit="ms",
            ours=statistics.median(mine) / 1e6,
            theirs=statistics.median(their) / 1e6,
            size=size,
            floor=wanted,
        )
        for suffix, their, wanted in (("", first, floor), ("-settled", settled, None))
    ]
    for figure in figures:
        progress(figure.sentence())
    return figures


def _their_loads(lines: list[str], command: str) -> list[int]:
    with Theirs(len(lines)) as theirs:
        [reply] = theirs.ask(*lines, command)
    count, *durations = [int(field) for field in reply.split("\t")]
    if count != len(lines):
        raise SystemExit(f"{len(lines)} ACLs here, {count} there")
    return durations


def _loading(acls: list[tuple[UUID, AclBinding]]) -> Callable[[], None]:
    authorizer = StandardAuthorizer()
    return lambda: authorizer.load_snapshot(acls)


def memory(floor: float) -> list[Figure]:
    """Weigh both sides, each in a process of its own that reads the ACLs from text, as from a log."""
    progress(f"memory-1m: {WEIGHED} ACLs")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "acls"
        lines = list(kept_lines(enumerate(distinct_acls(WEIGHED))))
        file.write_text("\n".join(lines), encoding="utf-8")
        mine = weigh(file)
    with Theirs(WEIGHED) as theirs:
        before, loaded, after = theirs.ask("heap", *lines, "load\t0\t0", "heap")
    figure = Figure(
        name="memory-1m",
        unit="MB",
        ours=mine / 1e6,
        theirs=(int(after) - int(before)) / 1e6,
        size=int(loaded),
        floor=floor,
    )
    progress(figure.sentence())
    return [figure]


def weigh(file: Path) -> int:
    """Return by how many bytes a fresh process grows that loads the ACLs of a file."""
    command = [sys.executable, "-m", "benchmarks.authorizing.weigh", str(file)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def our_load(load: Load) -> float:
    """Return the nanoseconds of a load, the median of three."""
    acls = [(UUID(int=number), binding) for number, binding in enumerate(load.bindings)]
    return statistics.median(
        timed(_loading(acls), collecting=True, clock=time.perf_counter_ns) for _ in "123"
    )


def fresh_acls(load: Load) -> list[AclBinding]:
    """Return mixed ACLs that a load does not have."""
    known = set(load.bindings)
    made = (binding for binding in mixed_acls(random.Random(7), load.size) if binding not in known)
    distinct: dict[AclBinding, None] = {}
    while len(distinct) < CHANGES:
        distinct[next(made)] = None
    return list(distinct)


def numbered_acls(fresh: list[AclBinding]) -> list[tuple[UUID, AclBinding]]:
    return [(UUID(int=FRESH_NUMBER_MIN + number), binding) for number, binding in enumerate(fresh)]


def our_changes(ours: Ours, fresh: list[AclBinding]) -> tuple[list[int], list[int]]:
    """Return the nanoseconds of adding all of these and of removing them, for each round."""
    numbered = numbered_acls(fresh)
    ours.warm()
    adds: list[int] = []
    removes: list[int] = []
    for _ in range(WARM_UP_ROUNDS + CHANGE_ROUNDS):
        adds.append(timed(lambda: _add(ours.authorizer, numbered), collecting=True))
        removes.append(timed(lambda: _remove(ours.authorizer, numbered), collecting=True))
    return adds[WARM_UP_ROUNDS:], removes[WARM_UP_ROUNDS:]


def our_single_changes(ours: Ours, fresh: list[AclBinding]) -> tuple[list[int], list[int]]:
    """Return the nanoseconds of each addition and of each removal, with decisions between any two."""
    decide = ours.deciding(DECISIONS_BETWEEN)
    clock = time.perf_counter_ns
    adds: list[int] = []
    removes: list[int] = []
    for acl_id, binding in numbered_acls(fresh):
        decide()
        start = clock()
        ours.authorizer.add_acl(acl_id, binding)
        adds.append(clock() - start)
    for acl_id, _ in numbered_acls(fresh):
        decide()
        start = clock()
        ours.authorizer.remove_acl(acl_id)
        removes.append(clock() - start)
    return adds, removes


def one_change(floors: dict[str, float]) -> list[Figure]:
    """Add and remove one ACL among 100,000, while sessions decide: each change comes after decisions.

    `...-burst` is the same without decisions, a thousand changes on end again and again: what a change
    touches is then at hand on both sides.
    """
    load: Load = zipf(random.Random(1))
    progress(f"add and remove: {load.size} ACLs")
    ours = Ours(load)
    fresh = fresh_acls(load)
    bursts = our_changes(ours, fresh)
    singles = our_single_changes(ours, fresh)
    with Theirs(load.size) as theirs:
        theirs.keep(load)
        theirs.ask(*kept_lines(enumerate(fresh, load.size)))
        [reply] = theirs.ask(f"singly\t{DECISIONS_BETWEEN}\t{WARM_UP_MS}")
        count, *their_singles = [int(field) for field in reply.split("\t")]
        theirs.ask(*kept_lines(enumerate(fresh, load.size)))
        [reply] = theirs.ask(f"change\t{CHANGE_ROUNDS}\t{WARM_UP_MS}")
        count, *their_bursts = [int(field) for field in reply.split("\t")]
    sides = {
        "add-100k": (singles[0], their_singles[:count], 1),
        "remove-100k": (singles[1], their_singles[count:], 1),
        "add-100k-burst": (bursts[0], their_bursts[::2], count),
        "remove-100k-burst": (bursts[1], their_bursts[1::2], count),
    }
    figures = [
        Figure(
            name=name,
            unit="ns/change",
            ours=median_per_item(mine, changes),
            theirs=median_per_item(their, changes),
            size=load.size,
            floor=floors.get(name),
        )
        for name, (mine, their, changes) in sides.items()
    ]
    for figure in figures:
        progress(figure.sentence())
    return figures


def _add(authorizer: StandardAuthorizer, numbered: list[tuple[UUID, AclBinding]]) -> None:
    for acl_id, binding in numbered:
        authorizer.add_acl(acl_id, binding)


def _remove(authorizer: StandardAuthorizer, numbered: list[tuple[UUID, AclBinding]]) -> None:
    for acl_id, _ in numbered:
        authorizer.remove_acl(acl_id)
