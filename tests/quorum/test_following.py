"""Following a real quorum of three controllers, inside this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext
from kustos.client import ClientSettings, ConnectionLimits
from kustos.client.quorum.follower import QuorumConnection, QuorumFollower
from kustos.client.quorum.forwarding import ControllerForwarder, Forwarded, QuorumUnavailableError
from kustos.metadata.directory.format import format_directory
from kustos.metadata.log import METADATA_PARTITION
from kustos.metadata.quorum import FollowedStore, WrongClusterError
from kustos.runtime import FileSystemStorage, SystemClock, SystemEntropy
from kustos.wire import Message, request_codec
from kustos.wire.api_keys import ApiKey
from testkit.quorum.controllers import Quorum
from testkit.waiting import PATIENCE_S

WAIT_S = 60.0
ADMIN = AuthorizableRequestContext(KafkaPrincipal("User", "admin"), "127.0.0.1", correlation_id=77)
NOBODY = replace(ADMIN, principal=KafkaPrincipal("User", "nobody"))


def settings_of(quorum: Quorum, mechanism: str = "PLAIN") -> ClientSettings:
    settings = ClientSettings.from_properties(quorum.bootstrap, quorum.client_properties(mechanism))
    limits = ConnectionLimits(connect_timeout_ms=2_000, request_timeout_ms=2_000)
    return replace(settings, limits=limits)


class Following:
    """A store that is followed, and the way back to its quorum."""

    def __init__(self, directory: Path, settings: ClientSettings, timeout_ms: int = 80_000) -> None:
        entropy = SystemEntropy()
        self.store = FollowedStore.open(directory, FileSystemStorage(), SystemClock())
        self.times: list[float] = []
        self.fresh = asyncio.Event()
        self.follower = QuorumFollower(self.store, settings, entropy, self._caught_up)
        self.forwarder = ControllerForwarder(
            self.store, self.follower, QuorumConnection(settings, entropy), entropy, timeout_ms
        )

    def _caught_up(self, at_s: float) -> None:
        self.times.append(at_s)
        self.fresh.set()


@asynccontextmanager
async def following(directory: Path, settings: ClientSettings) -> AsyncIterator[Following]:
    made = Following(directory, settings)
    task = asyncio.ensure_future(made.follower.run())
    try:
        first = asyncio.ensure_future(made.fresh.wait())
        await asyncio.wait((task, first), timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        if task.done():
            task.result()
        assert made.fresh.is_set(), "the follower did not catch up"
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await made.follower.close()
        made.forwarder.close()
        made.store.close()


@pytest.fixture
def directory(quorum: Quorum, tmp_path: Path) -> Path:
    format_directory(tmp_path / "metadata", cluster_id=quorum.cluster_id)
    return tmp_path / "metadata"


def creation(name: str, context: AuthorizableRequestContext = ADMIN) -> Forwarded:
    codec = request_codec(ApiKey.CREATE_ACLS, 3)
    item = codec.struct("AclCreation")(
        resource_type=2,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:ann",
        host="*",
        operation=3,
        permission_type=2,
    )
    return Forwarded(ApiKey.CREATE_ACLS, 3, codec.new(creations=[item]), context)


def names(store: FollowedStore) -> set[str]:
    return {each.pattern.name for each in store.image.acls.values()}


def codes(answer: Message) -> list[int]:
    return [each.error_code for each in answer.results]


async def test_what_was_answered_is_applied_here_already(quorum: Quorum, directory: Path) -> None:
    async with following(directory, settings_of(quorum)) as node:
        for number in range(20):
            assert codes(await node.forwarder.forward(creation(f"first-{number}"))) == [0]
            assert f"first-{number}" in names(node.store)


async def test_the_controller_decides_for_who_asked(quorum: Quorum, directory: Path) -> None:
    async with following(directory, settings_of(quorum)) as node:
        assert codes(await node.forwarder.forward(creation("denied", NOBODY))) == [31]
        assert "denied" not in names(node.store)


async def test_a_restart_goes_on_from_its_copy(quorum: Quorum, directory: Path) -> None:
    async with following(directory, settings_of(quorum)) as node:
        await node.forwarder.forward(creation("kept"))
        image, end = node.store.image, node.store.machine.applied_end
    kept = FollowedStore.open(directory, FileSystemStorage(), SystemClock())
    assert kept.machine.end_offset >= end
    kept.close()
    async with following(directory, settings_of(quorum)) as node:
        assert node.store.image.same_state(image)


async def test_a_log_that_was_trimmed_is_taken_over_by_its_snapshot(quorum: Quorum, directory: Path) -> None:
    async with following(directory, settings_of(quorum)) as node:
        for number in range(60):
            await node.forwarder.forward(creation(f"many-{number}"))
        image = node.store.image
    begins_at = 0
    async with asyncio.timeout(PATIENCE_S):
        # the leader writes its snapshot beside its answers, and may not have it yet
        while not begins_at:
            for path in (directory / METADATA_PARTITION).iterdir():
                path.unlink()
            async with following(directory, settings_of(quorum)) as node:
                assert node.store.image.same_state(image)
                begins_at = node.store.machine.base.end_offset


async def test_the_copy_has_the_leaders_own_bytes(quorum: Quorum, directory: Path) -> None:
    async with following(directory, settings_of(quorum)) as node:
        await node.forwarder.forward(creation("in-bytes"))
        leader = node.store.machine.leader
    assert leader is not None
    [controller] = [each for each in quorum.controllers if each.controller_port == leader.port]
    kept = sorted((directory / METADATA_PARTITION).glob("*.log"))
    assert len(kept) == 1
    theirs = b"".join(
        path.read_bytes() for path in sorted((controller.log_dir / METADATA_PARTITION).glob("*.log"))
    )
    ours = kept[0].read_bytes()
    assert b"in-bytes" in ours
    assert ours in theirs
    for snapshot in (directory / METADATA_PARTITION).glob("*.checkpoint"):
        original = controller.log_dir / METADATA_PARTITION / snapshot.name
        assert not original.exists() or snapshot.read_bytes() == original.read_bytes()


async def test_scram_logs_in_too(quorum: Quorum, directory: Path) -> None:
    async with following(directory, settings_of(quorum, "SCRAM-SHA-256")) as node:
        assert codes(await node.forwarder.forward(creation("by-scram"))) == [0]


async def test_without_a_leader_a_change_ends_with_its_time(quorum: Quorum, directory: Path) -> None:
    made = Following(directory, settings_of(quorum), timeout_ms=200)
    with pytest.raises(QuorumUnavailableError, match="no leader"):
        await made.forwarder.forward(creation("nowhere"))
    await made.follower.close()
    made.store.close()


async def test_another_cluster_is_not_followed(quorum: Quorum, tmp_path: Path) -> None:
    format_directory(tmp_path / "other")
    with pytest.raises(WrongClusterError):
        async with following(tmp_path / "other", settings_of(quorum)):
            pass


async def test_a_killed_leader_is_left_for_the_next(quorum: Quorum, directory: Path) -> None:
    async with following(directory, settings_of(quorum)) as node:
        leader = node.store.machine.leader
        assert leader is not None
        [victim] = [each for each in quorum.controllers if each.controller_port == leader.port]
        under_way = asyncio.ensure_future(node.forwarder.forward(creation("before")))
        victim.kill()
        assert codes(await under_way) == [0]
        assert codes(await node.forwarder.forward(creation("after"))) == [0]
        assert {"before", "after"} <= names(node.store)
        assert node.store.machine.leader != leader
        victim.launch()
        victim.wait_ready()
