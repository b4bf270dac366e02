"""The initial response of an OAUTHBEARER client (RFC 7628, section 3.1) as Kafka reads and writes it.

    n,[a=<authorization id>],^A(<key>=<value>^A)*^A

`^A` is the byte 1. The key `auth` holds `Bearer <token>`; other keys are SASL extensions (KIP-342). A key is
letters; a value is printable ASCII, blanks, tabs and line ends; a token has the characters of RFC 6750. As in
Kafka the authorization id stays escaped, and the last of several equal keys counts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kustos.auth.mechanisms.scram_messages import is_escaped

EXTENSIONS_MAX: Final = 64
"""The maximum number of SASL extensions in one message; clients send a few, such as a cluster's id. Kafka has
no limit."""

PAIRS_READ_MAX: Final = EXTENSIONS_MAX + 2
"""The number of parts that are read to find out whether there are more than `EXTENSIONS_MAX` besides
`auth`."""

AUTH_KEY: Final = "auth"

_SEPARATOR: Final = "\x01"
_NAME: Final = r"[\x01-\x2b\x2d-\x7f]+"
"""A name, if `is_escaped` also accepts it, as in SCRAM."""
_KEY: Final = r"[A-Za-z]+"
_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_MESSAGE: Final = re.compile(rf"n,(?:a=({_NAME}))?,\x01((?:{_KEY}={_VALUE}\x01){{0,{PAIRS_READ_MAX}}})\x01")
_AUTH: Final = re.compile(r"([A-Za-z0-9_]+) +([-_~+/.a-zA-Z0-9]+=*)")
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_EXTENSION_KEY: Final = re.compile(_KEY)
_EXTENSION_VALUE: Final = re.compile(_VALUE)


class InitialResponseError(ValueError):
    """The message is invalid; the text never contains a part of the token."""


@dataclass(frozen=True, slots=True)
class InitialResponse:
    """The client's first message. `authorization_id` is as written, empty if there is none."""

    token: str = field(repr=False)
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, data: bytes) -> "InitialResponse":
        """Return the message; raise `InitialResponseError`."""
        # as in Java, invalid UTF-8 becomes characters that no part of a message may contain
        message = _MESSAGE.fullmatch(data.decode(errors="replace"))
        if message is None or not is_escaped((message[1] or "").encode()):
            raise InitialResponseError("Invalid OAUTHBEARER client first message")
        authorization_id, text = message.groups()
        pairs = [pair.partition("=") for pair in text.split(_SEPARATOR)[:-1]]
        if len(pairs) > EXTENSIONS_MAX + 1:
            raise InitialResponseError(f"the message has more than {EXTENSIONS_MAX} extensions")
        values = {key: value for key, _, value in pairs}
        auth = values.pop(AUTH_KEY, None)
        if auth is None:
            raise InitialResponseError("Invalid OAUTHBEARER client first message: 'auth' not specified")
        bearer = _AUTH.fullmatch(auth)
        if bearer is None:
            raise InitialResponseError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
        if bearer[1].lower() != "bearer":
            raise InitialResponseError("Invalid scheme in OAUTHBEARER client first message")
        return cls(bearer[2], authorization_id or "", MappingProxyType(values))

    def encode(self) -> bytes:
        """Return the message as bytes, as Kafka's client writes it; raise `InitialResponseError`."""
        require_valid_extensions(self.extensions)
        if _TOKEN.fullmatch(self.token) is None:
            raise InitialResponseError("the token has characters that RFC 6750 does not allow")
        identity = f"a={self.authorization_id}" if self.authorization_id else ""
        pairs = {AUTH_KEY: f"Bearer {self.token}", **self.extensions}
        return "".join(
            (f"n,{identity},\x01", *(f"{key}={value}\x01" for key, value in pairs.items()), _SEPARATOR)
        ).encode()


def require_valid_extensions(extensions: Mapping[str, str]) -> None:
    """Raise `InitialResponseError` for a key or value that RFC 7628 does not allow, or for the key `auth`."""
    if len(extensions) > EXTENSIONS_MAX:
        raise InitialResponseError(f"there are more than {EXTENSIONS_MAX} extensions")
    for key, value in extensions.items():
        if key == AUTH_KEY or _EXTENSION_KEY.fullmatch(key) is None:
            raise InitialResponseError(f"Extension name {key} is invalid")
        if _EXTENSION_VALUE.fullmatch(value) is None:
            raise InitialResponseError(f"the value of the extension {key} is invalid")
