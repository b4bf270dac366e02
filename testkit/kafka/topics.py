"""Creates topics in a real Kafka, waits until they are usable, and counts their records.

The controller answers CreateTopics before any broker has read of the topic, and a broker lists a partition a
moment before it has it. A request in between gets UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
"""

from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import OffsetSpec as Offset  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from testkit.kafka import probe
from testkit.kafka.node import KafkaNode
from testkit.waiting import PATIENCE_S, wait_until


def make_topics(nodes: Sequence[KafkaNode], *topics: NewTopic) -> None:
    """Create topics; return when `nodes` know them with all replicas in sync and their leaders serve them.

    `nodes` are the brokers of one cluster, reached past relays, as a user with every permission.
    """
    admin = AdminClient(nodes[0].internal_client)
    for made in admin.create_topics(list(topics)).values():
        made.result(PATIENCE_S)
    names = frozenset(topic.topic for topic in topics)
    for node in nodes:
        wait_until(
            partial(probe.complete_topics, node.internal_port, sasl=node.internal_sasl),
            holds=names.issubset,
            what=f"node {node.node_id} knows {', '.join(sorted(names))}",
        )
    wait_until(
        lambda: _served(admin, names),
        not_yet=KafkaException,
        what=f"{', '.join(sorted(names))}: served by leaders",
    )


def count_records(node: KafkaNode, topic: str) -> int:
    """Return how many records were written to a topic outside of transactions, by its end offsets.

    With it a consumer knows when it has read all, and need not wait whether another one comes.
    """
    return sum(_ends(AdminClient(node.internal_client), frozenset({topic})))


def _served(admin: AdminClient, names: frozenset[str]) -> bool:
    """Return whether each leader serves each partition; raise `KafkaException` if one does not."""
    return all(end >= 0 for end in _ends(admin, names))


def _ends(admin: AdminClient, names: frozenset[str]) -> list[int]:
    """Return the end offset of each partition; raise `KafkaException` if a leader does not serve one."""
    known = admin.list_topics(timeout=PATIENCE_S).topics
    latest = Offset.latest()  # type: ignore[no-untyped-call]
    asked = admin.list_offsets(
        {TopicPartition(name, number): latest for name in names for number in known[name].partitions}
    )
    return [future.result(PATIENCE_S).offset for future in asked.values()]
