"""aiokafka: an idempotent producer and a member of a group, as `carol`."""

import asyncio
import random
import zlib
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from testkit.faults.clients.notes import BURST, FILLING_BYTES, PATIENCE_S, PAUSE_S, Notes, Orders, payload
from testkit.waiting import let_pass

USER, TOPIC = "carol", "carol-records"


class Program:
    """The tasks of one process."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.note = Notes(orders.notes)
        self.number = 0

    def settings(self, purpose: str) -> dict[str, Any]:
        """Return what both clients take."""
        return {
            "bootstrap_servers": self.orders.bootstrap,
            "client_id": f"{USER}:{purpose}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": USER,
            "sasl_plain_password": self.orders.users[USER],
            "request_timeout_ms": 30_000,
            "retry_backoff_ms": 100,
        }

    async def produce(self) -> None:
        """Write bursts of records."""
        chance = random.Random(self.orders.seed)
        fates: set[asyncio.Task[None]] = set()
        producer = await self._started(
            lambda: AIOKafkaProducer(**self.settings("records"), enable_idempotence=True, linger_ms=5)
        )
        while self.orders.goes_on:
            for _ in range(BURST):
                self.number += 1
                name = f"{self.orders.prefix}-{self.number}"
                self.note("S", name, TOPIC, "-")
                value = payload(name, TOPIC, chance.randint(*FILLING_BYTES))
                fate = asyncio.ensure_future(self._send(producer, name, value))
                fates.add(fate)
                fate.add_done_callback(fates.discard)
            await let_pass(PAUSE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*fates)
                await producer.stop()

    async def _send(self, producer: AIOKafkaProducer, name: str, value: bytes) -> None:
        try:
            told = await producer.send_and_wait(TOPIC, value)
        except KafkaError as error:
            self.note("F", name, type(error).__name__)
        else:
            self.note("A", name, TOPIC, told.partition, told.offset)

    async def _started(self, make: Any) -> Any:
        """Return a client that could begin: it gives up by itself where a broker is gone at that moment."""
        while True:
            client = make()
            try:
                await client.start()
            except (KafkaError, OSError) as error:
                self.note("N", f"starts that failed ({type(error).__name__})", 1)
                await client.stop()
            else:
                return client

    async def consume(self) -> None:
        """Read in a group, and note what came from where."""
        consumer = await self._started(
            lambda: AIOKafkaConsumer(
                TOPIC,
                **self.settings("reading"),
                group_id="carol-group",
                auto_offset_reset="earliest",
                session_timeout_ms=10_000,
            )
        )
        while self.orders.goes_on:
            try:
                found = await consumer.getmany(timeout_ms=500)
            except KafkaError as error:
                self.note("N", f"errors of the consumer ({type(error).__name__})", 1)
                await let_pass(PAUSE_S)
                continue
            for messages in found.values():
                for each in messages:
                    self.note("R", each.topic, each.partition, each.offset, zlib.crc32(each.value))
        # aiokafka raises its own fetch task's cancellation where that waits before it tries again
        with suppress(KafkaError, TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(PATIENCE_S):
                await consumer.stop()


async def run() -> None:
    """Run until told to end."""
    program = Program(Orders.of_arguments())
    await asyncio.gather(program.produce(), program.consume())


if __name__ == "__main__":
    asyncio.run(run())
