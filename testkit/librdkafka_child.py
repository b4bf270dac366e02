"""A librdkafka client as a process of its own: `python -m testkit.librdkafka_child`, its task as JSON.

It writes one record into each partition of a topic, reads all of them in a group, and prints what it found.
"""

import json
import sys
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

WAIT_S = 60.0


def run(configuration: dict[str, Any], topic: str, group: str, text: str, partitions: int) -> dict[str, Any]:
    """Return the brokers by id, as two APIs name them, and what was delivered and read."""
    admin = AdminClient(configuration)
    listed = admin.list_topics(timeout=WAIT_S).brokers
    described = admin.describe_cluster().result(WAIT_S).nodes
    errors: list[object] = []
    producer = Producer(configuration)
    for number in range(partitions):
        producer.produce(
            topic,
            f"{text}-{number}".encode(),
            partition=number,
            on_delivery=lambda error, _: errors.append(None if error is None else str(error)),
        )
    left = producer.flush(WAIT_S)
    consumer = Consumer(configuration | {"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    wanted = {f"{text}-{number}" for number in range(partitions)}
    read: set[str] = set()
    while not wanted <= read:
        message = consumer.poll(WAIT_S)
        if message is None or message.error() is not None:
            raise SystemExit(f"only {sorted(read)}: {None if message is None else message.error()}")
        read.add((message.value() or b"").decode())
    consumer.close()
    return {
        "listed": {str(node_id): [each.host, each.port] for node_id, each in listed.items()},
        "described": {str(each.id): [each.host, each.port] for each in described},
        "left": left,
        "errors": errors,
    }


if __name__ == "__main__":
    print(json.dumps(run(**json.load(sys.stdin))))
