"""Several processes serve one node: what one of them acknowledges is in force in all of them."""

import json
import os
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from kio.schema.alter_user_scram_credentials.v0.request import ScramCredentialUpsertion
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8, i32

from kustos.gateway.workers.channel import socket_path
from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import (
    CONNECTION_COUNT,
    CREATE_ACLS,
    DELETE_ACLS,
    ENDED,
    WORKERS,
    WorkerCluster,
    close_all,
    connections_of,
    creation_of,
    deny,
    figure,
    filter_of,
    has_room,
    held_by,
    is_alive,
    is_denied,
    log_in,
    log_of,
    set_in_file,
    undo,
    wait_connections,
    wait_ready,
    wait_replaced,
    worker_pids,
    writer_pid,
)
from testkit.processes import freeze
from testkit.tap.frames import code, read_response
from testkit.waiting import PATIENCE_S, wait_until, whole_lines

CONNECTIONS = 24
SPREAD_TRIES = 64
ROUNDS = 300
APPLY_TIMEOUT_MS = 10_000
"""Waited for in full where a worker hangs; one that only waits for a core on a busy machine must not."""
PER_ADDRESS = 40
ALTER_CONFIGS, DESCRIBE_SCRAM, ALTER_SCRAM = 44, 50, 51
SETTING_ROUNDS = 30
ACLS_AT_ONCE = 10_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerCluster]:
    limits = {
        "kustos.workers.apply.timeout.ms": str(APPLY_TIMEOUT_MS),
        "max.connections.per.ip": str(PER_ADDRESS),
    }
    with WorkerCluster(tmp_path_factory.mktemp("cluster"), **limits) as scene:
        yield scene


@pytest.fixture
def cluster(world: WorkerCluster) -> WorkerCluster:
    """The node, as it is when nothing was done to it."""
    wait_ready(world.kustos)
    wait_connections(world.kustos, 0)
    return world


Opened = Callable[[str, int], list[RawClient]]


@pytest.fixture
def opened(cluster: WorkerCluster) -> Iterator[Opened]:
    """Opens connections of a user, as many as are wanted, with some in every worker."""
    made: list[RawClient] = []

    def spread(user: str, count: int) -> list[RawClient]:
        clients: list[RawClient] = []
        for _ in range(SPREAD_TRIES):
            clients += [log_in(cluster, user) for _ in range(count - len(clients))]
            held = [held_by(pid, cluster.kustos, clients) for pid in worker_pids(cluster.kustos)]
            assert sum(map(len, held)) == count
            if all(held):
                made.extend(clients)
                return clients
            # the kernel draws the worker for each: another draw for the eldest
            close_all([clients.pop(0)])
        raise AssertionError("the kernel gave a worker none of them")

    yield spread
    close_all(made)


def test_an_acknowledged_change_is_in_force_on_every_connection_of_every_worker(
    cluster: WorkerCluster, opened: Opened
) -> None:
    admins, clients = opened("admin", 10), opened("alice", CONNECTIONS)
    assert len(worker_pids(cluster.kustos)) == WORKERS
    assert connections_of(writer_pid(cluster.kustos), cluster.kustos.port) == set()
    missed = 0
    for number in range(ROUNDS):
        assert deny(admins[number % len(admins)]) == 0
        missed += is_denied(clients).count(False)
        assert undo(admins[(number + 1) % len(admins)]) == 0
        missed += is_denied(clients).count(True)
    assert missed == 0


def set_dynamic_super_users(operator: RawClient, users: str | None) -> None:
    change = AlterableConfig(name="super.users", config_operation=i8(0 if users else 1), value=users)
    resource = AlterConfigsResource(resource_type=i8(4), resource_name="1", configs=(change,))
    answer = operator.ask(ALTER_CONFIGS, 1, resources=(resource,), validate_only=False)
    assert [int(each.error_code) for each in answer.responses] == [0]


def test_a_setting_changed_at_the_admin_listener_is_in_force_in_every_worker(
    cluster: WorkerCluster, opened: Opened
) -> None:
    clients = opened("dave", 12)
    missed = 0
    with cluster.administrator() as operator:
        for _ in range(SETTING_ROUNDS):
            set_dynamic_super_users(operator, "User:admin;User:dave")
            missed += is_denied(clients).count(True)
            set_dynamic_super_users(operator, None)
            missed += is_denied(clients).count(False)
    assert missed == 0


def set_level(operator: RawClient, logger: str, level: str) -> None:
    change = AlterableConfig(name=logger, config_operation=i8(0), value=level)
    resource = AlterConfigsResource(resource_type=i8(8), resource_name="1", configs=(change,))
    answer = operator.ask(ALTER_CONFIGS, 1, resources=(resource,), validate_only=False)
    assert [int(each.error_code) for each in answer.responses] == [0]


def test_log_levels_are_those_of_all_processes(cluster: WorkerCluster) -> None:
    def closed_lines() -> int:
        return log_of(cluster.kustos).read_text().count('"connection closed"')

    with cluster.administrator() as operator:
        set_level(operator, "kustos.gateway", "FATAL")
        before = closed_lines()
        with RawClient(cluster.bootstrap, "strange") as client:
            client.send(b"no request")
            assert client.is_closed()
        assert closed_lines() == before
        set_level(operator, "kustos.gateway", "INFO")
        with RawClient(cluster.bootstrap, "strange") as client:
            client.send(b"no request")
            assert client.is_closed()
        wait_until(lambda: closed_lines() > before, what="it is in the log")


def test_a_log_level_is_answered_once_no_worker_has_the_old_one(cluster: WorkerCluster) -> None:
    stopped = worker_pids(cluster.kustos)[0]
    with cluster.administrator() as operator:
        freeze(stopped)
        operator.socket.settimeout(PATIENCE_S)
        set_level(operator, "kustos.gateway", "DEBUG")
        assert not is_alive(stopped)
        wait_ready(cluster.kustos)
        set_level(operator, "kustos.gateway", "INFO")


def scram_users(client: RawClient) -> set[str]:
    answer = client.ask(DESCRIBE_SCRAM, 0, users=None)
    return {str(each.user) for each in answer.results}


def test_users_are_the_same_in_every_worker_once_they_are_acknowledged(
    cluster: WorkerCluster, opened: Opened
) -> None:
    admins = opened("admin", 10)
    for number, admin in enumerate(admins):
        made = ScramCredentialUpsertion(
            name=f"user-{number}",
            mechanism=i8(1),
            iterations=i32(4096),
            salt=b"salt",
            salted_password=b"x" * 32,
        )
        answer = admin.ask(ALTER_SCRAM, 0, deletions=(), upsertions=(made,))
        assert [int(each.error_code) for each in answer.results] == [0]
        assert all(f"user-{number}" in scram_users(each) for each in admins)


def test_a_change_waits_until_a_stopped_worker_is_gone(cluster: WorkerCluster, opened: Opened) -> None:
    admins, clients = opened("admin", 8), opened("alice", 12)
    node = cluster.kustos
    fenced = figure(node, "kustos_workers_fenced_total")
    stopped, other = worker_pids(node)
    lost, kept = held_by(stopped, node, clients), held_by(other, node, clients)
    admin = held_by(other, node, admins)[0]
    begun_s = time.monotonic()
    freeze(stopped)
    assert deny(admin) == 0
    # it was killed before the answer: nobody can be served by it any more, whatever was sent to it
    assert not is_alive(stopped)
    assert time.monotonic() - begun_s >= APPLY_TIMEOUT_MS / 1000 / 2
    assert is_denied(kept) == [True] * len(kept)
    assert all(client.is_closed() for client in lost)
    wait_ready(node)
    assert stopped not in worker_pids(node)
    assert len(worker_pids(node)) == WORKERS
    assert figure(node, "kustos_workers_fenced_total") == fenced + 1
    assert is_denied(opened("alice", 12)) == [True] * 12
    assert undo(admin) == 0
    assert is_denied(kept) == [False] * len(kept)


def test_a_worker_that_hangs_is_found_without_a_change(cluster: WorkerCluster) -> None:
    ended = figure(cluster.kustos, ENDED)
    stopped = worker_pids(cluster.kustos)[0]
    freeze(stopped)
    wait_until(lambda: not is_alive(stopped), what="the stopped worker is killed")
    wait_replaced(cluster.kustos, ended + 1)
    assert len(worker_pids(cluster.kustos)) == WORKERS


def test_of_workers_that_all_hang_one_is_left_until_another_one_serves(
    cluster: WorkerCluster, opened: Opened
) -> None:
    node = cluster.kustos
    fenced = figure(node, "kustos_workers_fenced_total")
    hung = worker_pids(node)
    with cluster.administrator() as operator:
        operator.socket.settimeout(2 * PATIENCE_S)
        told = len(whole_lines(log_of(node)))
        for pid in hung:
            freeze(pid)
        operator.send(operator.request(CREATE_ACLS, 3, creations=(creation_of("User:alice"),)))
        # the answer comes when no one is left that decides by the ACLs of before
        [result] = read_response(operator.receive(), CREATE_ACLS, 3)[1].results
        assert (code(result), list(map(is_alive, hung))) == (0, [False] * WORKERS)
        wait_ready(node)
        # the log has the order, of which a look at the processes may miss a part
        lives = ["a worker is fenced", "a worker ended", "listening"]
        events = [json.loads(line)["event"] for line in whole_lines(log_of(node))[told:]]
        assert [event for event in events if event in lives] == lives * WORKERS
        assert figure(node, "kustos_workers_fenced_total") == fenced + WORKERS
        assert is_denied(opened("alice", 12)) == [True] * 12
        assert undo(operator) == 0


def test_forty_thousand_acls_at_once_cost_no_worker(cluster: WorkerCluster, opened: Opened) -> None:
    node = cluster.kustos
    ended = figure(node, ENDED)
    admins = opened("admin", 8)[:4]
    for number, admin in enumerate(admins):
        admin.socket.settimeout(2 * PATIENCE_S)
        many = tuple(creation_of(f"User:many-{number}-{index}") for index in range(ACLS_AT_ONCE))
        admin.send(admin.request(CREATE_ACLS, 3, creations=many))
    for admin in admins:
        answer = read_response(admin.receive(), CREATE_ACLS, 3)[1]
        assert {code(each) for each in answer.results} == {0}
    assert figure(node, ENDED) == ended
    # the filters of one deletion are many, too
    for number, admin in enumerate(admins):
        mine = [f"User:many-{number}-{index}" for index in range(ACLS_AT_ONCE)]
        filters = tuple(filter_of(principal) for principal in mine)
        answer = admin.ask(DELETE_ACLS, 3, filters=filters)
        assert [len(each.matching_acls) for each in answer.filter_results] == [1] * ACLS_AT_ONCE
    assert figure(node, ENDED) == ended


def test_the_others_serve_on_when_a_worker_is_killed(cluster: WorkerCluster, opened: Opened) -> None:
    admins, clients = opened("admin", 8), opened("alice", 12)
    node = cluster.kustos
    killed, other = worker_pids(node)
    lost, kept = held_by(killed, node, clients), held_by(other, node, clients)
    admin = held_by(other, node, admins)[0]
    logins = figure(node, "kafka_server_socket_server_metrics_successful_authentication_total")
    os.kill(killed, signal.SIGKILL)
    assert deny(admin) == 0
    assert is_denied(kept) == [True] * len(kept)
    assert all(client.is_closed() for client in lost)
    wait_ready(node)
    assert killed not in worker_pids(node)
    with ExitStack() as stack:
        # each logs in once, whichever worker it comes to
        later = [stack.enter_context(log_in(cluster, "alice")) for _ in range(12)]
        assert is_denied(later) == [True] * 12
        # what the killed one had counted is counted still
        found = figure(node, "kafka_server_socket_server_metrics_successful_authentication_total")
        assert found == logins + 12
    assert undo(admin) == 0


def test_no_worker_outlives_the_writer(cluster: WorkerCluster, opened: Opened) -> None:
    node = cluster.kustos
    admins, clients = opened("admin", 8), opened("alice", 12)
    assert deny(admins[0]) == 0
    workers = worker_pids(node)
    node.kill()
    assert all(client.is_closed() for client in (*admins, *clients))
    wait_until(lambda: not any(map(is_alive, workers)), what="the workers end with their writer")
    node.start()
    assert is_denied(opened("alice", 12)) == [True] * 12
    assert undo(opened("admin", 8)[0]) == 0


def test_a_node_ends_in_good_order_and_has_written_down_what_all_workers_decided(
    cluster: WorkerCluster, opened: Opened
) -> None:
    node = cluster.kustos
    begun_ms = time.time_ns() // 1_000_000
    clients = opened("alice", 16)
    assert is_denied(clients) == [False] * len(clients)
    workers = worker_pids(node)
    try:
        assert node.stop() == 0
        assert not any(map(is_alive, workers))
        directories = sorted(each for each in node.audit_directory.iterdir() if each.is_dir())
        assert [each.name for each in directories] == [f"worker-{number + 1}" for number in range(WORKERS)]
        seen = 0
        for directory in directories:
            text = "".join(path.read_text() for path in directory.glob("audit-*.jsonl"))
            # an event from before a kill may be there twice
            events = [each for each in map(json.loads, text.splitlines()) if each["time_ms"] >= begun_ms]
            of_alice = [each for each in events if each["principal_name"] == "alice"]
            assert of_alice, directory
            assert len({each["event_id"] for each in events}) == len(events)
            seen += len(of_alice)
        assert seen >= len(clients)
    finally:
        # the tests behind it need the node, whatever this one finds
        node.start()


def test_the_limit_of_connections_is_that_of_the_node(cluster: WorkerCluster, opened: Opened) -> None:
    clients = opened("alice", PER_ADDRESS)
    # a worker's word for its last client comes before its figures; of two workers', either may come first
    wait_connections(cluster.kustos, PER_ADDRESS)
    with RawClient(cluster.bootstrap, "one-too-many") as one_too_many:
        assert one_too_many.is_closed()
    assert is_denied(clients) == [False] * PER_ADDRESS
    clients[0].socket.close()
    wait_until(lambda: has_room(cluster), what="the place of a closed connection is free")
    assert figure(cluster.kustos, CONNECTION_COUNT) >= PER_ADDRESS - 1


def test_a_reloaded_limit_of_connections_is_that_of_the_node(cluster: WorkerCluster, opened: Opened) -> None:
    clients = opened("alice", PER_ADDRESS // 2)
    try:
        set_in_file(cluster.kustos, "max.connections.per.ip", str(PER_ADDRESS // 2))
        wait_until(lambda: not has_room(cluster), what="a lower limit is in force")
        assert is_denied(clients) == [False] * len(clients), "who was there stays"
    finally:
        set_in_file(cluster.kustos, "max.connections.per.ip", str(PER_ADDRESS))
    wait_until(lambda: has_room(cluster), what="there is room again")


def test_reloaded_settings_reach_every_worker_and_those_that_come_later(
    cluster: WorkerCluster, opened: Opened
) -> None:
    admin, clients = opened("admin", 8)[0], opened("dave", 12)
    assert is_denied(clients) == [True] * 12
    set_in_file(cluster.kustos, "super.users", "User:admin;User:dave")
    wait_until(lambda: not any(is_denied(clients)), what="a new super user is one")
    ended = figure(cluster.kustos, ENDED)
    for pid in worker_pids(cluster.kustos):
        os.kill(pid, signal.SIGKILL)
    admin.socket.close()
    wait_replaced(cluster.kustos, ended + WORKERS)
    later = opened("dave", 12)
    assert is_denied(later) == [False] * 12
    set_in_file(cluster.kustos, "super.users", "User:admin")
    wait_until(lambda: all(is_denied(later)), what="he is none any more")


def test_nobody_but_a_worker_is_let_in_where_they_meet(cluster: WorkerCluster) -> None:
    directory = cluster.kustos.metadata_directory / "__cluster_metadata-0" / "workers"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as stranger, socket_path(directory) as path:
        stranger.settimeout(PATIENCE_S)
        stranger.connect(path)
        assert stranger.recv(1) == b""
    assert cluster.kustos.is_ready()


def test_a_change_that_one_worker_asked_for_is_answered_though_that_worker_is_busy(
    cluster: WorkerCluster, opened: Opened
) -> None:
    admins = opened("admin", 10)
    frames = [
        (admin, [creation(admin, f"storm-{number}-{index}") for index in range(20)])
        for number, admin in enumerate(admins)
    ]
    for admin, asked in frames:
        for frame in asked:
            admin.send(frame)
    for admin, asked in frames:
        for _ in asked:
            answer = read_response(admin.receive(), CREATE_ACLS, 3)[1]
            assert [code(each) for each in answer.results] == [0]


def creation(client: RawClient, principal: str) -> bytes:
    return client.request(CREATE_ACLS, 3, creations=(creation_of(f"User:{principal}"),))
