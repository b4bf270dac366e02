"""Answers made comparable: what is random on purpose is named, everything else stays as it was sent.

Four things are taken out, and nothing else: the order of the mechanisms, the list of an ApiVersions answer
(kustos offers other APIs), the server's half of a SCRAM nonce with the salt of a delegation token, and the
bytes of a Kerberos token (its plaintext stays where the client can read it).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kustos.wire import (
    MalformedMessageError,
    api_name,
    codec_versions,
    read_response_header,
    response_codec,
    response_header_is_flexible,
)

CLOSED: Final = "closed"

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
CREATE_DELEGATION_TOKEN: Final = 38

_SERVER_FIRST: Final = re.compile(rb"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]*),i=(?P<iterations>[0-9]+)")
_SERVER_FINAL: Final = re.compile(rb"v=(?P<signature>[A-Za-z0-9+/]+=*)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as far as its answer depends on it; `api_key` is None for a bare token."""

    api_key: int | None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer: the bytes without what is random, and a few words for people."""

    data: bytes
    words: str
    token: bytes = field(default=b"", compare=False, repr=False)
    """The token in it, as it came."""
    lifetime_ms: int = field(default=0, compare=False)
    """The session's, where a login succeeded."""

    def __str__(self) -> str:
        return f"{self.words}: {self.data!r}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the client knows while it reads: its own nonce, and how it opens a token of its mechanism."""

    mechanism: str
    nonce: bytes
    salt_is_random: bool
    signature: Callable[[], bytes | None]
    open_gss: Callable[[bytes], bytes]


THE_END: Final = Heard(b"", CLOSED)


def heard(asked: Asked, frame: bytes, reading: Reading) -> Heard:
    """Return what a frame says, without its length."""
    if asked.api_key is None:
        return Heard(_token(frame, reading), "token", frame)
    versions = codec_versions(asked.api_key)
    if asked.api_key == API_VERSIONS and (
        versions is None or not versions[0] <= asked.version <= versions[1]
    ):
        # KIP-511: an unknown version is answered in version 0
        asked = Asked(API_VERSIONS, 0)
    elif versions is None or not versions[0] <= asked.version <= versions[1]:
        return Heard(frame, "an answer")
    try:
        return _body(asked, frame, reading)
    except MalformedMessageError:
        return Heard(frame, "unreadable")


def _body(asked: Asked, frame: bytes, reading: Reading) -> Heard:
    key = asked.api_key or 0
    codec = response_codec(key, asked.version)
    _, offset = read_response_header(frame, response_header_is_flexible(key, codec))
    body: Any = codec.decode(frame, offset).message
    if codec.encode(body) != frame[offset:]:
        return Heard(frame, "not canonical")
    error = getattr(body, "error_code", 0)
    said = (api_name(key), str(error or ""), getattr(body, "error_message", "") or "")
    words = " ".join(word for word in said if word)
    token, lifetime_ms = b"", 0
    if key == API_VERSIONS and not error:
        return Heard(frame[:offset] + b"\0\0", words)
    if key == SASL_HANDSHAKE:
        body.mechanisms = sorted(body.mechanisms)
    elif key == SASL_AUTHENTICATE:
        token, lifetime_ms = body.auth_bytes, getattr(body, "session_lifetime", 0)
        body.auth_bytes = _token(token, reading)
    elif key == CREATE_DELEGATION_TOKEN:
        owner = f"{body.principal_type}:{body.principal_name}"
        return Heard(frame[:offset] + error.to_bytes(2), f"{words} {owner}")
    return Heard(frame[:offset] + codec.encode(body), words, token, lifetime_ms)


def _token(token: bytes, reading: Reading) -> bytes:
    if reading.mechanism.startswith("SCRAM"):
        return _scram(token, reading)
    if reading.mechanism == "GSSAPI" and token:
        return reading.open_gss(token)
    return token


def _scram(token: bytes, reading: Reading) -> bytes:
    first, final = _SERVER_FIRST.fullmatch(token), _SERVER_FINAL.fullmatch(token)
    if first is not None and first["nonce"].startswith(reading.nonce):
        salt = b"(random)" if reading.salt_is_random else first["salt"]
        return b"r=%s(random),s=%s,i=%s" % (reading.nonce, salt, first["iterations"])
    if final is not None and final["signature"] == reading.signature():
        return b"v=(the server knows the key)"
    return token
