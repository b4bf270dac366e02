"""The messages of SCRAM, and exchanges in which one side says what it should not.

The first byte chooses: a message to parse, a server that hears two messages, an honest client whose proof was
changed on its way, or a client that hears two messages.
"""

from collections.abc import Iterator
from typing import Final

from fuzz.targets import require
from kustos.auth import SaslAuthenticationError, SaslClientError, SaslMechanismError, ScramDecoys, ScramHash
from kustos.auth.mechanisms.base import Challenge, Proven
from kustos.auth.mechanisms.scram import ScramClient, ScramServer
from kustos.auth.mechanisms.scram_messages import (
    ClientFinal,
    ClientFirst,
    ScramSyntaxError,
    ServerFinal,
    ServerFirst,
    escape_name,
)
from testkit.sasl import PASSWORD, SECRET, SeededEntropy, lookup

INPUT_MAX_BYTES: Final = 1_024
ITERATIONS_HERE_MAX: Final = 8_192
"""A client computes up to a million for a server, which is a cost that it knows of; not here."""

_HASH: Final = ScramHash.SHA_256
_DECOYS: Final = ScramDecoys(SECRET)
_REFUSALS: Final = (SaslMechanismError, SaslAuthenticationError)
_SEPARATOR: Final = b"\xff"
"""Between two messages: no message may have it."""


def check(data: bytes) -> None:
    """Raise if a message is read in two ways, or if something but a proof proves anything."""
    kind, rest = data[:1], data[1:]
    {b"f": parsed, b"s": heard_by_server, b"p": changed_proof, b"c": heard_by_client}.get(kind, parsed)(rest)


def parsed(data: bytes) -> None:
    """Require that each kind of message survives being written and read again."""
    for message_type in (ServerFirst, ClientFinal, ServerFinal):
        try:
            message = message_type.parse(data)
        except ScramSyntaxError:
            continue
        require(message_type.parse(message.encode()) == message, f"{message_type.__name__} changes")
    try:
        first = ClientFirst.parse(data)
    except ScramSyntaxError:
        return
    require(first.bare in data, "what is signed was not sent")
    name = f"n={escape_name(first.username)},r={first.nonce}".encode()
    # capital letters of an escape are the only ones, so a name is written in one way
    require(first.bare.startswith(name), "a name has two forms")
    again = ClientFirst.parse(b"n,," + first.bare)
    require(
        (again.username, again.nonce, again.extensions) == (first.username, first.nonce, first.extensions),
        "2",
    )


def server() -> ScramServer:
    """Return an exchange whose nonce is always the same."""
    return ScramServer(_HASH, lookup, _DECOYS, SeededEntropy(3))


def heard_by_server(data: bytes) -> None:
    """Require that nobody is proven without the password, whatever two messages say."""
    exchange = server()
    for token in data.split(_SEPARATOR, 2):
        try:
            step = exchange.respond(token)
        except _REFUSALS:
            return
        require(isinstance(step, Challenge), "somebody is proven without a password")


def honest() -> tuple[bytes, bytes]:
    """Return the two messages of a client with the password."""
    client = ScramClient(_HASH, "alice", PASSWORD, SeededEntropy(4))
    first = client.first()
    challenge = server().respond(first)
    assert isinstance(challenge, Challenge)
    final = client.respond(challenge.token)
    assert final is not None
    return first, final


_FIRST, _FINAL = honest()
_HONEST: Final = ClientFinal.parse(_FINAL)


def changed_proof(data: bytes) -> None:
    """Change the honest final message by (position, byte) pairs; only what says the same may pass."""
    final = bytearray(_FINAL)
    for at, value in zip(data[::2], data[1::2], strict=False):
        final[at % len(final)] ^= value
    exchange = server()
    exchange.respond(_FIRST)
    try:
        step = exchange.respond(bytes(final))
    except _REFUSALS:
        require(bytes(final) != _FINAL, "an honest client is refused")
        return
    require(isinstance(step, Proven), "there is a third round")
    require(ClientFinal.parse(bytes(final)) == _HONEST, "a changed proof is taken")


def heard_by_client(data: bytes) -> None:
    """Require that a client believes no server that does not know its password."""
    client = ScramClient(_HASH, "alice", PASSWORD, SeededEntropy(4))
    client.first()
    for token in data.split(_SEPARATOR, 2):
        try:
            if ServerFirst.parse(token).iterations > ITERATIONS_HERE_MAX:
                return
        except ScramSyntaxError:
            pass
        try:
            client.respond(token)
        except SaslClientError:
            break
    require(not client.is_complete, "a client believes a server without its password")


def seeds() -> Iterator[bytes]:
    """Yield the honest messages, and those of the conversations."""
    from testkit.conversations import conversations
    from testkit.conversations.speaker import NONCE

    challenge = server().respond(_FIRST)
    assert isinstance(challenge, Challenge)
    for kind in (b"f", b"s", b"c"):
        yield kind + _FIRST
        yield kind + _FINAL
        yield kind + challenge.token
    yield b"f" + b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="
    yield b"f" + b"e=other-error"
    yield b"s" + _FIRST + _SEPARATOR + b"c=biws,r=x,p=AAAA"
    yield b"c" + challenge.token + _SEPARATOR + b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="
    yield b"p\0\0"
    for conversation in conversations():
        for step in conversation.steps if conversation.subject == "scram" else ():
            if isinstance(step.argument, str):
                text = step.argument.replace("${mine}", NONCE).replace("${nonce}", NONCE * 2)
                yield b"f" + text.replace("${proof}", "AAAA").encode()
