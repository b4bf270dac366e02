"""Expired delegation tokens are removed periodically, and logins use the current tokens."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.acl import KafkaPrincipal
from kustos.auth import ScramHash
from kustos.gateway.apis.tokens import TokenSweeper
from kustos.gateway.store.writer import MetadataWriter, WriterBusyError
from kustos.metadata.control import TokenCreation, TokenRules
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.directory.format import format_directory
from kustos.metadata.image import DelegationTokenRemoved, MetadataDelta, MetadataImage, image_of
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.metadata.store.store import MetadataStore
from kustos.server.sasl import token_lookup
from testkit.clocks import ManualClock

ALICE = KafkaPrincipal("User", "alice")
SECRET = TokenSecret(b"s3cret")
WAIT_S = 60


class Removals:
    """Signals when the given number of tokens is removed."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.loop = asyncio.get_running_loop()
        self.done = asyncio.Event()

    def publish_snapshot(self, image: MetadataImage) -> None:
        pass

    def publish_delta(self, delta: MetadataDelta) -> None:
        self.left -= sum(isinstance(change, DelegationTokenRemoved) for change in delta.changes)
        if self.left == 0:
            self.loop.call_soon_threadsafe(self.done.set)


async def test_expired_tokens_are_removed_in_batches_and_periodically(tmp_path: Path) -> None:
    format_directory(tmp_path / "log")
    clock = ManualClock(1000)
    rules = TokenRules(SECRET, 1000, 100)
    store = MetadataStore.open(tmp_path / "log", clock=clock, token_rules=rules)
    writer = MetadataWriter(store)
    store.append_many([TokenCreation(ALICE, ALICE)] * 1500)
    removals = Removals(1500)
    store.add_publisher(removals)
    sweeper = TokenSweeper(writer, 1)
    await sweeper.sweep()
    assert len(store.image.delegation_tokens) == 1500
    sweeper.start()
    clock.now_ms += 101
    await asyncio.wait_for(removals.done.wait(), WAIT_S)
    await sweeper.stop()
    assert len(store.image.delegation_tokens) == 0
    await writer.close()
    await sweeper.stop()


async def test_a_failed_removal_is_logged_and_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    format_directory(tmp_path / "log")
    writer = MetadataWriter(MetadataStore.open(tmp_path / "log"))
    again = asyncio.Event()
    asked = 0

    async def busy(request: object) -> tuple[bool]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise WriterBusyError("too many changes of the metadata wait")
        again.set()
        return (False,)

    monkeypatch.setattr(writer, "submit", busy)
    sweeper = TokenSweeper(writer, 1)
    with capture_logs() as logs:
        sweeper.start()
        await asyncio.wait_for(again.wait(), WAIT_S)
        await sweeper.stop()
    assert [log["reason"] for log in logs] == ["too many changes of the metadata wait"]
    await writer.close()


async def test_a_sweeper_ends_with_its_writer(tmp_path: Path) -> None:
    format_directory(tmp_path / "log")
    writer = MetadataWriter(MetadataStore.open(tmp_path / "log"))
    sweeper = TokenSweeper(writer, 1)
    sweeper.start()
    await writer.close()
    task = sweeper._task
    assert task is not None
    with capture_logs() as logs:
        await asyncio.wait_for(task, WAIT_S)
    assert logs == []


def test_unknown_token_ids_evict_no_cached_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kustos.metadata.control.token_secrets.CREDENTIALS_KEPT_MAX", 2)
    image = image_of([DelegationTokenRecord("User:a", "User:a", (), 1, 30, 20, "t")])
    lookup = token_lookup(SECRET, lambda: image)
    assert lookup is not None
    made = lookup("t", ScramHash.SHA_256).compute()
    for number in range(5):
        unknown = lookup(f"made up {number}", ScramHash.SHA_256)
        computed = unknown.compute()
        assert lookup(f"made up {number}", ScramHash.SHA_256).known == unknown.known != computed
    assert lookup("t", ScramHash.SHA_256).known is made


@pytest.mark.behaviour("B222")
def test_logins_use_the_current_tokens() -> None:
    token = DelegationTokenRecord("Group:a:b", "User:c", (), 1, 30, 20, "t")
    image = image_of([token])
    lookup = token_lookup(SECRET, lambda: image)
    assert lookup is not None
    assert lookup("u", ScramHash.SHA_256).find() is None
    for each in ScramHash:
        login = lookup("t", each)
        assert login.find() == ("a:b", 20)
        made = scram_credential(ScramMechanism(each.code), SECRET.password("t"), login.known.salt, 4096)
        assert login.known != made
        assert login.compute() == made
        assert lookup("t", each).known == made
    image = image_of([DelegationTokenRecord("User:a", "User:c", (), 1, 10, 20, "t")])
    assert login.find() == ("a", 10), "this includes a started one"
    image = image_of([])
    assert login.find() is None
    assert token_lookup(None, lambda: image) is None
