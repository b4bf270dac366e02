"""The upstream brokers, versions and topic ids that the gateway knows, with as few queries as needed."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kustos.client import KafkaConnection
from kustos.gateway.upstream import cluster as cluster_module
from kustos.gateway.upstream import topic_ids
from kustos.gateway.upstream.cluster import (
    REBOOTSTRAP_REQUIRED,
    UpstreamCluster,
    UpstreamUnavailableError,
    common_to_all,
    covers,
)
from kustos.wire.api_keys import ApiKey
from testkit.gateway.scripted_brokers import NEWEST, ScriptedBroker, cluster_of, connect
from testkit.ports import LOOPBACK
from testkit.protocol.cluster_model import PARTITIONS

UNKNOWN = b"\x42" * 16


@pytest.fixture
async def brokers() -> AsyncIterator[list[ScriptedBroker]]:
    made = [ScriptedBroker(0), ScriptedBroker(1), ScriptedBroker(2)]
    await cluster_of(*made)
    yield made
    for broker in made:
        broker.stop()


def cluster_to(*brokers: ScriptedBroker) -> UpstreamCluster:
    return UpstreamCluster([(LOOPBACK, broker.port) for broker in brokers], connect)


async def test_only_versions_that_every_broker_supports_are_offered(brokers: list[ScriptedBroker]) -> None:
    brokers[1].versions[ApiKey.FETCH] = (4, 12)
    brokers[2].versions[ApiKey.PRODUCE] = (3, 8)
    del brokers[2].versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS]
    cluster = cluster_to(brokers[0])
    await cluster.refresh()
    assert cluster.versions[ApiKey.FETCH] == (4, 12)
    assert cluster.versions[ApiKey.PRODUCE] == (3, 8)
    assert ApiKey.DESCRIBE_TOPIC_PARTITIONS not in cluster.versions
    assert ApiKey.METADATA in cluster.versions
    # the upgrade goes on
    brokers[1].versions, brokers[2].versions = dict(NEWEST), dict(NEWEST)
    await cluster.refresh()
    assert cluster.versions == NEWEST
    # and a broker that comes back older is known at the first link
    cluster.learn_versions(1, NEWEST | {1: (4, 11)})
    assert cluster.versions[1] == (4, 11)
    cluster.close()


async def test_an_unavailable_broker_keeps_its_versions_and_a_removed_one_does_not(
    brokers: list[ScriptedBroker],
) -> None:
    brokers[2].versions[ApiKey.FETCH] = (4, 12)
    cluster = cluster_to(brokers[0])
    await cluster.refresh()
    brokers[2].stop()
    await cluster.refresh()
    assert cluster.versions[ApiKey.FETCH] == (4, 12)
    assert set(cluster.brokers) == {0, 1, 2}
    brokers[0].peers = brokers[1].peers = brokers[:2]
    seen: list[set[int]] = []
    cluster.watch(lambda known: seen.append(set(known)))
    await cluster.refresh()
    assert seen == [{0, 1}]
    assert cluster.versions == NEWEST
    cluster.close()


@pytest.mark.parametrize(
    ("said", "expected"),
    [(("false",) * 3, False), (("false", "true", "false"), True), (("false", None, "false"), True)],
)
async def test_one_broker_that_creates_topics_is_enough(
    brokers: list[ScriptedBroker], said: tuple[str | None, ...], expected: bool
) -> None:
    for broker, value in zip(brokers, said, strict=True):
        broker.auto_creates = value
    cluster = cluster_to(brokers[0])
    await cluster.refresh()
    assert cluster.auto_creates_topics is expected
    cluster.close()


async def test_querying_brokers_leaves_no_connection_open(brokers: list[ScriptedBroker]) -> None:
    cluster = cluster_to(brokers[0])
    for _ in range(3):
        await cluster.refresh()
    await cluster.list_topics(None)
    assert [broker.connections for broker in brokers] == [4, 3, 3]
    await cluster.list_topics(None)
    assert sum(len(broker.open) for broker in brokers[1:]) == 0
    cluster.close()


async def test_concurrent_queries_share_one_connection(brokers: list[ScriptedBroker]) -> None:
    cluster = cluster_to(brokers[0])
    answers = await asyncio.gather(*(cluster.list_topics(None) for _ in range(40)))
    assert all(answer == answers[0] for answer in answers)
    assert brokers[0].connections == 1
    cluster.close()


async def asked_at_most_twice(cluster: UpstreamCluster) -> dict[str, int]:
    """A lost connection is noticed at the first question, unless the loop heard of it before."""
    try:
        return await cluster.list_topics(None)
    except UpstreamUnavailableError:
        return await cluster.list_topics(None)


async def test_a_bootstrap_broker_may_be_down_start_and_restart(brokers: list[ScriptedBroker]) -> None:
    brokers[0].stop()
    cluster = cluster_to(brokers[0])
    with pytest.raises(UpstreamUnavailableError, match=f"{LOOPBACK}:{brokers[0].port}"):
        await cluster.refresh()
    assert cluster.brokers == {}
    await brokers[0].start()
    await cluster.refresh()
    assert cluster.is_reachable
    # a restart fails one query of concurrent callers, and none of later callers
    brokers[0].stop()
    await brokers[0].start()
    assert await asked_at_most_twice(cluster)
    # brokers that were seen stand in for a bootstrap server that stays away
    brokers[0].stop()
    assert await asked_at_most_twice(cluster)
    cluster.close()


async def moved(broker: ScriptedBroker) -> None:
    """Restart a broker at another address."""
    broker.stop()
    broker.port = 0
    await broker.start()


async def test_the_new_address_of_a_broker_is_learned_from_others(brokers: list[ScriptedBroker]) -> None:
    cluster = cluster_to(brokers[0])
    await cluster.refresh()
    seen, asked = cluster.brokers, len(brokers[0].asked)
    await moved(brokers[1])
    outcomes = await asyncio.gather(*(cluster.relearn(seen) for _ in range(1000)))
    assert set(outcomes) == {True}
    assert cluster.brokers[1].port == brokers[1].port
    assert len(brokers[0].asked) == asked + 1, "all of them share one request"
    assert await cluster.relearn(seen), "later callers already have the addresses"
    assert len(brokers[0].asked) == asked + 1
    cluster.close()


async def test_unavailable_brokers_are_queried_at_a_limited_rate(
    brokers: list[ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_to(brokers[0])
    await cluster.refresh()
    brokers[1].stop()
    asked = len(brokers[0].asked)
    for _ in range(100):
        assert not await cluster.relearn(cluster.brokers)
    assert len(brokers[0].asked) == asked + 1
    monkeypatch.setattr(cluster_module, "LEARN_EVERY_S", 0)
    assert not await cluster.relearn(cluster.brokers)
    assert len(brokers[0].asked) == asked + 2
    cluster.close()


async def test_the_bootstrap_servers_are_queried_if_no_known_broker_is_reachable(
    brokers: list[ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "LEARN_EVERY_S", 0)
    # an open connection to the old cluster still answers, and new ones do not get there
    old, new = brokers[:2], ScriptedBroker(7)
    old[0].peers = old[1].peers = old
    await cluster_of(new)
    ways = {(LOOPBACK, 1): old[0].port}

    async def through(host: str, port: int) -> KafkaConnection:
        return await connect(host, ways.get((host, port), port))

    cluster = UpstreamCluster([(LOOPBACK, 1)], through)
    await cluster.refresh()
    ways[LOOPBACK, 1] = new.port
    seen = cluster.brokers
    cluster.note(seen[0], reached=False)
    assert not await cluster.relearn(seen), "one of them may still be reached"
    cluster.note(seen[1], reached=False)
    assert await cluster.relearn(seen)
    assert set(cluster.brokers) == {0, 1, 7}
    await cluster.refresh()
    assert set(cluster.brokers) == {7}, "a refresh drops those that are gone"
    cluster.close()
    new.stop()


async def test_upstream_may_require_a_rebootstrap(brokers: list[ScriptedBroker]) -> None:
    new = ScriptedBroker(7)
    await cluster_of(new)
    servers = [(LOOPBACK, brokers[0].port), (LOOPBACK, new.port)]
    cluster = UpstreamCluster(servers, connect)
    await cluster.refresh()
    brokers[0].metadata_error = REBOOTSTRAP_REQUIRED
    with pytest.raises(UpstreamUnavailableError, match="bootstrap again") as refusal:
        await cluster.refresh()
    assert refusal.value.may_come
    brokers[0].stop()
    await cluster.refresh()
    assert set(cluster.brokers) == {7}
    cluster.close()
    new.stop()


async def test_an_empty_broker_list_is_ignored(brokers: list[ScriptedBroker]) -> None:
    cluster = cluster_to(brokers[0])
    await cluster.refresh()
    known = dict(cluster.brokers)
    brokers[0].peers = []
    with pytest.raises(UpstreamUnavailableError, match="names no broker"):
        await cluster.refresh()
    assert cluster.brokers == known
    cluster.close()


async def test_a_silent_connection_is_replaced(
    brokers: list[ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "LEARN_WAIT_S", 0.2)
    cluster = UpstreamCluster([(LOOPBACK, broker.port) for broker in brokers[:2]], connect)
    await cluster.refresh()
    await moved(brokers[2])
    brokers[0].stop_listening()
    brokers[0].answers_nothing = True
    seen = cluster.brokers
    learning = cluster.begin_learning()
    assert learning is not None
    await learning
    assert cluster.brokers[2].port == brokers[2].port != seen[2].port
    cluster.close()


async def test_a_lost_connection_is_noticed(brokers: list[ScriptedBroker]) -> None:
    cluster = cluster_to(brokers[0])
    await cluster.refresh()
    await cluster.until_lost(0.01)
    lost = asyncio.ensure_future(cluster.until_lost(3600))
    brokers[0].stop()
    await lost
    cluster.close()


async def test_topic_ids_are_queried_once_and_absence_is_cached_briefly(
    brokers: list[ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_ids, "UNKNOWN_TOPIC_ID_TTL_S", 3600)
    world = brokers[0].world
    topic_id = world.topics["alpha-topic"]
    cluster = cluster_to(brokers[0])
    asked = frozenset({topic_id, UNKNOWN})
    assert cluster.known_names(asked) is None
    found = tuple(await asyncio.gather(cluster.resolve_topic_ids(asked), cluster.resolve_topic_ids(asked)))
    assert found == ({topic_id: "alpha-topic"}, {topic_id: "alpha-topic"})
    assert cluster.known_names(asked) == {topic_id: "alpha-topic"}
    count = len(brokers[0].asked)
    await cluster.resolve_topic_ids(frozenset({topic_id}))
    assert len(brokers[0].asked) == count
    # the moment is over: the topic may have come to be
    monkeypatch.setattr(topic_ids, "UNKNOWN_TOPIC_ID_TTL_S", 0)
    asked = frozenset({topic_id, b"\x43" * 16})
    assert await cluster.resolve_topic_ids(asked) == {topic_id: "alpha-topic"}
    assert cluster.known_names(asked) is None
    world.topics["new-topic"] = b"\x43" * 16
    assert await cluster.resolve_topic_ids(asked) == {topic_id: "alpha-topic", b"\x43" * 16: "new-topic"}
    cluster.close()


async def test_an_impossible_topic_name_does_not_exist(brokers: list[ScriptedBroker]) -> None:
    cluster = cluster_to(brokers[0])
    asked = frozenset({"alpha-topic", "missing-topic", "absent!topic"})
    assert await cluster.list_topics(asked) == {"alpha-topic": PARTITIONS}
    cluster.close()


def test_common_versions_are_within_each_range() -> None:
    common = common_to_all([{0: (0, 9), 1: (4, 17), 2: (0, 1)}, {0: (3, 12), 1: (4, 16), 2: (2, 5)}])
    assert common == {0: (3, 9), 1: (4, 16)}
    assert common_to_all([]) == {}
    assert covers({0: (3, 9)}, {0: (3, 9)})
    assert not covers({0: (3, 9)}, {0: (2, 9)})
    assert not covers({0: (3, 9)}, {0: (3, 10)})
    assert not covers({}, {0: (3, 9)})
