"""Sixteen kills of a writer: nothing acknowledged is lost, nothing is half applied."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import DirectoryError
from kustos.metadata.store.store import MetadataStore
from testkit.metadata_logs import segments
from testkit.processes import spawn
from tests.crash.store_victim import ACLS_PER_REQUEST, POLICY

KILLS = 16
SEED = 20
PLACES = ("fsync", "write", "snapshot", "write")
CUT_SHORT_MIN = KILLS // len(PLACES) * PLACES.count("write")
"""Requests that are never acknowledged; a kill that is meant to meet an fsync may come after the answer."""


def run_and_kill(directory: Path, first: int, requests: int, where: str) -> tuple[set[int], int]:
    """Let the victim acknowledge so many requests, then kill it.

    `where`: "write" after the next write and before its fsync; "fsync" right after the fsync was let go, so
    that the kill meets fsync, publishing, the answer or what comes after; "snapshot" amid the next snapshot.
    Return what was acknowledged, and the last request that was begun.
    """
    command = [sys.executable, "-m", "tests.crash.store_victim", str(directory), str(first)]
    victim = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert victim.stdin is not None
    assert victim.stdout is not None
    acknowledged: set[int] = set()
    begun = first - 1
    try:
        while True:
            word, number = victim.stdout.readline().split()
            if word == b"A":
                acknowledged.add(int(number))
                continue
            if word == b"B":
                begun = int(number)
                continue
            is_there = (word == b"P") if where == "snapshot" else (word == b"W")
            if len(acknowledged) >= requests and is_there:
                if where == "fsync":
                    victim.stdin.write(b"\n")
                    victim.stdin.flush()
                break
            victim.stdin.write(b"\n")
            victim.stdin.flush()
    finally:
        victim.kill()
        rest = victim.stdout.read().split(b"\n")[:-1]
        victim.wait()
        victim.stdin.close()
        victim.stdout.close()
    # until the kill it may have gone on: to the answer, and to the write of another request
    told = [(line[:1], int(line[2:])) for line in rest]
    acknowledged |= {number for word, number in told if word == b"A"}
    return acknowledged, max([begun, *(number for word, number in told if word == b"B")])


def test_a_format_that_was_killed_can_be_done_again(tmp_path: Path) -> None:
    format_directory(tmp_path)
    (tmp_path / "meta.properties").unlink()
    format_directory(tmp_path)
    store = MetadataStore.open(tmp_path)
    store.close()
    (tmp_path / "meta.properties").unlink()
    with pytest.raises(DirectoryError, match="holds a log already"):
        format_directory(tmp_path)


def test_no_acknowledged_request_is_lost_and_none_is_half_applied(tmp_path: Path) -> None:
    directory = tmp_path / "metadata"
    format_directory(directory)
    chance = random.Random(SEED)
    acknowledged: set[int] = set()
    unanswered: list[int] = []
    asked = amid_snapshots = 0
    for kill in range(KILLS):
        done, last = run_and_kill(directory, asked, chance.randrange(8), PLACES[kill % len(PLACES)])
        acknowledged |= done
        if last not in done:
            unanswered.append(last)
        amid_snapshots += PLACES[kill % len(PLACES)] == "snapshot"
        asked = last + 1
        MetadataStore.open(directory, policy=POLICY).close()
        counts: dict[int, int] = {}
        for binding in read_image(directory).acls.values():
            number = int(binding.pattern.name.partition("-")[0])
            counts[number] = counts.get(number, 0) + 1
        assert set(counts.values()) <= {ACLS_PER_REQUEST}, "a request is half applied"
        assert acknowledged <= counts.keys(), "an acknowledged request is lost"
        assert counts.keys() <= acknowledged | set(unanswered), "there is what nobody asked for"
    assert len(unanswered) >= CUT_SHORT_MIN
    assert amid_snapshots == KILLS // len(PLACES)
    assert min(segments(directory)) > 0, "old segments were deleted meanwhile"
