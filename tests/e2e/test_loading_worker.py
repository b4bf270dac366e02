"""A worker that loads while ACLs are removed serves no client by the removed ACLs."""

import os
import signal
from collections.abc import Iterator
from threading import Event

import pytest
from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from kio.static.primitive import i8

from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import (
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE,
    TOPIC,
    WorkerCluster,
    held_by,
    is_alive,
    is_connected_to,
    is_denied,
    log_in,
    wait_ready,
    worker_pids,
)
from testkit.processes import freeze, thaw
from testkit.tap.frames import code
from testkit.waiting import PATIENCE_S, wait_until

ACLS = 10_000
"""As many as one request may remove: a worker takes some tenths of a second to load or to remove them."""

PREFIXED, ALLOW = 4, 3
PREFIX = "orders-"
APPLY_TIMEOUT_MS = 10_000
ROUNDS = 3
"""Where the order is not kept, nearly every round finds a request that is allowed."""

LOOK_EVERY_S = 0.002
"""Short beside the time that a worker takes to load the ACLs."""

REQUESTS = 30
"""Connections of the worker that loaded which are asked in each round."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerCluster]:
    limits = {"kustos.workers.apply.timeout.ms": str(APPLY_TIMEOUT_MS)}
    with WorkerCluster(tmp_path_factory.mktemp("cluster"), **limits) as scene:
        yield scene


def grant(operator: RawClient) -> None:
    """Let dave describe the topic, and add many ACLs of other users to the same pattern."""
    names = ["dave", *(f"other-{number}" for number in range(ACLS - 1))]
    creations = tuple(
        AclCreation(
            resource_type=i8(TOPIC),
            resource_name=PREFIX,
            resource_pattern_type=i8(PREFIXED),
            principal=f"User:{name}",
            host="*",
            operation=i8(DESCRIBE),
            permission_type=i8(ALLOW),
        )
        for name in names
    )
    answer = operator.ask(CREATE_ACLS, 3, creations=creations)
    assert {code(each) for each in answer.results} == {0}


def revoke(operator: RawClient) -> int:
    """Remove these ACLs again; return how many were removed."""
    of_pattern = DeleteAclsFilter(
        resource_type_filter=i8(TOPIC),
        resource_name_filter=PREFIX,
        pattern_type_filter=i8(PREFIXED),
        principal_filter=None,
        host_filter=None,
        operation=i8(DESCRIBE),
        permission_type=i8(ALLOW),
    )
    [result] = operator.ask(DELETE_ACLS, 3, filters=(of_pattern,)).filter_results
    return len(result.matching_acls)


def replaced(cluster: WorkerCluster) -> int:
    """Kill a worker; return its successor once that loads the ACLs."""
    before = worker_pids(cluster.kustos)
    os.kill(before[0], signal.SIGKILL)
    [successor] = wait_until(
        lambda: set(worker_pids(cluster.kustos)) - set(before), what="another worker starts"
    )
    # it looks for upstream while another thread of it prepares the ACLs
    upstream = int(cluster.kustos.upstream.rpartition(":")[2])
    wait_until(
        lambda: is_connected_to(successor, upstream),
        not_yet=FileNotFoundError,
        what="it looks for upstream",
        pause=lambda _: Event().wait(LOOK_EVERY_S),
    )
    return successor


def test_a_worker_that_loads_serves_nobody_by_removed_acls(cluster: WorkerCluster) -> None:
    node = cluster.kustos
    with cluster.administrator() as operator:
        operator.socket.settimeout(2 * PATIENCE_S)
        for _ in range(ROUNDS):
            grant(operator)
            loading = replaced(cluster)
            freeze(loading)
            assert revoke(operator) == ACLS
            if not is_alive(loading):
                # it was stopped too late and had its ACLs: the answer waited for its end
                wait_ready(node)
                continue
            thaw(loading)
            asked = 0
            while asked < REQUESTS and is_alive(loading):
                with log_in(cluster, "dave") as client:
                    assert is_denied([client]) == [True]
                    asked += len(held_by(loading, node, [client]))
            wait_ready(node)
