"""Several processes serve one node: what one of them acknowledges is in force in all of them."""

from collections.abc import Iterator

import pytest

from tests.e2e.crew import (
    WORKERS,
    connections_of,
    crew_scene,
    deny,
    is_denied,
    log_in,
    undo,
    worker_pids,
    writer_pid,
)
from tests.e2e.scene import Scene

CONNECTIONS = 24
ROUNDS = 300


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with crew_scene(tmp_path_factory.mktemp("crew")) as scene:
        yield scene


def test_an_acknowledged_change_is_in_force_on_every_connection_of_every_worker(crew: Scene) -> None:
    admins = [log_in(crew, "admin") for _ in range(6)]
    clients = [log_in(crew, "alice") for _ in range(CONNECTIONS)]
    pids = worker_pids(crew.kustos)
    assert len(pids) == WORKERS
    held = [connections_of(pid, crew.kustos.port) for pid in pids]
    assert sum(held) == len(admins) + len(clients)
    assert min(held) > 0, "the kernel gave them all to one worker"
    assert connections_of(writer_pid(crew.kustos), crew.kustos.port) == 0
    missed = 0
    for number in range(ROUNDS):
        assert deny(admins[number % len(admins)]) == 0
        missed += is_denied(clients).count(False)
        assert undo(admins[(number + 1) % len(admins)]) == 0
        missed += is_denied(clients).count(True)
    assert missed == 0
    for client in (*admins, *clients):
        client.socket.close()
