"""Large answers take turns like large requests, even if their requests are small."""

import asyncio
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.gateway.session import client_session, large_turns
from kustos.gateway.session.large_turns import (
    COSTLY_S,
    LARGE_FRAME_BYTES,
    REST_MAX_S,
    REST_PER_WORK,
    LargeTurns,
)
from kustos.gateway.session.life_cycle import SLOT_LIFE
from kustos.gateway.upstream.addresses import AddressRanges
from kustos.protocol.exchange import ITEMS_PER_TURN
from kustos.wire import ItemReader, PartReader
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import Caller, running_gateway
from testkit.gateway.life_rows import RecordedLife
from testkit.gateway.sessions import (
    World,
    create_acls,
    deliver,
    heartbeat,
    produce,
    request,
    request_struct,
)
from testkit.protocol.random_requests import ALL_ALLOWED
from tests.unit.gateway.test_client import broker

CROWD = 8
MANY: dict[str, list[str]] = {f"group-{number}": [] for number in range(2 * ITEMS_PER_TURN)}
LISTING = request(ApiKey.LIST_GROUPS, 4, 9)


@pytest.fixture
def any_work_is_costly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a long pause follow any work that counts."""
    monkeypatch.setattr(large_turns, "COSTLY_S", 0.0)
    monkeypatch.setattr(large_turns, "REST_PER_WORK", 1e12)
    monkeypatch.setattr(large_turns, "REST_MAX_S", 3600.0)


def listing(world: World) -> World:
    """Let a session have requested a list of many groups, which was not answered yet."""
    world.world.groups = dict(MANY)
    world.session.take([LISTING])
    assert world.forwarded
    return world


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[PartReader]:
    read, readers = PartReader.read, list[PartReader]()

    def counting(self: PartReader, elements_max: int) -> int:
        readers.append(self)
        return read(self, elements_max)

    monkeypatch.setattr(PartReader, "read", counting)
    return readers


async def until(condition: Callable[[], object]) -> None:
    """Return once the loop has come to it; the test's own time limit holds."""
    while not condition():  # noqa: ASYNC110 (nothing else tells)
        await asyncio.sleep(0)


def with_topics(world: World) -> World:
    """Let there be many topics."""
    for name in MANY:
        world.world.create(name)
    return world


@pytest.mark.parametrize("api_key", [ApiKey.DESCRIBE_GROUPS, ApiKey.METADATA])
async def test_answers_of_many_large_requests_do_not_precede_the_request_of_another(
    api_key: ApiKey,
) -> None:
    """A principal may send several requests and get all of the answers at once."""
    topics = [request_struct(ApiKey.METADATA, 9, "MetadataRequestTopic", name=name) for name in MANY]
    large = {
        ApiKey.DESCRIBE_GROUPS: request(ApiKey.DESCRIBE_GROUPS, 5, 1, groups=list(MANY)),
        ApiKey.METADATA: request(ApiKey.METADATA, 9, 1, topics=topics),
    }[api_key]
    first = with_topics(World(ALL_ALLOWED, principal="User:mallory"))
    crowd = [first]
    crowd += [
        with_topics(World(ALL_ALLOWED, principal="User:mallory", large_turns=first.large_turns))
        for _ in range(CROWD - 1)
    ]
    for each in crowd:
        each.session.take([large])
    await until(lambda: all(each.forwarded for each in crowd))
    honest = with_topics(World(ALL_ALLOWED, principal="User:honest", large_turns=first.large_turns))
    for each in crowd:
        assert each.answer_one()
    honest.session.take([large])
    await until(lambda: honest.forwarded)
    # one may have been read at once, and one may have been ahead
    assert sum(bool(each.answers) for each in crowd) <= 2
    await until(lambda: all(each.answers for each in crowd))


@pytest.mark.usefixtures("any_work_is_costly")
async def test_the_work_on_a_large_answer_to_a_small_request_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next answer is not read before the pause for others, on any number of connections."""
    readers = counted_reads(monkeypatch)
    first = listing(World(ALL_ALLOWED))
    second = listing(World(ALL_ALLOWED, large_turns=first.large_turns))
    for each in (first, second):
        assert each.answer_one()
    assert len({id(reader) for reader in readers}) == 1
    assert not first.large_turns.must_wait(second.session._place.owner, produce(1) + bytes(4096))


@pytest.mark.usefixtures("any_work_is_costly")
async def test_no_part_of_a_listing_of_topics_is_read_before_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own handler reads the answer in turns."""
    outline, readers = ItemReader.outline, list[ItemReader]()

    def counting(self: ItemReader, bytes_max: int) -> tuple[list[tuple[Any, int]], int]:
        readers.append(self)
        return outline(self, bytes_max)

    monkeypatch.setattr(ItemReader, "outline", counting)
    first = with_topics(World(ALL_ALLOWED))
    second = with_topics(World(ALL_ALLOWED, large_turns=first.large_turns))
    for each in (first, second):
        each.session.take([request(ApiKey.METADATA, 9, 9, topics=None)])
        assert each.answer_one()
    assert len({id(reader) for reader in readers}) == 1


async def test_work_without_a_turn_does_not_delay_those_waiting_for_a_turn() -> None:
    """Streamed answers may be costly and frequent."""
    now_s, timers, begun = 0.0, list[tuple[float, Callable[[], None]]](), list[float]()
    queue = LargeTurns(lambda: now_s, lambda delay_s, then: timers.append((now_s + delay_s, then)))
    consumer, other = (queue.place(KafkaPrincipal("User", name)) for name in ("consumer", "other"))

    def begin() -> None:
        if other.may_begin(begin):
            begun.append(now_s)

    consumer.worked(COSTLY_S, is_large=False)
    begin()
    while not begun and now_s < REST_MAX_S:
        now_s += COSTLY_S
        consumer.worked(COSTLY_S, is_large=False)
        due = [timer for timer in timers if timer[0] <= now_s]
        timers = [timer for timer in timers if timer not in due]
        for _, then in due:
            then()
    assert begun
    assert begun[0] <= COSTLY_S * (REST_PER_WORK + 1)


@pytest.mark.usefixtures("any_work_is_costly")
async def test_a_right_revoked_while_a_large_answer_waits_hides_its_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_turns, "REST_MAX_S", 0.01)
    first = listing(World(ALL_ALLOWED))
    second = World(ALL_ALLOWED, large_turns=first.large_turns)
    with_topics(second)
    second.world.groups = {"group-one": list(MANY)}
    second.session.take([request(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, 9, group_ids=["group-one"])])
    for each in (first, second):
        assert each.answer_one()
    second.replace_acls([])
    await until(lambda: second.closed or second.answers)
    assert second.closed == ["the ACLs changed while a large request was decided"]
    assert not second.answers


@pytest.mark.usefixtures("any_work_is_costly")
async def test_an_answer_that_waits_for_its_turn_is_held_against_the_budget_of_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made_broker = await broker()
    made_broker.world.groups = dict(MANY)
    async with running_gateway([made_broker]) as made:
        callers: list[Any] = [await Caller.at(made.port) for _ in range(2)]
        monkeypatch.setattr(large_turns, "REST_MAX_S", 0.5)
        for caller in callers:
            caller.send(LISTING)
        # an observer on another thread may look after the pause
        await until(lambda: made.answers.used_bytes >= 8 * len(MANY))
        frames = [await caller.frame() for caller in callers]
        assert [frame.count(b"group-") for frame in frames] == [len(MANY)] * 2
        await until(lambda: made.answers.used_bytes == 0)
        for caller in callers:
            caller.close()


async def test_a_large_answer_does_not_wait_for_the_end_of_throttling() -> None:
    """Brokers answer at once and read nothing more for a while (KIP-219); the client waits by itself."""
    world = listing(World(ALL_ALLOWED))
    answer = world.world.answer(world.forwarded.popleft()) or b""
    deliver(world.link, answer[:5] + (3_600_000).to_bytes(4, "big") + answer[9:])
    await until(lambda: world.answers)
    assert world.answers[0].count(b"group-") == len(MANY)


async def test_a_follow_up_query_waits_for_the_end_of_throttling() -> None:
    world = World(ALL_ALLOWED)
    topic = request_struct(ApiKey.METADATA, 9, "MetadataRequestTopic", name="missing-topic")
    world.session.take([request(ApiKey.METADATA, 9, 1, topics=[topic], allow_auto_topic_creation=True)])
    answer = world.world.answer(world.forwarded.popleft()) or b""
    deliver(world.link, answer[:5] + (3_600_000).to_bytes(4, "big") + answer[9:])
    await world.settle()
    assert (list(world.forwarded), world.answers, world.closed) == ([], [], [])
    world.link._unthrottle()
    assert world.answer_one()
    assert world.correlation_ids() == [1]


@pytest.mark.usefixtures("any_work_is_costly")
async def test_clients_without_a_name_take_turns_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a client could make all others wait for each of its connections."""
    monkeypatch.setattr(large_turns, "REST_MAX_S", 0.5)
    balancer = AddressRanges((ip_network("127.0.0.1"),))
    names = [f"group-number-{number}" for number in range(LARGE_FRAME_BYTES // 10)]
    async with running_gateway([await broker()], proxies=balancer) as made:

        async def came(address: str) -> Caller:
            caller = await Caller.at(made.port)
            caller.writer.write(f"PROXY TCP4 {address} 127.0.0.1 1 2\r\n".encode())
            caller.send(heartbeat(0))
            assert await caller.correlation_ids(1) == [0]
            return caller

        def begun() -> list[int]:
            return [each.correlation_id for each in made.contexts if each.correlation_id]

        def waiting() -> int:
            return len(made.gateway.parts.large_turns._waiting)

        callers = [await came("10.0.0.1") for _ in range(CROWD)]
        callers.append(await came("10.0.0.2"))
        for number, caller in enumerate(callers, start=1):
            caller.send(request(ApiKey.DESCRIBE_GROUPS, 5, number, groups=names))
            await until(lambda: len(set(begun())) + waiting() >= number)  # noqa: B023
        before = len(set(begun()))
        await until(lambda: len(callers) in begun())
        assert len(dict.fromkeys(begun())) <= before + 2
        for caller in callers:
            caller.close()


@pytest.mark.usefixtures("any_work_is_costly")
async def test_requests_take_every_row_of_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_turns, "REST_MAX_S", 0.01)
    rows = RecordedLife(SLOT_LIFE)
    monkeypatch.setattr(client_session, "SLOT_LIFE", rows)
    world = World(ALL_ALLOWED)
    world.session.take([create_acls(1)])
    await world.settle()
    assert await world.learn()
    first = listing(World(ALL_ALLOWED))
    second = listing(World(ALL_ALLOWED, large_turns=first.large_turns))
    for each in (first, second):
        assert each.answer_one()
    await until(lambda: first.answers and second.answers)
    large = World(ALL_ALLOWED, large_turns=first.large_turns)
    large.session.take([request(ApiKey.DESCRIBE_GROUPS, 5, 2, groups=list(MANY))])
    await until(lambda: large.forwarded)
    assert set(rows.taken) == set(SLOT_LIFE)
