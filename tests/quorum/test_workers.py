"""Workers in cluster mode: the writer process follows the quorum, the workers follow the writer."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kustos.acl import AclPermissionType
from kustos.client import ClientSettings, KafkaConnection, NodeAddress, connect, parse_address
from kustos.client.admin.client import AdminClient, PasswordUpsertion
from kustos.client.errors import ConnectionClosedError
from kustos.metadata.scram import ScramMechanism
from testkit.guarded.workers import is_alive, wait_ready, wait_replaced, worker_pids
from testkit.kustos import KustosNode
from testkit.processes import frozen
from testkit.quorum.controllers import Quorum
from testkit.quorum.nodes import (
    DENIED,
    UNKNOWN_TOPIC,
    allow,
    ann,
    create_acls,
    kraft_node,
    logged_in,
    login,
    readiness,
    topic_error,
)
from testkit.waiting import wait_until
from tests.quorum.conftest import PATIENT, SECRET

WORKERS = 2
CONNECTIONS = 12
"""The kernel spreads them over the workers: that one gets none is as likely as one in two thousand."""

ROUNDS = 20
STALENESS_MS = 4_000
CLOSED = -1000


@pytest.fixture(scope="module")
def node(quorum: Quorum, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KustosNode]:
    more = SECRET | PATIENT
    more |= {
        "kustos.workers": str(WORKERS),
        "kustos.workers.apply.timeout.ms": "10000",
        "kustos.metadata.max.staleness.ms": str(STALENESS_MS),
    }
    with kraft_node(tmp_path_factory.mktemp("workers") / "kustos", quorum, more) as running:
        yield running


async def connected(node: KustosNode, user: str, count: int) -> list[KafkaConnection]:
    return [await logged_in(node, user) for _ in range(count)]


async def errors(clients: list[KafkaConnection], topic: str) -> set[int]:
    return set(await asyncio.gather(*(topic_error(each, topic) for each in clients)))


async def decided(node: KustosNode, topic: str) -> set[int]:
    """Return what ann is told of a topic on many connections; the code of a closed connection is -1000."""

    async def one() -> int:
        try:
            async with await logged_in(node, "ann") as connection:
                return await topic_error(connection, topic)
        except ConnectionClosedError:
            return CLOSED

    return {await one() for _ in range(CONNECTIONS)}


def test_an_answered_change_is_in_force_in_every_worker(node: KustosNode) -> None:
    async def run() -> None:
        clients = await connected(node, "ann", CONNECTIONS)
        admins = await connected(node, "admin", 4)
        for number in range(ROUNDS):
            topic = f"workers-{number}"
            await create_acls(admins[number % 4], allow(topic))
            assert await errors(clients, topic) == {UNKNOWN_TOPIC}
            await create_acls(admins[(number + 1) % 4], ann(topic, AclPermissionType.DENY))
            assert await errors(clients, topic) == {DENIED}
        for each in (*clients, *admins):
            each.close()

    wait_ready(node)
    assert len(worker_pids(node)) == WORKERS
    asyncio.run(run())


def test_a_change_made_elsewhere_reaches_every_worker(node: KustosNode, quorum: Quorum) -> None:
    async def made() -> None:
        assert quorum.broker is not None
        address = parse_address(quorum.broker.bootstrap)
        settings = ClientSettings.from_properties(quorum.broker.bootstrap, {})
        async with await connect(NodeAddress(address.host, address.port), settings) as connection:
            answer = await create_acls(connection, allow("elsewhere"))
            assert [each.error_code for each in answer.results] == [0]

    async def run() -> None:
        async with AdminClient(login(node, "admin")) as client:
            eve = PasswordUpsertion("eve", ScramMechanism.SCRAM_SHA_256, b"eve-secret", 4096)
            assert await client.alter_user_scram_credentials([eve]) == {"eve": None}
            [described] = await client.describe_user_scram_credentials(["eve"])
        assert described.credentials == (("SCRAM-SHA-256", 4096),)

    asyncio.run(made())
    wait_until(
        lambda: asyncio.run(decided(node, "elsewhere")) == {UNKNOWN_TOPIC}, what="every worker has the ACL"
    )
    asyncio.run(run())


def test_a_killed_worker_is_replaced_and_has_the_quorums_acls(node: KustosNode) -> None:
    async def run() -> None:
        async with await logged_in(node, "admin") as admin:
            await create_acls(admin, allow("after-the-kill"))
        clients = await connected(node, "ann", CONNECTIONS)
        assert await errors(clients, "after-the-kill") == {UNKNOWN_TOPIC}
        for each in clients:
            each.close()

    killed = worker_pids(node)[0]
    os.kill(killed, signal.SIGKILL)
    wait_replaced(node, 1)
    assert not is_alive(killed)
    asyncio.run(run())


def test_workers_deny_once_the_quorum_was_away_for_too_long(node: KustosNode, quorum: Quorum) -> None:
    async def grant() -> None:
        async with await logged_in(node, "admin") as admin:
            await create_acls(admin, allow("away"))

    asyncio.run(grant())
    assert asyncio.run(decided(node, "away")) == {UNKNOWN_TOPIC}
    with ExitStack() as stack:
        for each in quorum.controllers:
            assert each.server is not None
            stack.enter_context(frozen(each.server.pid))
        wait_until(lambda: not readiness(node)["parts"]["quorum"], what="the metadata is too old")
        wait_until(
            lambda: not asyncio.run(decided(node, "away")) & {UNKNOWN_TOPIC, 0},
            what="no worker decides by it",
        )
    wait_ready(node)
    wait_until(
        lambda: asyncio.run(decided(node, "away")) == {UNKNOWN_TOPIC}, what="every worker decides again"
    )
