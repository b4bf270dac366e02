"""A certificate must match the requested name: the client does not look up names of addresses."""

import asyncio
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kustos.auth import SaslServerSettings
from kustos.client import CannotConnectError, ClientTls, KafkaConnection
from kustos.gateway.listener import ListenerTls
from kustos.tls import Side, TlsContexts, tls_settings
from testkit.certificates import Authority
from testkit.gateway.gateways import running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.ports import LOOPBACK


def listener_of(authority: Authority, *, with_address: bool) -> ListenerTls:
    if with_address:
        node = authority.issue("node", hosts=["localhost"])
    else:
        node = authority.issue("node", hosts=["localhost"], address=None)
    keys = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": node.key_pem,
        "ssl.keystore.certificate.chain": node.chain_pem,
    }
    return ListenerTls(TlsContexts(tls_settings(keys), Side.SERVER), None, 60_000)


@pytest.mark.behaviour("B261")
@pytest.mark.parametrize("with_address", [True, False])
async def test_an_address_is_not_looked_up_for_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_address: bool
) -> None:
    asked: list[Any] = []

    def look_up(*parts: Any) -> NoReturn:
        asked.append(parts)
        raise AssertionError("a name was looked up backwards")

    for name in ("gethostbyaddr", "getnameinfo", "getfqdn"):
        monkeypatch.setattr(socket, name, look_up)
    authority = Authority()
    trust = authority.write(tmp_path / "authority.pem")
    tls = ClientTls.from_properties({"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trust)})
    broker = ScriptedBroker(1)
    await broker.start()
    listener = listener_of(authority, with_address=with_address)
    async with running_gateway([broker], sasl=SaslServerSettings(), tls=listener) as served:

        async def connected() -> None:
            connection = await KafkaConnection.open(LOOPBACK, served.port, tls=tls.context())
            connection.close()

        if with_address:
            await connected()
        else:
            # `localhost` is the name of this address, and counts for nothing
            with pytest.raises(CannotConnectError, match=r"127\.0\.0\.1"):
                await connected()
        await asyncio.sleep(0)
    assert asked == []
