"""Clients that vanish, send half a frame or garbage, pipeline 1,000 requests, never read, or may nothing.

Each scene is a connection of its own. A connection that breaks is no failure, as faults break some; an answer
that belongs to another request, or that tells `mallory` anything, is.
"""

import random
import socket
import struct
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from testkit.faults.clients.notes import Notes, Orders
from testkit.guarded.raw_client import RawClient, framed
from testkit.late_passage import fields
from testkit.tap.frames import code, read_response

FETCH, METADATA, CREATE_TOPICS, DELETE_TOPICS = 1, 3, 19, 20
VERSIONS: Final = {FETCH: 12, METADATA: 12, CREATE_TOPICS: 5, DELETE_TOPICS: 5}
TOPIC_DENIED: Final = 29
PIPELINED: Final = 1_000
UNREAD: Final = 300
OWN, HIDDEN = "alice-records", "hidden-plans"
SMALL_BUFFER_BYTES: Final = 4_096
PAUSES_S: Final = (0.05, 0.6)
HELD_S: Final = (0.5, 6.0)
AT_ONCE: Final = 2


def fetch(topic: str) -> dict[str, Any]:
    """Return a Fetch without a session, of whatever the topic has from its beginning."""
    partition = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1 << 20))
    return {
        "max_wait": i32Timedelta.parse(timedelta(milliseconds=1)),
        "min_bytes": i32(0),
        "max_bytes": i32(1 << 20),
        "isolation_level": i8(0),
        "session_epoch": i32(-1),
        "topics": (FetchTopic(topic=TopicName(topic), partitions=(partition,)),),
        "forgotten_topics_data": (),
    }


class Rude:
    """The scenes; each takes what draws for it."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.note = Notes(orders.notes)

    def connected(self, user: str | None = None) -> RawClient:
        """Return a connection, logged in where a user is named."""
        client = RawClient(self.orders.bootstrap, f"{user or 'stranger'}:rude")
        if user is not None:
            client.log_in(user, self.orders.users[user])
        return client

    def half_a_frame(self, chance: random.Random) -> None:
        """Send a part of a request, before a login or after it, and end."""
        user = chance.choice((None, "alice"))
        with self.connected(user) as client:
            frame = framed(client.request(METADATA, 12, **fields.metadata(OWN)))
            client.socket.sendall(frame[: chance.randrange(1, len(frame))])
            vanish(client, chance)

    def garbage(self, chance: random.Random) -> None:
        """Send what is not a request."""
        with self.connected(chance.choice((None, "alice"))) as client:
            client.socket.sendall(framed(chance.randbytes(chance.randrange(8, 200))))
            vanish(client, chance)

    def gone_before_the_answer(self, chance: random.Random) -> None:
        """Send requests and end without reading."""
        with self.connected("alice") as client:
            for _ in range(chance.randrange(1, 60)):
                client.send(client.request(FETCH, VERSIONS[FETCH], **fetch(OWN)))
            vanish(client, chance)

    def never_reads(self, chance: random.Random) -> None:
        """Ask for far more than the kernel's buffers hold, and read none of it."""
        with self.connected("alice") as client:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
            frames = [framed(client.request(FETCH, VERSIONS[FETCH], **fetch(OWN))) for _ in range(UNREAD)]
            client.socket.sendall(b"".join(frames))
            threading.Event().wait(chance.uniform(*HELD_S))
            vanish(client, chance)

    def pipelined(self, chance: random.Random) -> None:
        """Send a thousand requests at once; each answer must be its own request's."""
        with self.connected("alice") as client:
            topics = [chance.choice((OWN, HIDDEN)) for _ in range(PIPELINED)]
            frames = [client.request(METADATA, 12, **fields.metadata(topic)) for topic in topics]
            client.socket.sendall(b"".join(map(framed, frames)))
            for frame, topic in zip(frames, topics, strict=True):
                correlation_id, answer = read_response(client.receive(), METADATA, 12)
                [told] = answer.topics
                if correlation_id != struct.unpack_from(">i", frame, 4)[0] or told.name != topic:
                    self.note("P", f"asked for `{topic}` and got {correlation_id} `{told.name}`")
                if (code(told) == TOPIC_DENIED) != (topic == HIDDEN):
                    self.note("P", f"code {code(told)} of `{topic}`")
            self.note("N", "answers to pipelined requests, each its own", PIPELINED)

    def may_nothing(self, chance: random.Random) -> None:
        """Ask as one whom no ACL names."""
        with self.connected("mallory") as client:
            told = [
                code(each)
                for each in client.ask(METADATA, 12, **fields.metadata(OWN)).topics
                + client.ask(CREATE_TOPICS, 5, **fields.create_topic("mallory-own", [1])).topics
                + client.ask(DELETE_TOPICS, 5, **delete(OWN)).responses
            ]
            found = client.ask(FETCH, VERSIONS[FETCH], **fetch(OWN)).responses
            told += [code(each) for topic in found for each in topic.partitions]
            if told != [TOPIC_DENIED] * 4:
                self.note("P", f"mallory was answered {told}")

    def run(self, seed: int) -> None:
        """Play one scene after the other until told to end."""
        chance = random.Random(seed)
        scenes: list[Callable[[random.Random], None]] = [
            self.half_a_frame, self.garbage, self.gone_before_the_answer,
            self.never_reads, self.pipelined, self.may_nothing,
        ]  # fmt: skip
        while self.orders.goes_on:
            scene = chance.choice(scenes)
            try:
                scene(chance)
                self.note("N", scene.__name__, 1)
            except (EOFError, OSError) as error:
                self.note("N", f"{scene.__name__} cut off ({type(error).__name__})", 1)
            threading.Event().wait(chance.uniform(*PAUSES_S))


def delete(topic: str) -> dict[str, Any]:
    """Return the deletion of a topic."""
    return {"topic_names": (TopicName(topic),), "timeout": i32Timedelta.parse(timedelta(seconds=5))}


def vanish(client: RawClient, chance: random.Random) -> None:
    """End the connection: by RST half of the time."""
    if chance.random() < 0.5:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def main() -> None:
    """Run until told to end."""
    orders = Orders.of_arguments()
    rude = Rude(orders)
    threads = [threading.Thread(target=rude.run, args=(orders.seed + each,)) for each in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
