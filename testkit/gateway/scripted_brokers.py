"""Scripted brokers on real sockets, with the versions and the behavior that a test sets."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from kustos.client.connection import ConnectionLimits, KafkaConnection
from kustos.wire import (
    FrameReader,
    codec_versions,
    peek_api,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
)
from kustos.wire.api_keys import ApiKey
from testkit.ports import LOOPBACK
from testkit.protocol.cluster_model import Model
from testkit.protocol.driver import OFFERED
from testkit.protocol.random_requests import model

NEWEST = OFFERED | {32: codec_versions(32) or (0, 0)}


@dataclass
class ScriptedBroker:
    """A broker of the model cluster; `peers` is what Metadata names, itself included."""

    node_id: int
    versions: dict[int, tuple[int, int]] = field(default_factory=lambda: dict(NEWEST))
    auto_creates: str | None = "false"
    world: Model = field(default_factory=model)
    peers: "list[ScriptedBroker]" = field(default_factory=list)
    port: int = 0
    asked: list[int] = field(default_factory=list)
    connections: int = 0
    asker: Any = None
    """The transport that the request came on which is answered now."""
    answers_nothing: bool = False
    """Whether it answers nothing more."""
    metadata_error: int = 0
    """Of every Metadata answer that has room for one."""
    answers_raw: bytes | None = None
    """The raw answer to every request except those of the gateway itself."""

    def __post_init__(self) -> None:
        self.server: asyncio.Server | None = None
        self.open: set[asyncio.Transport] = set()
        if not self.peers:
            self.peers.append(self)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: _Connection(self), LOOPBACK, self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        """Take no more connections; the open ones stay."""
        if self.server is not None:
            self.server.close()
            self.server = None

    def stop(self) -> None:
        self.stop_listening()
        for transport in list(self.open):
            transport.abort()

    def answer(self, frame: bytes) -> bytes | None:
        """Return the whole frame that answers, None for silence."""
        api_key, version, _ = peek_api(frame)
        self.asked.append(api_key)
        if self.answers_nothing:
            return None
        match api_key:
            case ApiKey.API_VERSIONS:
                made = response_codec(api_key, version)
                entry = made.struct("ApiVersion")
                keys = [
                    entry(api_key=key, min_version=low, max_version=high)
                    for key, (low, high) in self.versions.items()
                ]
                return self._framed(frame, made, made.root.fit(api_keys=keys))
            case ApiKey.METADATA if self.answers_raw is None:
                whole = self.world.answer(frame)
                assert whole is not None
                return self._with_brokers(frame, version)
            case ApiKey.DESCRIBE_CONFIGS:
                return self._configs(frame, version)
        if self.answers_raw is not None:
            return self.answers_raw
        answered = self.world.answer(frame)
        return None if answered is None else len(answered).to_bytes(4, "big") + answered

    def _with_brokers(self, frame: bytes, version: int) -> bytes:
        codec, made = request_codec(3, version), response_codec(3, version)
        header = read_request_header(frame, codec.flexible)
        response = self.world.metadata(codec.decode(frame, header.body_offset).message, made)
        entry = made.root.ELEMENTS["brokers"]
        response.brokers = [
            entry.fit(node_id=peer.node_id, host=LOOPBACK, port=peer.port) for peer in self.peers
        ]
        if "error_code" in made.root.FIELDS:
            response.error_code = self.metadata_error
        return self._framed(frame, made, response)

    def _configs(self, frame: bytes, version: int) -> bytes:
        made = response_codec(32, version)
        result = made.root.ELEMENTS["results"]
        configs = []
        if self.auto_creates is not None and str(self.node_id).encode() in frame:
            config = result.ELEMENTS["configs"]
            configs = [config.fit(name="auto.create.topics.enable", value=self.auto_creates)]
        return self._framed(frame, made, made.root.fit(results=[result.fit(configs=configs)]))

    @staticmethod
    def _framed(frame: bytes, made: Any, response: Any) -> bytes:
        api_key, _, correlation_id = peek_api(frame)
        return response_frame(api_key, made, correlation_id, made.encode(response))


class _Connection(asyncio.Protocol):
    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.reader = FrameReader(2**27)
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.broker.connections += 1
        self.broker.open.add(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.broker.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        for frame in self.reader.feed(data):
            self.broker.asker = self.transport
            answer = self.broker.answer(frame)
            if answer is not None:
                self.transport.write(answer)


async def connect(host: str, port: int) -> KafkaConnection:
    """Connect as the gateway does, without a login."""
    return await KafkaConnection.open(host, port, limits=ConnectionLimits(connect_timeout_ms=5000))


async def cluster_of(*brokers: ScriptedBroker) -> None:
    """Start brokers that name each other."""
    for broker in brokers:
        broker.peers = list(brokers)
        await broker.start()
