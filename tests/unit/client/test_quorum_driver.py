"""The driver of the follower against controllers that freeze, lie, or lost their disks."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.client import ClientError, ClientSettings, ConnectionLimits
from kustos.client.quorum import follower as client_quorum
from kustos.client.quorum.follower import IDLE_TURN_MS, QuorumConnection, QuorumFollower
from kustos.metadata.directory.format import format_directory
from kustos.metadata.errors import ReplayError
from kustos.metadata.quorum import Address, CommittedLostError, FollowedStore
from kustos.metadata.quorum.answers import read_batches
from kustos.metadata.quorum.values import Effect
from kustos.metadata.records import RemoveDelegationTokenRecord, encode_record
from kustos.runtime import FileSystemStorage, SystemClock, SystemEntropy
from kustos.wire import ErrorCode, Message, response_codec
from kustos.wire.record_batch import batch_of
from testkit.ports import free_port
from testkit.quorum import fake_controller as fake
from testkit.quorum.fake_controller import FakeController
from testkit.quorum.model import CLUSTER_ID, Cluster, Node

WAIT_S = 60.0
PATIENT_MS = 60_000
"""For an answer, where a test is not about one that does not come."""


class Following:
    """A driver on its way, and how often it caught up."""

    def __init__(self, directory: Path, *controllers: FakeController, timeout_ms: int) -> None:
        servers = ",".join(str(each.address) for each in controllers)
        client = ClientSettings.from_properties(servers, {})
        limits = ConnectionLimits(connect_timeout_ms=timeout_ms, request_timeout_ms=timeout_ms)
        client = replace(client, limits=limits)
        self.store = FollowedStore.open(directory, FileSystemStorage(), SystemClock())
        self.caught_up: asyncio.Queue[int] = asyncio.Queue()
        self.follower = QuorumFollower(self.store, client, SystemEntropy(), self.caught_up.put_nowait)
        self.task = asyncio.ensure_future(self.follower.run())

    async def once(self) -> int:
        async with asyncio.timeout(WAIT_S):
            return await self.caught_up.get()

    async def ended(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.task

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.follower.close()
        self.store.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_directory(tmp_path / "metadata", cluster_id=CLUSTER_ID)
    return tmp_path / "metadata"


@asynccontextmanager
async def following(
    directory: Path, *controllers: FakeController, timeout_ms: int = PATIENT_MS
) -> AsyncIterator[Following]:
    made = Following(directory, *controllers, timeout_ms=timeout_ms)
    try:
        yield made
    finally:
        await made.close()


def cluster() -> Cluster:
    made = Cluster()
    made.append(made.nodes[0], 2)
    made.copy(made.nodes[1])
    return made


def served(node: Node, controller: FakeController) -> None:
    """Let a controller play this node; refusals name the controller itself, wherever it listens."""

    def fetch(asked: Message) -> Message:
        return moved(node.fetch(asked), controller)

    controller.fetch, controller.fetch_snapshot = fetch, node.fetch_snapshot


def moved(answer: Message, leader: FakeController) -> Message:
    address = leader.address
    endpoints = [each.replace(host=address.host, port=address.port) for each in answer.node_endpoints]
    return answer.replace(node_endpoints=endpoints)


async def test_it_finds_the_leader_and_catches_up(directory: Path) -> None:
    quorum = cluster()
    async with (
        FakeController(quorum.nodes[0].fetch) as leader,
        FakeController(quorum.nodes[1].fetch) as other,
    ):
        served(quorum.nodes[0], leader)
        other.fetch = lambda asked: moved(quorum.nodes[1].fetch(asked), leader)
        with capture_logs() as logs:
            async with following(directory, other) as made:
                await made.once()
                assert made.store.last_offset == quorum.truth[-1].last_offset
                assert made.store.machine.leader == leader.address
        # to be led to the leader is nothing to speak of
        assert [each["event"] for each in logs] == ["caught up with the quorum"]


async def test_bootstrap_servers_are_asked_in_turn(directory: Path) -> None:
    quorum = cluster()
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        for gone in (0, 1):
            servers = [f"127.0.0.1:{free_port()}", str(leader.address)]
            if gone:
                servers.reverse()
            made = QuorumConnection(ClientSettings.from_properties(",".join(servers), {}), SystemEntropy())
            reached: list[Address | None] = []
            for _ in range(4):
                try:
                    reached.append((await made.to(None))[1])
                except ClientError:
                    reached.append(None)
            assert sorted(map(str, reached)) == sorted([str(leader.address), "None"] * 2)
            made.drop()


async def test_a_snapshot_is_fetched_chunk_by_chunk(directory: Path) -> None:
    quorum = Cluster()
    quorum.append(quorum.nodes[0], 20)
    quorum.copy(quorum.nodes[1])
    quorum.trim(quorum.nodes[0])
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        async with following(directory, leader) as made:
            # what the model calls a snapshot is none
            with pytest.raises(Exception, match="is damaged"):
                await made.ended()
            assert leader.asked.count(59) > 1


async def test_a_frozen_leader_is_left(directory: Path) -> None:
    quorum = cluster()
    follower = quorum.nodes[1]
    async with FakeController(lambda _: None) as frozen, FakeController(follower.fetch) as other:

        def fetch(asked: Message) -> Message:
            if frozen.asked:
                return quorum.nodes[0].fetch(asked)
            return moved(follower.fetch(asked), frozen)

        other.fetch = fetch
        with capture_logs() as logs:
            async with following(directory, other, timeout_ms=1_000) as made:
                await made.once()
                assert made.store.machine.leader == other.address
        assert any("did not answer `Fetch` within 1000 ms" in each.get("reason", "") for each in logs)
        assert frozen.asked == [1]


async def test_a_leader_that_holds_nothing_back_is_not_asked_all_the_time(directory: Path) -> None:
    quorum = cluster()
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        async with following(directory, leader) as made:
            times = [await made.once() for _ in range(6)]
    assert times[-1] - times[1] >= 4 * IDLE_TURN_MS / 1000


async def test_an_answer_of_a_wrong_form_costs_the_connection_only(directory: Path) -> None:
    quorum = cluster()
    strange = iter([response_codec(1, 18).new(), response_codec(1, 18).new(responses=[])])
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        honest = leader.fetch
        leader.fetch = lambda asked: next(strange, None) or honest(asked)
        async with following(directory, leader) as made:
            await made.once()
            assert made.store.has_caught_up


async def test_who_is_refused_says_so_and_goes_on(directory: Path) -> None:
    quorum = cluster()
    refused = response_codec(1, 18).new(error_code=ErrorCode.cluster_authorization_failed.value)
    answers = iter([refused, refused, refused])
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        honest = leader.fetch
        leader.fetch = lambda asked: next(answers, None) or honest(asked)
        with capture_logs() as logs:
            async with following(directory, leader) as made:
                await made.once()
                address = str(leader.address)
    events = [(each["event"], each.get("reason")) for each in logs]
    told = "a controller answered CLUSTER_AUTHORIZATION_FAILED"
    assert events.count(("the quorum is not followed for now", told)) == 1
    (again,) = (each for each in logs if each["event"] == "following the quorum again")
    assert (again["leader"], again["epoch"]) == (address, quorum.nodes[0].epoch)


async def test_controllers_that_are_too_old_are_told_of(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fake.OFFERED, 1, (0, 16))
    with capture_logs() as logs:
        async with FakeController(lambda _: None) as old, following(directory, old) as made:
            async with asyncio.timeout(WAIT_S):
                while not logs:
                    await asyncio.wait((made.task,), timeout=0.05)
    assert "no common version of the API `Fetch`" in logs[0]["reason"]


async def test_a_quorum_that_lost_its_log_ends_it(directory: Path) -> None:
    quorum = cluster()
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        async with following(directory, leader) as made:
            await made.once()
            emptied = Cluster()
            emptied.nodes[0].epoch = emptied.nodes[0].log[0].partition_leader_epoch
            served(emptied.nodes[0], leader)
            with pytest.raises(CommittedLostError):
                await made.ended()


async def test_what_an_earlier_run_left_of_a_lost_log_is_forgotten(directory: Path) -> None:
    quorum = cluster()
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        async with following(directory, leader) as made:
            await made.once()
            made.store._copy.replace_by(made.store.image, 0)
        emptied = Cluster()
        emptied.copy(emptied.nodes[1])
        served(emptied.nodes[0], leader)
        with capture_logs() as logs:
            async with following(directory, leader) as made:
                await made.once()
                assert made.store.last_offset == 0
        assert "what an earlier run left is discarded and fetched again" in [each["event"] for each in logs]


async def test_records_that_cannot_be_applied_end_it(directory: Path) -> None:
    quorum = Cluster()
    leading = quorum.nodes[0]
    value = encode_record(RemoveDelegationTokenRecord("none"))
    leading.log.append(batch_of(leading.end, leading.epoch, 0, [value]))
    quorum.copy(quorum.nodes[1])
    async with FakeController(leading.fetch) as leader:
        served(leading, leader)
        async with following(directory, leader) as made:
            with pytest.raises(ReplayError):
                await made.ended()


async def test_while_records_come_nobody_waits(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = Cluster()
    for _ in range(5):
        quorum.append(quorum.nodes[0], 1)
    quorum.copy(quorum.nodes[1])
    leading = quorum.nodes[0]

    def one_batch_at_a_time(asked: Message) -> Message:
        answer = leading.fetch(asked)
        partition = answer.responses[0].partitions[0]
        whole = read_batches(partition.records or b"")
        if len(whole) > 1:
            partition.records = whole[0].data
        return answer

    async with FakeController(one_batch_at_a_time) as leader:
        async with following(directory, leader) as made:
            # longer than the test may take: what waits once for an idle leader does not get there
            made.store.machine.epoch = leading.epoch
            monkeypatch.setattr(client_quorum, "IDLE_TURN_MS", 10_000_000)
            await made.once()
            assert made.store.last_offset == quorum.truth[-1].last_offset
        assert len(leader.asked) >= len(quorum.truth)


async def test_all_that_was_found_is_done_on_one_thread_off_the_loop(directory: Path) -> None:
    quorum = cluster()
    threads: list[str] = []
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        async with following(directory, leader) as made:
            perform = made.store.perform

            def watched(effects: tuple[Effect, ...]) -> None:
                threads.append(threading.current_thread().name)
                perform(effects)

            made.store.perform = watched  # type: ignore[method-assign]
            for _ in range(3):
                await made.once()
    assert len(threads) >= 3
    assert set(threads) == {"kustos-quorum-follower_0"}


async def test_who_waits_for_an_offset_waits_until_it_is_applied(directory: Path) -> None:
    quorum = cluster()
    async with FakeController(quorum.nodes[0].fetch) as leader:
        served(quorum.nodes[0], leader)
        async with following(directory, leader) as made:
            await made.once()
            end = quorum.truth[-1].last_offset + 1
            assert made.follower.applied_end == end
            await made.follower.applied(end)
            waiting = asyncio.ensure_future(made.follower.applied(end + 2))
            for _ in range(2):
                await made.once()
            assert not waiting.done()
            quorum.append(quorum.nodes[0], 1)
            quorum.copy(quorum.nodes[1])
            while made.follower.applied_end < end + 1:
                await made.once()
            assert not waiting.done()
            quorum.append(quorum.nodes[0], 1)
            quorum.copy(quorum.nodes[1])
            async with asyncio.timeout(WAIT_S):
                await waiting
            assert made.store.last_offset == end + 1
            left = asyncio.ensure_future(made.follower.applied(end + 100))
            await made.once()
    assert left.cancelled(), "who waits still is let go with the follower"


async def test_before_a_node_has_caught_up_nothing_counts_as_applied(directory: Path) -> None:
    async with FakeController(lambda _: None) as silent, following(directory, silent) as made:
        assert made.follower.applied_end == -1
        waiting = asyncio.ensure_future(made.follower.applied(0))
        await asyncio.wait((waiting,), timeout=0.05)
        assert not waiting.done()
        waiting.cancel()


async def test_a_connection_is_kept_for_as_long_as_its_controller_is_wanted() -> None:
    async with FakeController(lambda _: None) as one, FakeController(lambda _: None) as two:
        settings = ClientSettings.from_properties(str(one.address), {})
        made = QuorumConnection(settings, SystemEntropy())
        first, address = await made.to(one.address)
        assert address == one.address
        assert (await made.to(one.address))[0] is first
        assert (await made.to(None))[0] is first
        second, address = await made.to(two.address)
        assert (address, first.is_open, second.is_open) == (two.address, False, True)
        made.drop()
        assert not second.is_open
        third, _ = await made.to(two.address)
        assert third is not second
        made.drop()
        made.drop()
