"""What a mechanism is to the machines that carry its tokens."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kustos.auth.errors import SaslClientError


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange goes on: send this token and wait for the next."""

    token: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Proven:
    """The peer proved to be `authorization_id`; send this last token, which may be empty.

    `credential_expires_at_ms` is the wall time at which what was shown runs out, None for never.
    """

    token: bytes = field(repr=False)
    authorization_id: str
    credential_expires_at_ms: int | None = None
    token_authenticated: bool = False


MechanismStep = Challenge | Proven


class ServerMechanism(Protocol):
    """One exchange on the accepting side; used once, thrown away after `Proven` or an error."""

    def respond(self, token: bytes) -> MechanismStep:
        """Return the next step; raise `SaslAuthenticationError` (text sent) or `SaslMechanismError`."""


MechanismFactory = Callable[[], ServerMechanism]


def password_bytes(password: str) -> bytes:
    """Return the password as UTF-8; raise `SaslClientError` for half a surrogate pair, without showing it."""
    try:
        return password.encode()
    except UnicodeEncodeError:
        # Python's own error carries the whole text
        raise SaslClientError("the password is not Unicode text") from None


class ClientMechanism(Protocol):
    """One exchange on the asking side; used once."""

    @property
    def name(self) -> str:
        """The mechanism's name as in the handshake."""

    def first(self) -> bytes:
        """Return the initial token."""

    def respond(self, token: bytes) -> bytes | None:
        """Return the next token, None when the exchange is complete; raise `SaslClientError`."""

    @property
    def is_complete(self) -> bool:
        """Whether the server has proved what the mechanism asks of it."""
