"""All reads of a process share one buffer: a broker gets only the bytes of its own client."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kustos.gateway.upstream.addresses import AddressRanges
from kustos.wire import peek_api
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import Caller, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat
from tests.unit.gateway.test_tls_transport import Certificates

CLIENTS = 8
FRAMES = 40
PIECE_MAX_BYTES = 20_000
CHANCE = random.Random(20261127)


class ListeningBroker(ScriptedBroker):
    """Keeps the received bytes of each connection."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.came: dict[Any, list[bytes]] = defaultdict(list)

    def answer(self, frame: bytes) -> bytes | None:
        if peek_api(frame)[0] == ApiKey.HEARTBEAT:
            self.came[self.asker].append(frame)
        return super().answer(frame)


def frames_of(number: int) -> list[bytes]:
    """Return small and large requests of a client, filled with its number."""
    sizes = [CHANCE.choice((1, 100, 30_000)) for _ in range(FRAMES)]
    return [heartbeat(at, chr(ord("a") + number) * size) for at, size in enumerate(sizes)]


def pieces_of(frames: list[bytes]) -> Iterator[bytes]:
    """Yield the bytes of frames, cut anywhere."""
    sent = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    while sent:
        size = CHANCE.randint(1, PIECE_MAX_BYTES)
        yield sent[:size]
        sent = sent[size:]


async def mixed_up(certificates: Certificates | None, *, behind_proxy: bool) -> list[str]:
    """Return the clients whose requests did not reach a broker unchanged."""
    broker = ListeningBroker(1)
    await broker.start()
    proxies = AddressRanges((ip_network("127.0.0.1"),)) if behind_proxy else None
    tls = None if certificates is None else certificates.listener()
    context = None if certificates is None else certificates.client()
    async with running_gateway([broker], tls=tls, proxies=proxies) as made:

        async def exchange(number: int) -> list[bytes]:
            frames = frames_of(number)
            reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
            if behind_proxy:
                writer.write(b"PROXY TCP4 10.0.0.%d 127.0.0.1 1 2\r\n" % number)
            if context is not None:
                await writer.start_tls(context, server_hostname="localhost")
            caller = Caller(reader, writer)
            answered = asyncio.create_task(caller.correlation_ids(FRAMES))
            for piece in pieces_of(frames):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            assert await answered == list(range(FRAMES))
            caller.close()
            return frames

        sent = await asyncio.gather(*map(exchange, range(CLIENTS)))
    return [str(number) for number, frames in enumerate(sent) if frames not in broker.came.values()]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
@pytest.mark.parametrize("behind_proxy", [False, True], ids=["direct", "proxy"])
def test_each_broker_connection_gets_the_bytes_of_its_client(
    run: Any, protocol: str, behind_proxy: bool, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path) if protocol == "SSL" else None
    assert run(mixed_up(certificates, behind_proxy=behind_proxy)) == []
