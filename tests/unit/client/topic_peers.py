"""Scripted brokers of one topic on real sockets."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kustos.wire import (
    ZERO_UUID,
    Message,
    MessageCodec,
    peek_api,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
)
from kustos.wire.api_keys import ApiKey

TOPIC = "news"
TOPIC_ID = bytes(range(16))

Answer = Callable[[MessageCodec, Message], Message | None]
"""Returns the answer to a request, None to close the connection instead."""


@dataclass
class Peer:
    """A broker: what it offers, what it was asked, and how it answers each API."""

    metadata: tuple[int, int] = (0, 12)
    list_offsets: tuple[int, int] = (1, 10)
    fetch: tuple[int, int] = (4, 17)
    port: int = 0
    answers: dict[int, Answer] = field(default_factory=dict)
    asked: list[tuple[int, int, Message]] = field(default_factory=list)
    """(API, version, request) of each request but ApiVersions."""

    def requests(self, api_key: int) -> list[tuple[int, Message]]:
        """Return (version, request) of those of an API."""
        return [(version, message) for key, version, message in self.asked if key == api_key]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until a script closes the connection, or the client does."""
        try:
            while True:
                size = struct.unpack(">i", await reader.readexactly(4))[0]
                frame = await reader.readexactly(size)
                await self.before(peek_api(frame)[0])
                answer = self._answer(frame)
                if answer is None:
                    return
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def before(self, api_key: int) -> None:
        """Do what a test has in mind before a request is answered."""

    def _answer(self, frame: bytes) -> bytes | None:
        api_key, version, correlation_id = peek_api(frame)
        made = response_codec(api_key, version)
        if api_key == ApiKey.API_VERSIONS:
            entry = made.struct("ApiVersion")
            offered = {3: self.metadata, 2: self.list_offsets, 1: self.fetch, 18: (0, 4)}
            keys = [entry(api_key=key, min_version=a, max_version=b) for key, (a, b) in offered.items()]
            answer: Message | None = made.root.fit(api_keys=keys)
        else:
            codec = request_codec(api_key, version)
            header = read_request_header(frame, codec.flexible)
            request = codec.decode(frame, header.body_offset).message
            self.asked.append((api_key, version, request))
            answer = self.answers[api_key](made, request)
        if answer is None:
            return None
        return response_frame(api_key, made, correlation_id, made.encode(answer))


@dataclass
class SilentPeer(Peer):
    """A broker that accepts connections and says nothing until a test lets it end."""

    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Wait for the end."""
        await self.over.wait()
        writer.close()


@asynccontextmanager
async def listening(*peers: Peer) -> AsyncIterator[str]:
    """Let brokers listen; yield their addresses as `bootstrap.servers`."""
    servers = []
    try:
        for peer in peers:
            servers.append(await asyncio.start_server(peer.serve, "127.0.0.1", peer.port))
            peer.port = servers[-1].sockets[0].getsockname()[1]
        yield ",".join(f"127.0.0.1:{peer.port}" for peer in peers)
    finally:
        for server in servers:
            server.close()


def metadata(
    *peers: Peer, leader: int = 0, error: int = 0, topic_id: bytes = TOPIC_ID, partitions: int = 1
) -> Answer:
    """Return an answer that names brokers 0, 1, …, one of which leads all partitions; -1 for none."""

    def answer(codec: MessageCodec, _: Message) -> Message:
        broker, partition = codec.struct("MetadataResponseBroker"), codec.struct("MetadataResponsePartition")
        nodes = [broker.fit(node_id=n, host="127.0.0.1", port=peer.port) for n, peer in enumerate(peers)]
        found = [
            partition.fit(partition_index=number, leader_id=leader, leader_epoch=4)
            for number in range(partitions)
        ]
        topic = codec.struct("MetadataResponseTopic").fit(
            name=TOPIC, topic_id=topic_id, error_code=error, partitions=[] if error else found
        )
        return codec.root.fit(brokers=nodes, cluster_id="cluster", topics=[topic])

    return answer


def fetched(error: int = 0, records: bytes | None = b"", **fields: Any) -> Answer:
    """Return an answer that brings these bytes for the partition that is asked for."""

    def answer(codec: MessageCodec, request: Message) -> Message:
        asked = request.topics[0]
        data = codec.struct("PartitionData").fit(
            partition_index=asked.partitions[0].partition,
            error_code=error,
            last_stable_offset=9,
            log_start_offset=2,
            records=records,
            **fields,
        )
        topic = codec.struct("FetchableTopicResponse").fit(
            topic=asked.get("topic"), topic_id=asked.get("topic_id", ZERO_UUID), partitions=[data]
        )
        return codec.root.fit(responses=[topic])

    return answer


def offsets(error: int = 0, offset: int = 9) -> Answer:
    """Return an answer with one offset for every partition that is asked for."""

    def answer(codec: MessageCodec, request: Message) -> Message:
        each = codec.struct("ListOffsetsPartitionResponse").fit
        found = [
            each(partition_index=asked.partition_index, error_code=error, offset=offset)
            for asked in request.topics[0].partitions
        ]
        return codec.root.fit(topics=[codec.struct("ListOffsetsTopicResponse")(name=TOPIC, partitions=found)])

    return answer


def in_turn(*answers: Answer | None) -> Answer:
    """Return an answer that is another one each time, the last one for ever; None closes the connection."""
    left = list(answers)

    def answer(codec: MessageCodec, request: Message) -> Message | None:
        found = left.pop(0) if len(left) > 1 else left[0]
        return None if found is None else found(codec, request)

    return answer
