"""A process is killed when a broker has a request of it and no sink has its event: the event is not lost.

The sink is kept from writing by a lock on its file, which is all that the tests hold.
"""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import (
    METADATA,
    WorkerCluster,
    asked,
    creation_of,
    held_by,
    is_alive,
    log_in,
    worker_pids,
)
from testkit.kustos import KustosNode
from testkit.waiting import wait_until, whole_lines

CREATE_ACLS = 30


class Evidence(WorkerCluster):
    """A cluster whose one sink is Kafka's log file, with all that was allowed."""

    def __init__(self, directory: Path) -> None:
        self.lines = directory / "authorizer.log"
        sink = {
            "kustos.audit.sinks": "log4j",
            "kustos.audit.log4j.file": str(self.lines),
            "kustos.audit.log4j.level": "DEBUG",
        }
        super().__init__(directory, **sink)

    @contextmanager
    def nothing_is_written(self) -> Iterator[None]:
        """Hold the lock that whoever writes takes."""
        with self.lines.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def written(self, principal: str, api: str) -> int:
        """Return how many decisions for requests of this API are in the file."""
        lines = whole_lines(self.lines)
        return sum(f"Principal = User:{principal} " in line and f"request = {api} " in line for line in lines)

    def passed(self, client: RawClient) -> int:
        """Return how often brokers were asked for Metadata under this client's id, not the node's own."""
        asked_for = [(each.api_key, each.client_id) for each in self.upstream.exchanges]
        return asked_for.count((METADATA, client.client_id))

    def log_size(self) -> int:
        """Return how much the metadata log has."""
        logs = self.kustos.directory.rglob("__cluster_metadata-0/*.log")
        return sum(path.stat().st_size for path in logs)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    with Evidence(tmp_path_factory.mktemp("evidence")) as scene:
        yield scene


def kill_worker(cluster: Evidence, client: RawClient) -> None:
    """Kill the process that has this client."""
    [pid] = [pid for pid in worker_pids(cluster.kustos) if held_by(pid, cluster.kustos, [client])]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), what="it is dead")


def kill_all(cluster: Evidence, _client: RawClient) -> None:
    """Kill all processes of the node, at once as a power cut would."""
    pids = worker_pids(cluster.kustos)
    cluster.kustos.kill()
    for pid in pids:
        # else they would end by themselves, and wait for the sink
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, pids)), what="all are dead")


def come_back(node: KustosNode) -> None:
    if node.server is None:
        node.start()
    wait_until(node.is_ready, what="the node is ready")


@pytest.mark.parametrize("kill", [kill_worker, kill_all])
def test_what_a_killed_process_handed_over_is_written(
    cluster: Evidence, kill: Callable[[Evidence, RawClient], None]
) -> None:
    client = log_in(cluster, "alice")
    before, passed = cluster.written("alice", "Metadata"), cluster.passed(client)
    with cluster.nothing_is_written():
        client.send(asked(client))
        wait_until(lambda: cluster.passed(client) > passed, what="the broker has the request")
        kill(cluster, client)
    come_back(cluster.kustos)
    wait_until(lambda: cluster.written("alice", "Metadata") > before, what="its event is written")


@pytest.mark.parametrize("kill", [kill_worker, kill_all])
def test_a_change_that_is_in_the_log_has_its_event(
    cluster: Evidence, kill: Callable[[Evidence, RawClient], None]
) -> None:
    admin = log_in(cluster, "admin")
    before, size = cluster.written("admin", "CreateAcls"), cluster.log_size()
    with cluster.nothing_is_written():
        admin.send(admin.request(CREATE_ACLS, 3, creations=(creation_of(f"User:{kill.__name__}"),)))
        wait_until(lambda: cluster.log_size() > size, what="the change is in the log")
        kill(cluster, admin)
    come_back(cluster.kustos)
    wait_until(
        lambda: cluster.written("admin", "CreateAcls") > before,
        what="its event is written",
    )
