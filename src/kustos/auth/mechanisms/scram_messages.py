"""The messages of SCRAM (RFC 5802 section 7), exactly as Kafka reads and writes them.

Messages are matched as bytes: no production allows a character above 0x7F. Only the gs2 header `n` is
supported. As in Kafka, the auth message is built without the reserved `m=` of the client's first message and
without the extensions of its last message, so a client that sends them fails at the proof. The extensions of
the first message keep their order; Kafka orders two or more by a hash map.
"""

import re
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kustos.auth.errors import AuthError

MESSAGE_MAX_BYTES: Final = 131_072
"""The largest accepted message: it can contain the longest name of Kafka's protocol (32,767 bytes),
completely escaped. Unauthenticated clients send these messages, and Kafka has no limit."""

EXTENSIONS_MAX: Final = 64
"""The maximum number of extensions in one message; clients send at most one, and Kafka has no limit."""

_VALUE: Final = rb"[\x01-\x2b\x2d-\x7f]+"
_VALUE_SAFE: Final = rb"[\x01-\x2b\x2d-\x3c\x3e-\x7f]+"
_PRINTABLE: Final = rb"[\x21-\x2b\x2d-\x7e]+"
_SASLNAME: Final = rb"[\x01-\x2b\x2d-\x7f]+"
"""A name, if `is_escaped` also accepts it: a pattern that checks both takes 80 ms and 80 MB for half a
megabyte."""
_BASE64: Final = rb"[a-zA-Z0-9/+]*={0,2}"
"""Base64, if the size is a multiple of four: `_decoded` checks that, many times faster than a pattern."""
_RESERVED: Final = rb"(?:m=" + _VALUE + rb",)?"
_EXTENSIONS: Final = rb"(?:,[A-Za-z]+=" + _VALUE + rb"){0,%d}" % EXTENSIONS_MAX

_CLIENT_FIRST: Final = re.compile(
    rb"n,(?:a=(?P<authzid>" + _SASLNAME + rb"))?," + _RESERVED + rb"n=(?P<saslname>" + _SASLNAME + rb")"
    rb",r=(?P<nonce>" + _PRINTABLE + rb")(?P<extensions>" + _EXTENSIONS + rb")",
)
_SERVER_FIRST: Final = re.compile(
    _RESERVED + rb"r=(?P<nonce>" + _PRINTABLE + rb"),s=(?P<salt>" + _BASE64 + rb")"
    rb",i=(?P<iterations>[0-9]{1,10})" + _EXTENSIONS,
)
_BEFORE_PROOF: Final = re.compile(
    rb"c=(?P<channel>" + _BASE64 + rb"),r=(?P<nonce>" + _PRINTABLE + rb")" + _EXTENSIONS
)
_PROOF: Final = re.compile(_BASE64)
_SERVER_FINAL: Final = re.compile(
    rb"(?:e=(?P<error>" + _VALUE_SAFE + rb"))|(?:v=(?P<signature>" + _BASE64 + rb"))" + _EXTENSIONS,
)


class ScramSyntaxError(AuthError):
    """A malformed message; the text names the message, never its content."""


def is_escaped(saslname: bytes) -> bool:
    """Return whether each `=` in a saslname begins one of the two escapes."""
    return saslname.count(b"=") == saslname.count(b"=2C") + saslname.count(b"=3D")


def escape_name(username: str) -> str:
    """Return the user name as a saslname: `=` and `,` become `=3D` and `=2C`."""
    return username.replace("=", "=3D").replace(",", "=2C")


def _unescape_name(saslname: str) -> str:
    return saslname.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: bytes) -> bytes | None:
    """Return the bytes of a text that `_BASE64` matches, None if it is not padded to whole groups of four."""
    return None if len(text) % 4 else a2b_base64(text)


def in_base64(data: bytes) -> bytes:
    """Return the bytes in base 64."""
    return b2a_base64(data, newline=False)


class ClientFirst(NamedTuple):
    """The client's first message; `bare` is its part of the auth message."""

    authorization_id: str
    username: str
    nonce: str
    extensions: tuple[tuple[str, str], ...]
    bare: bytes

    @classmethod
    def parse(cls, message: bytes) -> "ClientFirst":
        """Return the parsed message; raise `ScramSyntaxError`."""
        match = None if len(message) > MESSAGE_MAX_BYTES else _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise ScramSyntaxError("invalid SCRAM client first message format")
        authzid, saslname, nonce, extensions = match.groups()
        username, authorization_id = saslname.decode(), (authzid or b"").decode()
        if b"=" in saslname or "=" in authorization_id:
            if not (is_escaped(saslname) and is_escaped(authzid or b"")):
                raise ScramSyntaxError("invalid SCRAM client first message format")
            username = _unescape_name(username)
        pairs = extensions and tuple(
            (name, value)
            for name, _, value in (pair.partition("=") for pair in extensions.decode().split(",")[1:])
        )
        bare = b"n=" + saslname + b",r=" + nonce + extensions
        return cls(authorization_id, username, nonce.decode(), pairs or (), bare)

    @property
    def is_token(self) -> bool:
        """Whether the name is a delegation token's id (KIP-48); the last such extension counts."""
        return bool(self.extensions) and dict(self.extensions).get("tokenauth", "").lower() == "true"


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """The server's first message."""

    nonce: str
    salt: bytes = field(repr=False)
    iterations: int

    @classmethod
    def parse(cls, message: bytes) -> "ServerFirst":
        """Return the parsed message; raise `ScramSyntaxError`."""
        match = _SERVER_FIRST.fullmatch(message)
        salt = None if match is None else _decoded(match["salt"])
        if match is None or salt is None or not 0 < int(match["iterations"]) < 2**31:
            raise ScramSyntaxError("invalid SCRAM server first message format")
        return cls(match["nonce"].decode(), salt, int(match["iterations"]))

    def encode(self) -> bytes:
        """Return the message."""
        return b"r=%b,s=%b,i=%d" % (self.nonce.encode(), in_base64(self.salt), self.iterations)


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """The client's last message; the channel binding's value is not checked, as in Kafka."""

    channel_binding: bytes
    nonce: str
    proof: bytes = field(default=b"", repr=False)

    @classmethod
    def parse(cls, message: bytes) -> "ClientFinal":
        """Return the parsed message; raise `ScramSyntaxError`."""
        # an extension may also be named `p`, and a proof contains no comma: splitting here avoids
        # backtracking
        before, _, shown = message.rpartition(b",p=")
        match = None if len(message) > MESSAGE_MAX_BYTES else _BEFORE_PROOF.fullmatch(before)
        channel = None if match is None else _decoded(match["channel"])
        proof = None if _PROOF.fullmatch(shown) is None else _decoded(shown)
        if match is None or channel is None or proof is None:
            raise ScramSyntaxError("invalid SCRAM client final message format")
        return cls(channel, match["nonce"].decode(), proof)

    @property
    def without_proof(self) -> bytes:
        """The part of the auth message."""
        return b"c=" + in_base64(self.channel_binding) + b",r=" + self.nonce.encode()

    def encode(self) -> bytes:
        """Return the message."""
        return self.without_proof + b",p=" + in_base64(self.proof)


@dataclass(frozen=True, slots=True)
class ServerFinal:
    """The server's last message: an error, or the signature that proves it knew the credential."""

    error: str | None
    signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, message: bytes) -> "ServerFinal":
        """Return the parsed message; raise `ScramSyntaxError`."""
        match = _SERVER_FINAL.fullmatch(message)
        if match is not None and match["error"] is not None:
            return cls(match["error"].decode(), b"")
        signature = None if match is None else _decoded(match["signature"])
        if signature is None:
            raise ScramSyntaxError("invalid SCRAM server final message format")
        return cls(None, signature)

    def encode(self) -> bytes:
        """Return the message."""
        return b"v=" + in_base64(self.signature) if self.error is None else f"e={self.error}".encode()
