"""A controller that answers as a script says: what a real one does only when it is unlucky."""

import asyncio
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Self

from kustos.metadata.quorum import Address
from kustos.wire import (
    Message,
    peek_api,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
)
from kustos.wire.api_keys import ApiKey

OFFERED = {ApiKey.API_VERSIONS: (0, 4), ApiKey.FETCH: (12, 18), 59: (0, 1), 58: (0, 0)}

Answering = Callable[[Message], Message | None]
"""From a request to its answer; None: never."""


class FakeController:
    """Listens on loopback while it is entered. `envelopes` and `fetches` may be put in at any time."""

    def __init__(self, fetch: Answering) -> None:
        self.fetch = fetch
        self.envelope: Answering = lambda _: None
        self.fetch_snapshot: Answering = lambda _: None
        self.asked: list[int] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    @property
    def address(self) -> Address:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = struct.unpack(">i", await reader.readexactly(4))[0]
                answer = self._answer(await reader.readexactly(size))
                if answer is not None:
                    writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, frame: bytes) -> bytes | None:
        api_key, version, correlation_id = peek_api(frame)
        codec = response_codec(api_key, version)
        if api_key == ApiKey.API_VERSIONS:
            item = codec.struct("ApiVersion")
            offered = [item(api_key=int(k), min_version=a, max_version=b) for k, (a, b) in OFFERED.items()]
            answer: Message | None = codec.new(api_keys=offered)
        else:
            self.asked.append(api_key)
            answer = self._asked(api_key)(_body(frame, api_key, version))
        if answer is None:
            return None
        return response_frame(api_key, codec, correlation_id, codec.encode(answer))

    def _asked(self, api_key: int) -> Answering:
        return {ApiKey.FETCH: self.fetch, ApiKey.FETCH_SNAPSHOT: self.fetch_snapshot}.get(
            ApiKey(api_key), self.envelope
        )


def _body(frame: bytes, api_key: int, version: int) -> Message:
    codec = request_codec(api_key, version)
    header = read_request_header(frame, codec.flexible)
    return codec.decode(frame, header.body_offset).message
