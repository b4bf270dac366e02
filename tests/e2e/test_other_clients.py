"""franz-go and kafkajs through kustos: their writing, reading, transactions and administration.

Each plays its scenes once; the tests then look at what it said, at what is in the brokers past kustos, and at
the audit log.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import ACLS, TOPICS, USERS, settings
from testkit.other_clients import Orders, franz_go, kafkajs, scenes
from testkit.waiting import wait_until

pytestmark = pytest.mark.slow

WAIT_S = 60.0
VALUES = tuple(f"record-{number}" for number in range(50))
COMMITTED, ABORTED = ("together-1", "together-2"), ("never-1", "never-2")
COMMANDS = {"franz-go": franz_go, "kafkajs": kafkajs}
TOPIC_OF = {"franz-go": "orders-eu", "kafkajs": "orders-us"}
TOPIC_DENIED = "TOPIC_AUTHORIZATION_FAILED"
# whatever error a broker answers, kafkajs asks the next one for the coordinator, and says this after the last
NOWHERE = "KafkaJSGroupCoordinatorNotFound: Failed to find group coordinator"
GROUP_DENIED = {"franz-go": "GROUP_AUTHORIZATION_FAILED", "kafkajs": NOWHERE}
TRANSACTION_DENIED = {"franz-go": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "kafkajs": NOWHERE}


@dataclass(frozen=True, slots=True)
class Played:
    """What a client was told, what it said of each scene, and where it was told it."""

    client: str
    scene: GuardedCluster
    orders: Orders
    said: dict[str, dict[str, Any]]

    def await_audited(self, name: str, decision: str, operation: str, kind: str) -> None:
        """Return once the audit log has that decision for a resource: it is written after the answer."""
        wanted = {
            "resource_name": name,
            "decision": decision,
            "operation": operation,
            "resource_type": kind,
        }

        def is_there() -> bool:
            return any(
                wanted.items() <= event.items() and event["client_id"] in clients
                for event in self.scene.kustos.audit_events()
            )

        clients = {self.orders.writer, self.orders.admin}
        wait_until(is_there, what=f"the audit log has {wanted}")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    with GuardedCluster(tmp_path_factory.mktemp("scene"), settings(), topics=TOPICS) as scene:
        yield scene


@pytest.fixture(scope="module", params=COMMANDS)
def played(request: pytest.FixtureRequest, guarded: GuardedCluster) -> Iterator[Played]:
    """Let a client play its scenes; afterwards nothing unauthorised must have passed."""
    name: str = request.param
    orders = Orders(
        bootstrap=guarded.bootstrap,
        users=USERS,
        writer="alice",
        admin="erin",
        topic=TOPIC_OF[name],
        group=f"alice-{name}",
        transaction=f"alice-{name}",
        denied_topic="orders-secret",
        denied_group=f"bob-{name}",
        made_topic=f"erin-{name}",
        values=VALUES,
        committed=COMMITTED,
        aborted=ABORTED,
    )
    said = scenes(COMMANDS[name](), orders)
    assert not {scene: each["failed"] for scene, each in said.items() if "failed" in each}
    yield Played(name, guarded, orders, said)
    try:
        guarded.assert_proper()
    finally:
        guarded.begin_anew()


def committed(scene: GuardedCluster, topic: str) -> list[tuple[int, str]]:
    """Return offsets and values of what a super user reads of a topic to its end, past kustos."""
    properties = {"group.id": "past", "isolation.level": "read_committed", "enable.partition.eof": True}
    found: list[tuple[int, str]] = []
    with closing(Consumer({"bootstrap.servers": scene.direct, **properties})) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"only {found}"
            if message.error() is not None:
                return found
            found.append((int(message.offset() or 0), (message.value() or b"").decode()))


def values_of(records: Sequence[tuple[int, str]]) -> list[str]:
    return [value for _, value in records]


def test_what_was_acknowledged_is_where_the_client_says(played: Played) -> None:
    said = played.said["produce"]
    records = committed(played.scene, played.orders.topic)[: len(VALUES)]
    assert records == list(zip(said["offsets"], VALUES, strict=True))
    played.await_audited(played.orders.topic, "ALLOWED", "WRITE", "TOPIC")


def test_a_topic_that_may_not_be_written_gives_the_clients_own_error(played: Played) -> None:
    assert played.said["produce"]["denied"] == TOPIC_DENIED
    assert committed(played.scene, "orders-secret") == []
    played.await_audited("orders-secret", "DENIED", "DESCRIBE", "TOPIC")


def test_the_group_reads_all_and_its_offsets_are_committed(played: Played) -> None:
    assert played.said["group"]["values"] == list(VALUES)
    group = played.orders.group
    admin = AdminClient({"bootstrap.servers": played.scene.direct})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    (partition,) = asked[group].result(WAIT_S).topic_partitions
    assert (partition.topic, partition.offset) == (played.orders.topic, len(VALUES))
    played.await_audited(group, "ALLOWED", "READ", "GROUP")


def test_a_group_that_may_not_be_read_gives_the_clients_own_error(played: Played) -> None:
    assert played.said["group"]["denied"] == GROUP_DENIED[played.client]
    played.await_audited(played.orders.denied_group, "DENIED", "DESCRIBE", "GROUP")


def test_a_transaction_is_there_as_a_whole_and_an_aborted_one_is_not(played: Played) -> None:
    assert values_of(committed(played.scene, played.orders.topic))[len(VALUES) :] == list(COMMITTED)
    assert played.said["transaction"]["denied"] == TRANSACTION_DENIED[played.client]
    name = played.orders.transaction
    played.await_audited(name, "ALLOWED", "WRITE", "TRANSACTIONAL_ID")
    played.await_audited(f"not-{name}", "DENIED", "DESCRIBE", "TRANSACTIONAL_ID")


def test_topics_and_acls_are_administered_where_one_may(played: Played) -> None:
    said = played.said["admin"]
    assert said == {
        "partitions": 2,
        "configs": True,
        "acls": len(ACLS),
        "deleted": "NONE",
        "denied": TOPIC_DENIED,
        "not_deleted": TOPIC_DENIED,
    }
    admin = AdminClient({"bootstrap.servers": played.scene.direct})
    made = played.orders.made_topic
    wait_until(
        lambda: admin.list_topics(timeout=WAIT_S).topics.keys(),
        holds=lambda topics: made not in topics,
        what="the deleted topic is gone",
    )
    assert played.orders.topic in admin.list_topics(timeout=WAIT_S).topics
    played.await_audited(made, "ALLOWED", "CREATE", "TOPIC")
    played.await_audited(made, "ALLOWED", "DELETE", "TOPIC")
    played.await_audited("orders-secret-made", "DENIED", "CREATE", "TOPIC")
