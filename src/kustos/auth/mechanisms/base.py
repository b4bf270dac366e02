"""The interface of a mechanism to the machines that carry its tokens."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from kustos.auth.errors import SaslClientError


@dataclass(frozen=True, slots=True)
class ProofRefused:
    """The login is refused, but the exchange goes on, and the peer may never end it.

    It is a failed login from now on; `reason` is for the log. `was_judged`: credentials were checked and are
    wrong.
    """

    reason: str
    was_judged: bool = True


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange goes on: send this token and wait for the next.

    `refusal`: set if the token tells the peer that the login is refused.
    """

    token: bytes = field(repr=False)
    refusal: ProofRefused | None = None


@dataclass(frozen=True, slots=True)
class Proven:
    """The peer proved to be `authorization_id`; send this last token, which may be empty.

    `credential_expires_at_ms` is the wall time at which the credential expires, None for never.
    """

    token: bytes = field(repr=False)
    authorization_id: str
    credential_expires_at_ms: int | None = None
    token_authenticated: bool = False
    has_last_token: bool = True
    """False: the client does not wait for one, so after a SaslHandshake of version 0 nothing is sent."""


MechanismStep = Challenge | Proven


HASHING: Final = "hashing"
"""The group of steps that take thousands of hash rounds, which strangers may cause."""


@dataclass(frozen=True, slots=True)
class BlockingStep:
    """The step may block, so it runs off the event loop: `run` returns it, or raises as `respond` does.

    It is called once, in any thread; the exchange is left alone until it returned, or returned another one,
    which is run likewise. Third-party code has threads
    of its own `group` and a time limit; the login is refused at its end, even if the step still runs. Steps
    of the group `HASHING` share one thread.
    """

    run: "Callable[[], MechanismStep | BlockingStep]" = field(repr=False)
    group: str = ""
    timeout_ms: int | None = None


class Claimant(NamedTuple):
    """As whom a peer wants to log in: the name of a user, or the id of a delegation token."""

    name: str
    is_token: bool = False


NOBODY: Final = Claimant("")
"""Who is claimed by what nobody finds by trying: tokens with a signature or enough chance (RFC 6749, section
10.10), and tickets, which are encrypted under keys of chance (RFC 4120)."""


class ServerMechanism(Protocol):
    """One exchange on the server side; used once, discarded after `Proven` or an error."""

    @property
    def claimed_name(self) -> str | None:
        """The name that the peer claims (a user, a token's id), proven or not; None before it claims one."""

    def claim(self, token: bytes) -> Claimant | None:
        """Return whose password the next token tries, and judge nothing; None if that cannot be told.

        `NOBODY` if it tries none.
        """

    def respond(self, token: bytes) -> MechanismStep | BlockingStep:
        """Return the next step; raise `SaslAuthenticationError` (text is sent) or `SaslMechanismError`."""


MechanismFactory = Callable[[], ServerMechanism]


def password_bytes(password: str) -> bytes:
    """Return the password as UTF-8; raise `SaslClientError`, without its text, for a lone surrogate."""
    try:
        return password.encode()
    except UnicodeEncodeError:
        # Python's own error holds the whole text
        raise SaslClientError("the password is not Unicode text") from None


class ClientMechanism(Protocol):
    """One exchange on the client side; used once."""

    @property
    def name(self) -> str:
        """The mechanism's name in the handshake."""

    def first(self) -> bytes:
        """Return the initial token."""

    def respond(self, token: bytes) -> bytes | None:
        """Return the next token, None when the exchange is complete; raise `SaslClientError`."""

    @property
    def is_complete(self) -> bool:
        """Whether the server has proved what the mechanism requires."""
