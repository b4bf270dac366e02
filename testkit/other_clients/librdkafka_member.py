"""librdkafka as a member of a group, in a process of its own, so that it can be killed.

As `member` of the client in Go it prints a line for each record, and commits what it printed. A line has
topic, partition, offset, value.
"""

import json
import os

from confluent_kafka import Consumer

from testkit.other_clients import ORDERS, Orders

POLL_S = 0.2


def main() -> None:
    """Read until killed."""
    orders = Orders(**json.loads(os.environ[ORDERS]))
    consumer = Consumer(
        {
            "bootstrap.servers": orders.bootstrap,
            "client.id": orders.writer,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": orders.writer,
            "sasl.password": orders.users[orders.writer],
            "log_level": 0,
            "group.id": orders.group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "roundrobin",
            "session.timeout.ms": 6_000,
            "auto.commit.interval.ms": 200,
            # only what was printed is read
            "enable.auto.offset.store": False,
        }
    )
    consumer.subscribe([orders.topic])
    while True:
        message = consumer.poll(POLL_S)
        if message is None or message.error() is not None:
            continue
        value = (message.value() or b"").decode()
        print(message.topic(), message.partition(), message.offset(), value, sep="\t", flush=True)
        consumer.store_offsets(message)


if __name__ == "__main__":
    main()
