"""Clients that fetch and never read: what a node holds for them."""

import socket
import time
from contextlib import ExitStack
from typing import Final

from confluent_kafka import Producer

from benchmarks.figures import QUICK, progress
from benchmarks.stalling.attacks import fetch_all
from benchmarks.stalling.sides import DATA_TOPIC, READER, Side

CLIENTS: Final = 20 if QUICK else 100
FETCHES_OF_A_CLIENT: Final = 4
RECORD_BYTES: Final = 900_000
RECORDS: Final = 64
LIMIT_MB: Final = 500.0
"""What a node may take for them in all."""

STOP_MB: Final = 2_000.0
"""No more clients are added beyond it: the machine has others."""

RECEIVE_BUFFER_BYTES: Final = 4096
LOOK_S: Final = 0.1
STILL_S: Final = 3.0
"""How long the memory must not have grown until it is taken for settled."""

SETTLE_TIMEOUT_S: Final = 60.0


def fill_topic(properties: dict[str, str]) -> None:
    """Write what is fetched to the topic."""
    producer = Producer({"log_level": 0, "linger.ms": "0", **properties})
    for _ in range(RECORDS):
        producer.produce(DATA_TOPIC, bytes(RECORD_BYTES))
        producer.poll(0)
    if producer.flush(SETTLE_TIMEOUT_S):
        raise RuntimeError("the data topic was not filled")


def most_held(side: Side) -> float:
    """Return the megabytes that all processes of a side held at most while no client reads."""
    frames = fetch_all(DATA_TOPIC) * FETCHES_OF_A_CLIENT
    highest_mb = before_mb = side.memory_mb()
    with ExitStack() as stack:
        for number in range(CLIENTS):
            client = stack.enter_context(side.connect(READER))
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            client.socket.sendall(frames)
            highest_mb = max(highest_mb, side.memory_mb())
            if highest_mb > STOP_MB:
                progress(f"  {side.name}: stopped at {number + 1} clients")
                return highest_mb
        deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
        grown_s = time.monotonic()
        while (now_s := time.monotonic()) < min(deadline_s, grown_s + STILL_S) and highest_mb <= STOP_MB:
            time.sleep(LOOK_S)
            held_mb = side.memory_mb()
            if held_mb > highest_mb + 1:
                highest_mb, grown_s = held_mb, now_s
    progress(f"  {side.name}: {before_mb:.0f} MB before, {highest_mb:.0f} MB with {CLIENTS} clients")
    return highest_mb
