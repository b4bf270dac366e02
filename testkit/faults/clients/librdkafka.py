"""librdkafka: an idempotent and a transactional producer, a consumer group, a user who is denied at times.

`alice` writes and reads her topics; `erin` writes and reads `changing`; `carol` reads beside aiokafka.
"""

import faulthandler
import random
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from testkit.faults.clients.notes import (
    ABORTED_SHARE,
    BURST,
    ENDS_S,
    FILLING_BYTES,
    PATIENCE_S,
    PAUSE_S,
    TRANSACTION_RECORDS,
    Notes,
    Orders,
    payload,
)

CALL_S: Final = 10.0


class Program:
    """The threads of one process."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.note = Notes(orders.notes)
        self._number = 0
        self._lock = threading.Lock()

    def settings(self, user: str, purpose: str, **more: Any) -> dict[str, Any]:
        """Return the configuration of a client."""
        return {
            "bootstrap.servers": self.orders.bootstrap,
            "client.id": f"{user}:{purpose}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": self.orders.users[user],
            "log_level": 0,
            "reconnect.backoff.max.ms": 1000,
            "socket.timeout.ms": 10_000,
        } | more

    def record(self, topic: str, transaction: str, chance: random.Random) -> tuple[str, bytes]:
        """Return a new record's id and value, once it is noted."""
        with self._lock:
            self._number += 1
            name = f"{self.orders.prefix}-{self._number}"
        self.note("S", name, topic, transaction)
        return name, payload(name, topic, chance.randint(*FILLING_BYTES))

    def delivered(self, name: str) -> Callable[[KafkaError | None, Message], None]:
        """Return what notes the fate of a record."""

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.note("A", name, message.topic(), message.partition(), message.offset())
            else:
                self.note("F", name, error.name())

        return note

    def produce(self, user: str, topic: str) -> None:
        """Write bursts of records; a producer that failed for good is replaced."""
        chance = random.Random(f"{self.orders.seed}/{topic}")
        settings = self.settings(
            user, "records", **{"enable.idempotence": True, "message.timeout.ms": 120_000, "linger.ms": 5}
        )
        producer = Producer(settings)
        while self.orders.goes_on:
            try:
                for _ in range(BURST):
                    name, value = self.record(topic, "-", chance)
                    producer.produce(topic, value, on_delivery=self.delivered(name))
                deadline = time.monotonic() + PAUSE_S
                while (left := deadline - time.monotonic()) > 0:
                    producer.poll(left)
            except KafkaException as error:
                # a producer without an id: who may write to no topic gets none
                self.note("N", f"producers of {user} replaced ({error.args[0].name()})", 1)
                producer.flush(CALL_S)
                producer = Producer(settings)
        producer.flush(PATIENCE_S)

    def transact(self, user: str, topic: str) -> None:
        """Write transactions, of which some are aborted."""
        chance = random.Random(f"{self.orders.seed}/{topic}")
        name = f"{user}-transactions"
        settings = self.settings(user, "payments", **{"transactional.id": name})
        producer: Producer | None = None
        number = 0
        while self.orders.goes_on:
            try:
                if producer is None:
                    producer = Producer(settings)
                    producer.init_transactions(PATIENCE_S)
                number += 1
                self._transaction(producer, topic, f"{self.orders.prefix}-t{number}", chance)
            except KafkaException as error:
                # fatal, or without an end: the next producer of this name settles it
                self.note("N", f"transactions given up ({error.args[0].name()})", 1)
                producer = None

    def _transaction(self, producer: Producer, topic: str, name: str, chance: random.Random) -> None:
        aborts = chance.random() < ABORTED_SHARE
        producer.begin_transaction()
        try:
            for _ in range(TRANSACTION_RECORDS):
                record, value = self.record(topic, name, chance)
                producer.produce(topic, value, on_delivery=self.delivered(record))
            producer.poll(PAUSE_S)
            if not aborts:
                self._until_done(producer.commit_transaction)
                self.note("C", name)
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        # without it, sequence numbers of records that are purged in flight are given to later ones, which a
        # broker then takes for repetitions: acknowledged, and not there (librdkafka 2.16, at a broker too)
        if producer.flush(PATIENCE_S):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        self._until_done(producer.abort_transaction)
        self.note("X", name)

    @staticmethod
    def _until_done(end: Callable[[float], None]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return end(CALL_S)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def consume(self, user: str, topics: list[str]) -> None:
        """Read in a group, and note what came from where."""
        consumer = Consumer(
            self.settings(
                user,
                "reading",
                **{
                    "group.id": f"{user}-group",
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "session.timeout.ms": 10_000,
                    "fetch.wait.max.ms": 500,
                },
            )
        )
        consumer.subscribe(topics)
        while self.orders.goes_on:
            message = consumer.poll(PAUSE_S)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                self.note("N", f"errors of {user}'s consumer ({error.name()})", 1)
                continue
            value = message.value() or b""
            self.note("R", message.topic(), message.partition(), message.offset(), zlib.crc32(value))
        consumer.close()


def main() -> None:
    """Run until told to end."""
    orders = Orders.of_arguments()
    program = Program(orders)
    jobs: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
        (program.produce, ("alice", "alice-records")),
        (program.transact, ("alice", "alice-payments")),
        (program.consume, ("alice", ["alice-records", "alice-payments"])),
        (program.produce, ("erin", "changing")),
        (program.consume, ("erin", ["changing"])),
        (program.consume, ("carol", ["carol-records"])),
    ]
    threads = [threading.Thread(target=work, args=arguments) for work, arguments in jobs]
    for thread in threads:
        thread.start()
    while orders.goes_on:
        threads[0].join(PAUSE_S)
    # what hangs is told by its lines, and ends the program
    faulthandler.dump_traceback_later(ENDS_S, exit=True)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
