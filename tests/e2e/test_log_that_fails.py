"""A node whose log cannot be written goes on: workers are replaced, changes answered, decisions recorded."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import (
    ENDED,
    WorkerCluster,
    deny,
    figure,
    is_denied,
    log_in,
    undo,
    wait_replaced,
    worker_pids,
)
from testkit.kustos import KustosNode
from testkit.small_disk import small_disk
from testkit.waiting import wait_until

LOST = "kustos_log_lines_lost_total"
DROPPED, WRITTEN = "kustos_audit_dropped_events_total", "kustos_audit_written_events_total"
REQUESTS_AT_ONCE = 100

Fail = Callable[[], object]
StandardError = Callable[[Path], AbstractContextManager[tuple[Path, Fail]]]
"""A directory → a path to which the node's standard error goes, and what makes that fail."""


@contextmanager
def dead_reader(directory: Path) -> Iterator[tuple[Path, Fail]]:
    """A pipe whose reader dies."""
    path = directory / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, lambda: os.close(reading)


@contextmanager
def hung_reader(directory: Path) -> Iterator[tuple[Path, Fail]]:
    """A pipe whose reader does not read."""
    path = directory / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY | os.O_NONBLOCK)

    def fill() -> None:
        with suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(1))

    yield path, fill
    os.close(writing)
    os.close(reading)


@contextmanager
def full_disk(directory: Path) -> Iterator[tuple[Path, Fail]]:
    """A file on a disk without room."""
    with small_disk(directory / "log disk") as disk:
        yield disk.path / "log", disk.fill


class LoggingCluster(WorkerCluster):
    """A node with workers whose standard error goes to a path."""

    def __init__(self, directory: Path, log: Path, **properties: str) -> None:
        super().__init__(directory, **properties)
        self.settings = replace(self.settings, audit=False)
        self.log = log

    def _kustos_before(self, upstream: str) -> KustosNode:
        node = super()._kustos_before(upstream)
        node.before_command = ("sh", "-c", 'log="$1"; shift; exec "$@" 2>>"$log"', "sh", str(self.log))
        return node


def kill_a_worker_twice(scene: WorkerCluster) -> None:
    ended = figure(scene.kustos, ENDED)
    for count in (1, 2):
        os.kill(worker_pids(scene.kustos)[0], signal.SIGKILL)
        wait_replaced(scene.kustos, ended + count)
    assert len(worker_pids(scene.kustos)) == 2


def decide_until(scene: WorkerCluster, condition: Callable[[], bool], what: str) -> None:
    """Have many requests decided, again and again, until the condition holds."""

    def decided() -> bool:
        with log_in(scene, "alice") as client:
            for _ in range(REQUESTS_AT_ONCE):
                assert is_denied([client]) == [False]
        return condition()

    wait_until(decided, what=what)


@pytest.mark.parametrize("standard_error", [dead_reader, hung_reader, full_disk])
def test_a_node_goes_on_whatever_becomes_of_its_log(standard_error: StandardError, tmp_path: Path) -> None:
    with standard_error(tmp_path) as (log, fail), small_disk(tmp_path / "audit disk") as disk:
        properties = {
            "kustos.audit.sinks": "json",
            "kustos.audit.json.dir": str(disk.path / "audit"),
            "kustos.audit.on.full": "drop",
            "kustos.audit.queue.max.events": "50",
        }
        with LoggingCluster(tmp_path / "cluster", log, **properties) as scene:
            node = scene.kustos
            fail()
            kill_a_worker_twice(scene)
            with scene.administrator() as operator, log_in(scene, "alice") as client:
                assert deny(operator) == 0
                assert is_denied([client]) == [True]
                assert undo(operator) == 0, "no fence and no drain may hang"
                assert is_denied([client]) == [False]
            with RawClient(scene.bootstrap, "alice-client") as client, pytest.raises(PermissionError):
                client.log_in("alice", "another password")
            disk.fill()
            decide_until(scene, lambda: figure(node, DROPPED) > 0, "events are dropped")
            disk.free()
            written = figure(node, WRITTEN)
            decide_until(scene, lambda: figure(node, WRITTEN) > written, "events are written again")
            kill_a_worker_twice(scene)
            # lines for a reader that hangs still wait
            assert (figure(node, LOST) > 0) is (standard_error is not hung_reader)
            assert node.stop() == 0, "not even its end waits for the log"
