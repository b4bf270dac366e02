"""Kustos, Kafka and the specification on many random worlds, spread over processes.

Each process has an oracle of its own and takes every n-th world, so a seed means the same worlds however
many processes there are.
"""

import itertools
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.oracle import Oracle, build
from testkit.differential.replay import answers_of_kustos, answers_of_spec, as_listed, first_difference
from testkit.differential.worlds import Acls, Ask, Cidr, Fault, New, Question, Step, to_lines
from testkit.paths import ROOT

FINDINGS = ROOT / ".cache" / "differential"
SHAPE = Shape(acl_count=140, question_count=400)
WORLDS_PER_SEED = 1_000_000
HEAP_MAX_MB = 192
"""A world is small."""
JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1",)
"""Half the processor time: better code would take longer to make than it saves."""


@dataclass(slots=True)
class Tally:
    """What was compared; `differences` holds what a person needs to see of each world that differs."""

    worlds: int = 0
    styles: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    @property
    def decisions(self) -> int:
        return self.kinds.total()

    def add(self, other: "Tally") -> None:
        self.worlds += other.worlds
        self.styles.update(other.styles)
        self.kinds.update(other.kinds)
        self.differences += other.differences


def compare(name: str, steps: list[Step], ours: list[str], theirs: list[str], whose: str) -> str | None:
    """Return the first difference and keep the world, None if there is none."""
    difference = first_difference(steps, ours, theirs)
    if difference is None:
        return None
    FINDINGS.mkdir(parents=True, exist_ok=True)
    found: Path = FINDINGS / f"{name}.world"
    found.write_text("".join(f"{line}\n" for line in to_lines(steps)), encoding="utf-8")
    return f"{name}: kustos and {whose} differ, steps kept in {found}\n{difference}"


def run(seed: int, decisions_min: int, processes: int | None = None) -> Tally:
    """Compare worlds of a seed until there were so many decisions, or a few that differ."""
    build()  # once, before the processes need it
    count = processes or os.cpu_count() or 1
    whole = Tally()
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        share = -(-decisions_min // count)
        for tally in pool.map(
            _run_share, *zip(*((seed, share, n, count) for n in range(count)), strict=True)
        ):
            whole.add(tally)
    return whole


def _run_share(seed: int, decisions_min: int, first: int, step: int) -> Tally:
    tally = Tally()
    with Oracle(HEAP_MAX_MB, *JAVA_OPTIONS) as oracle:
        for number in itertools.count(first, step):
            compare_world(seed, number, oracle, tally)
            if tally.decisions >= decisions_min or tally.differences:
                return tally
    return tally


def compare_world(seed: int, number: int, oracle: Oracle, tally: Tally) -> None:
    maker = WorldMaker(seed * WORLDS_PER_SEED + number, SHAPE)
    steps = list(maker.steps())
    replies = oracle.asked(list(to_lines(steps)))
    ours = answers_of_kustos(steps)
    specified = answers_of_spec(steps)
    name = f"seed-{seed}-{number}"
    for theirs, whose in ((as_listed(steps, replies()), "Kafka"), (specified, "the specification")):
        difference = compare(name, steps, ours, theirs, whose)
        if difference is not None:
            tally.differences.append(difference)
            break
    tally.worlds += 1
    tally.styles[maker.style] += 1
    tally.kinds.update(kinds_of(steps, ours))


def kinds_of(steps: list[Step], answers: list[str]) -> Iterator[str]:
    """Yield which kind of outcome each answer is."""
    rest = iter(answers)
    for step in steps:
        if isinstance(step, Question):
            yield kind_of(step, next(rest))


def kind_of(question: Question, answer: str) -> str:
    match question:
        case Fault():
            return "fault"
        case Cidr():
            return f"in the range: {answer}"
        case New():
            return f"new ACL: {answer.partition(':')[0]}"
        case Acls():
            verdict, _, listing = answer.partition("\t")
            return "filter: refused" if verdict != "OK" else f"filter: {'some' if listing else 'none'}"
        case Ask(name=None):
            return f"by type: {answer.partition(chr(9))[0]}"
    result, _, rule = answer.partition("\t")
    return result if result == "ERROR" or rule.startswith("MatchingAcl") else rule
