"""The same where the change is asked for in one process, and the client's request waits in another."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import pytest

from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import connections_of, wait_ready, worker_pids, worker_settings
from testkit.kustos import KustosNode
from testkit.late_passage.fields import FETCH, PRODUCE, produce
from testkit.late_passage.stage import AFTER, LATE, REQUEST_TIMED_OUT, Stage
from testkit.processes import frozen
from testkit.waiting import wait_until
from tests.e2e.late_passage.line import FOLLOWER, HEADS, HURRIED, Line, Staged

ATTEMPTS = 64
"""Connections until the kernel has given one to the other worker: each fails as a coin does."""

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def workers(line: Line) -> Iterator[KustosNode]:
    """A node of two workers."""
    with line.guard("workers", **worker_settings(**HURRIED)) as node:
        yield node


@pytest.fixture
def staged(line: Line, workers: KustosNode) -> Iterator[Staged]:
    """Sets the stage behind a broker, its client at another worker than the administrator."""
    with ExitStack() as stack:

        def enter(broker: int) -> Stage:
            wait_ready(workers)
            made = stack.enter_context(line.stage(f"workers-{next(_NUMBERS)}", workers, broker))
            for _ in range(ATTEMPTS):
                if worker_of_client(workers, made) != holder(workers, made.admin, workers.port):
                    return made
                made.client = made.connect()
            raise AssertionError("the kernel gave the other worker none of them")

        yield enter


@pytest.fixture
def stage(staged: Staged) -> Stage:
    """The stage behind the first broker."""
    return staged(1)


def worker_of_client(node: KustosNode, stage: Stage) -> int:
    """Return the worker that has the client's connection."""
    return holder(node, stage.client, node.first_broker_port + stage.broker)


def holder(node: KustosNode, client: RawClient, port: int) -> int:
    """Return the worker that has a connection to one of the node's ports."""
    own = client.socket.getsockname()[1]
    [pid] = [each for each in worker_pids(node) if own in connections_of(each, port)]
    return pid


@pytest.mark.parametrize("api", HEADS)
def test_nothing_in_another_worker_is_worked_on_after_an_acknowledged_change(
    line: Line, stage: Stage, api: str
) -> None:
    head = line.head(api, stage)
    stage.send(head.frame, *stage.behind())
    stage.wait_handed_over(head.api_key)
    assert stage.delete() == [0, 0]
    stage.write(AFTER)
    head.release()
    # the request that waited is allowed still, so it is answered
    [_, *behind] = stage.answers(head.api_key, PRODUCE, FETCH)
    stage.assert_nothing_late(behind)


def test_a_waiting_request_in_another_worker_is_cut_off(line: Line, stage: Stage) -> None:
    head = line.head("JoinGroup", stage)
    stage.send(head.frame)
    stage.wait_handed_over(head.api_key)
    assert stage.delete(*head.right) == [0]
    assert stage.client.is_closed()
    head.release()


def test_a_change_is_not_acknowledged_while_a_broker_may_yet_write_for_a_worker_that_died(
    line: Line, workers: KustosNode, staged: Staged
) -> None:
    stage = staged(FOLLOWER)
    with frozen(line.node(FOLLOWER).pid):
        stage.send(stage.request(PRODUCE, **produce(stage.topic, LATE)))
        stage.wait_handed_over(PRODUCE)
        os.kill(worker_of_client(workers, stage), signal.SIGKILL)
        assert stage.client.is_closed()
        assert REQUEST_TIMED_OUT in stage.delete()
    wait_until(lambda: stage.delete() == [0, 0], what="the broker is known to be done")
    stage.write(AFTER)
    assert LATE not in stage.log().partition(AFTER)[2]
