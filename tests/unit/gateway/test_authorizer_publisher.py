"""Large ACL changes in preparation: which ACLs decide meanwhile, what waits, and failures."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerNotReadyError, StandardAuthorizer, StandardAuthorizerPlugin
from kustos.authorizer.replacement import dismantle, prepared, put_in_force
from kustos.gateway.store import publisher as authorizer_publisher
from kustos.gateway.store.publisher import AuthorizerPublisher
from kustos.metadata.image import AclAdded, AclRemoved, MetadataDelta, MetadataImage, free
from kustos.metadata.image.maps import BUCKETS, FrozenMap
from testkit.protocol.random_requests import allow
from testkit.waiting import wait_until

ALICE = KafkaPrincipal("User", "alice")
READ, TOPIC = AclOperation.READ, ResourceType.TOPIC


class Gate:
    """Blocks the preparing thread at its end until the gate is opened."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def prepared(self, *args: Any) -> StandardAuthorizer:
        fresh = prepared(*args)
        self.entered.set()
        assert self.open.wait(30)
        return fresh


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(authorizer_publisher, "LOADED_AT_ONCE_MAX", 0)
    monkeypatch.setattr(authorizer_publisher, "prepared", gate.prepared)
    yield gate
    gate.open.set()


def image(*names: str, offset: int = 7) -> MetadataImage:
    acls = {UUID(int=number): allow(TOPIC, name, READ) for number, name in enumerate(names)}
    return MetadataImage(offset=offset, acls=acls)


def published() -> tuple[StandardAuthorizer, AuthorizerPublisher]:
    loop = asyncio.get_running_loop()
    plugin = StandardAuthorizerPlugin(loop.create_future)
    plugin.configure({"super.users": "User:root"})
    return plugin.standard, AuthorizerPublisher(plugin, loop)


def added(number: int, name: str) -> MetadataDelta:
    return MetadataDelta(number, 1, (AclAdded(UUID(int=number), allow(TOPIC, name, READ)),))


async def settled(publisher: AuthorizerPublisher) -> None:
    await asyncio.to_thread(wait_until, lambda: publisher.is_idle, what="the ACLs")


def may_read(authorizer: StandardAuthorizer, name: str) -> bool:
    return authorizer.session(ALICE, "10.0.0.1").decide(READ, TOPIC, name).allowed


async def test_only_super_users_get_decisions_before_the_first_acls_are_loaded(gate: Gate) -> None:
    authorizer, publisher = published()
    publisher.publish_snapshot(image("old"))
    await asyncio.to_thread(gate.entered.wait, 30)
    assert not publisher.is_idle
    with pytest.raises(AuthorizerNotReadyError):
        may_read(authorizer, "old")
    assert authorizer.session(KafkaPrincipal("User", "root"), "10.0.0.1").decide(READ, TOPIC, "x").allowed
    gate.open.set()
    await settled(publisher)
    assert may_read(authorizer, "old")
    assert publisher.offset == 7


async def test_the_old_acls_decide_until_the_new_ones_take_effect_atomically(gate: Gate) -> None:
    authorizer, publisher = published()
    gate.open.set()
    publisher.publish_snapshot(image("old", "both"))
    await settled(publisher)
    gate.open.clear()
    gate.entered.clear()
    session = authorizer.session(ALICE, "10.0.0.1")
    publisher.publish_snapshot(image("new", "both", offset=9))
    await asyncio.to_thread(gate.entered.wait, 30)
    names = ("old", "both", "new")
    assert [session.decide(READ, TOPIC, name).allowed for name in names] == [True, True, False]
    assert publisher.offset == 7
    gate.open.set()
    await settled(publisher)
    assert [session.decide(READ, TOPIC, name).allowed for name in names] == [False, True, True]
    assert (publisher.offset, authorizer.acl_count) == (9, 2)


async def test_changes_during_preparation_wait_and_so_do_their_clients(gate: Gate) -> None:
    authorizer, publisher = published()
    publisher.publish_snapshot(image("old"))
    removal = MetadataDelta(9, 1, (AclRemoved(UUID(int=0), allow(TOPIC, "old", READ)),))

    def write() -> None:
        publisher.publish_delta(added(8, "more"))
        publisher.publish_delta(removal)

    writer = asyncio.ensure_future(asyncio.to_thread(write))
    await asyncio.to_thread(gate.entered.wait, 30)
    assert not writer.done()
    assert authorizer.acl_count == 0
    gate.open.set()
    await writer
    # what follows an acknowledged change on the loop finds it in force
    assert may_read(authorizer, "more")
    assert not may_read(authorizer, "old")
    assert publisher.offset == 9
    await settled(publisher)


async def test_a_large_change_takes_effect_before_the_next_one_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authorizer_publisher, "LARGE_ITEMS_MIN", 2)
    authorizer, publisher = published()
    publisher.publish_snapshot(image("old"))
    seen: list[tuple[int, int]] = []

    def write() -> None:
        for offset in (8, 10):
            changes = tuple(
                AclAdded(UUID(int=number), allow(TOPIC, f"new-{number}", READ))
                for number in (offset, offset + 1)
            )
            publisher.publish_delta(MetadataDelta(offset, 1, changes))
            seen.append((publisher.offset, authorizer.acl_count))

    await asyncio.to_thread(write)
    assert seen == [(8, 3), (10, 5)]


async def test_newer_acls_replace_those_in_preparation(gate: Gate) -> None:
    authorizer, publisher = published()
    publisher.publish_snapshot(image("first"))
    await asyncio.to_thread(gate.entered.wait, 30)
    publisher.publish_snapshot(image("second", offset=8))
    gate.open.set()
    await settled(publisher)
    assert not may_read(authorizer, "first")
    assert may_read(authorizer, "second")
    assert publisher.offset == 8


async def test_a_change_contained_in_newer_acls_is_not_applied_again(gate: Gate) -> None:
    authorizer, publisher = published()
    gate.open.set()
    publisher.publish_delta(added(3, "new"))
    publisher.publish_snapshot(MetadataImage(offset=3, acls={UUID(int=3): allow(TOPIC, "new", READ)}))
    await settled(publisher)
    assert may_read(authorizer, "new")
    assert authorizer.acl_count == 1


async def test_a_default_that_changes_during_preparation_takes_effect(gate: Gate) -> None:
    authorizer, publisher = published()
    publisher.publish_snapshot(image("named"))
    await asyncio.to_thread(gate.entered.wait, 30)
    authorizer.reconfigure(super_users=frozenset(), allow_everyone_if_no_acl_found=True)
    gate.open.set()
    await settled(publisher)
    bob = authorizer.session(KafkaPrincipal("User", "bob"), "10.0.0.1")
    assert bob.decide(READ, TOPIC, "else").allowed
    assert not bob.decide(READ, TOPIC, "named").allowed


async def test_acls_that_cannot_be_loaded_deny_everything(gate: Gate) -> None:
    authorizer, publisher = published()
    gate.open.set()
    publisher.publish_snapshot(image("old"))
    await settled(publisher)
    unfit: Any = {1: "no ACL"}
    publisher.publish_snapshot(MetadataImage(offset=9, acls=unfit))
    await settled(publisher)
    with pytest.raises(AuthorizerNotReadyError):
        may_read(authorizer, "old")


async def test_the_garbage_collector_is_restored(gate: Gate) -> None:
    _, publisher = published()
    assert gc.isenabled()
    publisher.publish_snapshot(image("a"))
    await asyncio.to_thread(gate.entered.wait, 30)
    assert not gc.isenabled()
    gate.open.set()
    await settled(publisher)
    assert gc.isenabled()


async def test_an_authorizer_closed_during_preparation_denies_for_good(gate: Gate) -> None:
    authorizer, publisher = published()
    gate.open.set()
    publisher.publish_snapshot(image("old"))
    await settled(publisher)
    gate.open.clear()
    gate.entered.clear()
    publisher.publish_snapshot(image("new", offset=9))
    await asyncio.to_thread(gate.entered.wait, 30)
    publisher.close()
    gate.open.set()
    await asyncio.to_thread(wait_until, lambda: not publisher._tasks, what="the end of the preparation")
    # another thread may have been about to publish
    publisher.publish_snapshot(image("newer", offset=10))
    publisher.publish_delta(added(11, "more"))
    await asyncio.to_thread(wait_until, lambda: not publisher._tasks, what="the end of the preparation")
    for name in ("old", "new", "newer", "more"):
        with pytest.raises(AuthorizerNotReadyError):
            may_read(authorizer, name)


async def test_closing_interrupts_the_preparation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer_publisher, "LOADED_AT_ONCE_MAX", 0)
    taken, go_on = threading.Event(), threading.Event()
    seen: list[UUID] = []

    class Slow(dict[UUID, Any]):
        def items(self) -> Any:
            for item in super().items():
                seen.append(item[0])
                yield item
                taken.set()
                assert go_on.wait(30)

    _, publisher = published()
    publisher.publish_snapshot(MetadataImage(offset=7, acls=Slow(image("a", "b", "c").acls)))
    assert await asyncio.to_thread(taken.wait, 30)
    publisher.close()
    go_on.set()
    await asyncio.to_thread(wait_until, lambda: not publisher._tasks, what="the end of the preparation")
    assert len(seen) == 2


async def test_the_offset_stays_before_a_change_that_failed(gate: Gate) -> None:
    authorizer, publisher = published()
    gate.open.set()
    publisher.publish_snapshot(image("old"))
    await settled(publisher)
    twice = AclAdded(UUID(int=8), allow(TOPIC, "twice", READ))
    publisher.publish_delta(MetadataDelta(8, 1, (twice, twice)))
    publisher.publish_delta(added(9, "later"))
    await asyncio.sleep(0)
    assert publisher.offset == 7
    publisher.publish_snapshot(image("whole", offset=10))
    await settled(publisher)
    assert may_read(authorizer, "whole")
    assert publisher.offset == 10


async def test_the_event_loop_frees_no_acls(gate: Gate) -> None:
    """Freeing a million of them takes seconds in which no other thread runs."""
    freed: list[int] = []

    class Id(UUID):
        def __del__(self) -> None:
            freed.append(threading.get_ident())

    _, publisher = published()
    gate.open.set()
    entries = ((Id(int=number), allow(TOPIC, f"topic-{number}", READ)) for number in range(2_000))
    publisher.publish_snapshot(MetadataImage(offset=7, acls=FrozenMap(entries)))
    await settled(publisher)
    assert len(freed) == 2_000
    assert threading.get_ident() not in freed


def test_a_map_is_freed_piece_by_piece() -> None:
    freed: list[int] = []

    class Value:
        def __del__(self) -> None:
            freed.append(len(pieces))

    kept = FrozenMap((number, Value()) for number in range(BUCKETS * 2))
    pieces = kept.pieces()
    free(pieces[:])
    assert freed == []
    del kept
    free(pieces)
    # some of the values with each piece
    assert sorted(Counter(freed)) == list(range(BUCKETS))


def test_dismantling_the_old_index_leaves_the_new_one_intact() -> None:
    authorizer = StandardAuthorizer()
    authorizer.load_snapshot((UUID(int=n), allow(TOPIC, f"old-{n}", READ)) for n in range(100))
    authorizer.complete_initial_load()
    fresh = prepared(authorizer, ((UUID(int=n), allow(TOPIC, f"new-{n}", READ)) for n in range(100)))
    assert may_read(authorizer, "old-7")
    assert put_in_force(authorizer, fresh)
    dismantle(fresh)
    assert fresh.acl_count == 0
    assert authorizer.acl_count == 100
    assert may_read(authorizer, "new-7")
    assert not may_read(authorizer, "old-7")
