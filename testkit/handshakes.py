"""TLS handshakes in memory between two contexts."""

import ssl
from dataclasses import dataclass

ROUNDS_MAX = 10


@dataclass(frozen=True)
class Halves:
    """Both halves of a connection whose handshake is done."""

    server: ssl.SSLObject
    client: ssl.SSLObject


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Halves:
    """Shake hands, and let the client hear of the end; raise the `ssl.SSLError` of the side that refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    halves = Halves(
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, session=session, server_hostname="localhost"),
    )
    waiting = [halves.client, halves.server]
    for _ in range(ROUNDS_MAX):
        for half in tuple(waiting):
            try:
                half.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(half)
        if not waiting:
            halves.server.write(b"done")
            assert halves.client.read(4) == b"done"
            return halves
    raise AssertionError("the handshake does not end")


def refusal(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """Return why one side refuses the certificate of the other, None if none does."""
    try:
        shake_hands(server, client)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return None
