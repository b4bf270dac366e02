"""The first bytes of TLS clients that ask for hosts no library would let them ask for."""

import ssl
from functools import lru_cache

LONGEST = ".".join(["n" * 49] * 5)


def client_hello(name: bytes | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """Return a ClientHello of OpenSSL's that asks for this host, any bytes up to 250; None: for none."""
    if name is None:
        return _hello(None, version)
    assert 0 < len(name) <= len(LONGEST)
    # a name of the same length in its place leaves every other length as it is
    other, size = LONGEST[: len(name)], bytes((0, 0, len(name)))
    return _hello(other, version).replace(size + other.encode(), size + name, 1)


@lru_cache(maxsize=512)
def _hello(name: str | None, version: ssl.TLSVersion) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake needs an answer")
