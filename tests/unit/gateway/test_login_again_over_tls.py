"""Sessions that reauthenticate over TLS: a Java client finds the answer that follows others."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from kustos.auth import SaslServerSettings
from kustos.gateway.listener import ListenerTls
from kustos.gateway.listener.login import PIECE_PAUSES_S
from kustos.tls import Side, TlsContexts, tls_settings
from kustos.wire import FrameReader, with_length
from kustos.wire.api_keys import ApiKey
from testkit.certificates import Authority
from testkit.gateway.gateways import PATIENCE_S, Caller, RunningGateway, handshake, running_gateway, token
from testkit.gateway.sessions import heartbeat, versions
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until
from tests.unit.gateway.test_client import broker

AGAIN = SaslServerSettings(connections_max_reauth_ms={"PLAIN": 60_000}, failed_authentication_delay_ms=20)
RECORD_HEADER_BYTES = 5
APPLICATION_DATA = 23
READ_BYTES = 16_384


def listener_and_client() -> tuple[ListenerTls, ssl.SSLContext]:
    authority = Authority()
    node = authority.issue("node", hosts=["localhost"])
    keys = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": node.key_pem,
        "ssl.keystore.certificate.chain": node.chain_pem,
    }
    listener = ListenerTls(TlsContexts(tls_settings(keys), Side.SERVER), None, 60_000)
    client = ssl.create_default_context(cadata=authority.pem)
    # sessions that it offers would be records, too
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    return listener, client


LISTENER, CLIENT = listener_and_client()


@pytest.fixture
async def served() -> AsyncIterator[RunningGateway]:
    async with running_gateway([await broker()], sasl=AGAIN, tls=LISTENER) as made:
        yield made


class RecordCaller:
    """A client that tells the records of TLS in which answers come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = CLIENT.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    @classmethod
    async def at(cls, port: int) -> "RecordCaller":
        made = cls(*await asyncio.open_connection(LOOPBACK, port))
        while True:
            try:
                made._object.do_handshake()
            except ssl.SSLWantReadError:
                made._flush()
                await made._record()
            else:
                made._flush()
                return made

    def _flush(self) -> None:
        self._writer.write(self._outgoing.read())

    async def _record(self) -> int:
        """Take one record; return its type."""
        async with asyncio.timeout(PATIENCE_S):
            header = await self._reader.readexactly(RECORD_HEADER_BYTES)
            self._incoming.write(header + await self._reader.readexactly(int.from_bytes(header[3:], "big")))
        return header[0]

    def send(self, *frames: bytes) -> None:
        self._object.write(b"".join(map(with_length, frames)))
        self._flush()

    async def records(self, count: int) -> tuple[list[int], int]:
        """Return the correlation ids of this many answers, and in how many records they came."""
        frames, records, answers = FrameReader(READ_BYTES), 0, list[bytes]()
        while len(answers) < count:
            assert await self._record() == APPLICATION_DATA
            records += 1
            answers += frames.feed(self._object.read(READ_BYTES))
        assert frames.take_rest() == b""
        return [int.from_bytes(answer[:4], "big") for answer in answers], records

    def close(self) -> None:
        self._writer.close()


async def test_the_first_reauthentication_answer_is_split_after_answers_in_flight(
    served: RunningGateway,
) -> None:
    caller = await RecordCaller.at(served.port)
    caller.send(handshake(1), token(2))
    ids, records = await caller.records(2)
    assert ids == [1, 2]
    assert records <= 2, "a first login is answered at once"
    caller.send(heartbeat(3), handshake(4))
    ids, records = await caller.records(2)
    assert ids == [3, 4]
    assert records > len(PIECE_PAUSES_S), "each wakes the client once more"
    caller.send(token(5))
    assert await caller.records(1) == ([5], 1)
    assert served.counted["logins again"] == 1
    caller.close()


async def test_requests_after_a_reauthentication_wait_for_its_split_answer(served: RunningGateway) -> None:
    caller = await Caller.at(served.port, CLIENT)
    assert await caller.log_in() is not None
    caller.send(handshake(1), token(2), heartbeat(3), versions(4))
    assert await caller.correlation_ids(4) == [1, 2, 3, 4]
    assert ApiKey.HEARTBEAT in served.brokers[0].asked
    caller.close()


async def test_a_client_that_disconnects_during_a_split_answer_leaks_nothing(served: RunningGateway) -> None:
    caller = await Caller.at(served.port, CLIENT)
    assert await caller.log_in() is not None
    caller.send(handshake(1), token(2))
    async with asyncio.timeout(PATIENCE_S):
        assert await caller.reader.readexactly(1)
    caller.writer.transport.abort()
    await asyncio.to_thread(
        wait_until, lambda: served.counted["connections"] == 0, what="the connection is counted out"
    )
