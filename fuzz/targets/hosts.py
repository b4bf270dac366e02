"""Hosts that TLS clients ask for: patterns and names, and whole ClientHellos as OpenSSL reads them.

The first byte chooses. A pattern is separated from a name by NUL.
"""

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from fuzz.targets import require
from kustos.gateway.listener.server_names import HostAskingObject, ask_for_hosts, names_host
from kustos.gateway.upstream.host_names import BrokerHostPattern, BrokerHosts, UnknownHostError

INPUT_MAX_BYTES: Final = 1_024
BOOTSTRAP: Final = "kafka.example.com"
OTHER: Final = "broker-1.other.example.com"
REASON_MAX_CHARACTERS: Final = 2_000
"""Of a line in the log: a name, a pattern of the settings, and some words."""


def check(data: bytes) -> None:
    """Raise if a name leads where it must not, or if we read a ClientHello otherwise than OpenSSL."""
    (name_of_a_broker if data[:1] == b"n" else client_hello)(data[1:])


def name_of_a_broker(data: bytes) -> None:
    """Ask for a name among those of a pattern."""
    text, _, name = data.decode("utf-8", "replace").partition("\0")
    try:
        pattern = BrokerHostPattern.parse(text)
    except ValueError:
        return
    require(BrokerHostPattern.parse(str(pattern)) == pattern, "a pattern is two patterns")
    try:
        node_id = BrokerHosts(BOOTSTRAP, pattern, 443).broker_of(name)
    except UnknownHostError as error:
        said = str(error)
        require(said.isascii() and said.isprintable(), "the log gets bytes that a stranger chose")
        require(len(said) <= REASON_MAX_CHARACTERS, "the log gets an endless line")
        return
    own = BOOTSTRAP if node_id is None else pattern.host_of(node_id)
    require(name.lower().removesuffix(".") == own, "a name leads to the broker of another")


@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    from testkit.certificates import Authority

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        store = Authority().issue("node", hosts=["*.example.com"]).write(Path(directory) / "node.pem")
        context.load_cert_chain(store)
    ask_for_hosts(context)
    return context


def client_hello(data: bytes) -> None:
    """Let OpenSSL read the first bytes of a client; what it tells, a second look must find, too."""
    if data[:1] != b"\x16":
        return
    told: list[str | None] = []
    incoming = ssl.MemoryBIO()
    half = _context().wrap_bio(incoming, ssl.MemoryBIO(), server_side=True)
    require(isinstance(half, HostAskingObject), "the context does not ask for hosts")
    half.ask(told.append)  # type: ignore[attr-defined]
    incoming.write(data)
    with suppress(ssl.SSLError):
        half.do_handshake()
    record, message = int.from_bytes(data[3:5], "big"), int.from_bytes(data[6:9], "big")
    if told and message + 4 <= record:
        require(names_host(data, told[0]), "a second look finds another name than OpenSSL")
        require(names_host(data, OTHER) == (told[0] == OTHER), "a second look finds any name")


def seeds() -> Iterator[bytes]:
    """Yield names as clients spell them, and ClientHellos of both versions."""
    from testkit.hellos import client_hello as hello

    pattern = b"nbroker-$(nodeId).kafka.example.com\0"
    for name in (
        b"broker-1.kafka.example.com",
        b"BROKER-22.Kafka.example.com.",
        b"kafka.example.com",
        b"",
        b"1",
    ):
        yield pattern + name
    for asked in (b"broker-1.kafka.example.com", b"k\xff", None):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            yield b"h" + hello(asked, version)
