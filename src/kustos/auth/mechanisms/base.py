"""The interface between mechanisms and the state machines that exchange their tokens."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from kustos.auth.errors import SaslClientError


@dataclass(frozen=True, slots=True)
class ProofRefused:
    """The login is refused, but the exchange continues, and the peer may never end it.

    It counts as a failed login from now on; `reason` is for the log. `was_judged`: credentials were checked
    and are wrong.
    """

    reason: str
    was_judged: bool = True


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange continues: send this token and wait for the next.

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
    groups: tuple[str, ...] = ()
    """The groups of the peer that the credential proves."""


MechanismStep = Challenge | Proven


HASHING: Final = "hashing"
"""The group of steps with thousands of hash rounds, which unauthenticated clients may cause."""


@dataclass(frozen=True, slots=True)
class BlockingStep:
    """The step may block, so it runs outside the event loop: `run` returns the step, or raises as `respond`
    does.

    The caller calls `run` once, in any thread, and does not use the exchange until it returns. If `run`
    returns another `BlockingStep`, the caller runs that too. Third-party code runs in the threads of its own
    `group` with a time limit; after that time the login is refused, even if the step still runs. Steps of the
    group `HASHING` share one thread.
    """

    run: "Callable[[], MechanismStep | BlockingStep]" = field(repr=False)
    group: str = ""
    timeout_ms: int | None = None


class Claimant(NamedTuple):
    """The identity that a peer claims: the name of a user, or the id of a delegation token."""

    name: str
    is_token: bool = False


UNGUESSABLE: Final = Claimant("")
"""The claimant of credentials that cannot be guessed: tokens with a signature or enough entropy (RFC 6749,
section 10.10), and tickets, which are encrypted with random keys (RFC 4120)."""


class ServerMechanism(Protocol):
    """One exchange on the server side; used once, discarded after `Proven` or an error."""

    @property
    def claimed_name(self) -> str | None:
        """The name that the peer claims (a user, a token's id), proven or not; None before it claims one."""

    def claim(self, token: bytes) -> Claimant | None:
        """Return whose password the next token tries, without checking it; None if this is unknown.

        `UNGUESSABLE` if the token tries no password.
        """

    def respond(self, token: bytes) -> MechanismStep | BlockingStep:
        """Return the next step; raise `SaslAuthenticationError` (text is sent) or `SaslMechanismError`."""


MechanismFactory = Callable[[], ServerMechanism]


def password_bytes(password: str) -> bytes:
    """Return the password as UTF-8; raise `SaslClientError`, without its text, for a lone surrogate."""
    try:
        return password.encode()
    except UnicodeEncodeError:
        # Python's own error contains the whole text
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
