"""Crashes at every step: nothing acknowledged is lost, nothing is half applied, no damage goes unseen."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kustos.metadata import snapshots
from kustos.metadata.log import segment, writer
from kustos.metadata.log.layout import SnapshotId
from kustos.metadata.log.retention import Superfluous, superfluous
from kustos.metadata.snapshots import SnapshotJob
from tests.simulation import disk
from tests.simulation.disk import SimulatedAppendFile, SimulatedDisk
from tests.simulation.run import LIVES_PER_WORLD, simulate
from tests.simulation.world import ViolationError, World

POINTS = int(os.environ.get("KUSTOS_POINTS") or 1500)
"""`make simulation` runs 10,000."""

SEED = int(os.environ.get("KUSTOS_SEED") or 1)
LIMIT = 4000
CORPUS = [
    tuple(line.split(" ", 1))
    for line in (Path(__file__).parent / "corpus.txt").read_text().splitlines()
    if not line.startswith("#")
]


def test_no_crash_loses_what_was_acknowledged() -> None:
    seen = simulate(SEED, POINTS)
    print(f"seed {SEED}: {dict(sorted(seen.items()))}")
    for what in (
        "power cut", "kill", "fsync", "full", "log failed", "snapshot", "change amid a snapshot",
        "damage stopped the start", "power cut in write", "power cut in fsync", "power cut in rename",
        "power cut in unlink", "power cut in fsync directory", "unacknowledged, yet there",
    ):  # fmt: skip
        assert seen[what], f"the run says nothing of `{what}`"


@pytest.mark.parametrize(("seed", "what"), CORPUS)
def test_what_broke_once_holds(seed: str, what: str) -> None:
    world = World(seed)
    while world.live() and world.lives < LIVES_PER_WORLD:
        continue


def does_nothing(*_: Any) -> None:
    return None


def only_the_last_segment(*arguments: Any) -> Superfluous:
    found = superfluous(*arguments)
    return Superfluous(found.snapshots, tuple(sorted(arguments[1])[:-1]) if found.snapshots else ())


class OneTooFar(SnapshotJob):
    """A snapshot that claims to contain one record more than it does."""

    def __init__(self, partition: Path, *arguments: Any, **named: Any) -> None:
        super().__init__(partition, *arguments, **named)
        object.__setattr__(self, "id", SnapshotId(self.id.end_offset + 1, self.id.epoch))
        object.__setattr__(self, "path", partition / self.id.file_name)


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "what a failed fsync left is taken for durable": (SimulatedDisk, "rewrite", does_nothing),
    "appends are not synced": (SimulatedAppendFile, "sync", does_nothing),
    "files written whole are not synced": (disk.File, "sync", does_nothing),
    "directories are not synced": (SimulatedDisk, "_sync_directory", lambda self: self.step("nothing")),
    "the writer forgets that it failed": (writer.LogWriter, "require_working", does_nothing),
    "all damage at the end passes for torn": (segment, "is_torn_tail", lambda *_: True),
    "a torn tail passes for damage": (segment, "is_torn_tail", lambda *_: False),
    "segments are deleted that a snapshot needs": (snapshots, "superfluous", only_the_last_segment),
    "a snapshot claims too much": (snapshots, "SnapshotJob", OneTooFar),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_simulation_finds_a_planted_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, broken = FAULTS[fault]
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(ViolationError):
        simulate(7, LIMIT)
