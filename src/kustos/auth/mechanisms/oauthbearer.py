"""OAUTHBEARER (RFC 7628, KIP-255) as Kafka's OAuthBearerSaslServer and OAuthBearerSaslClient speak it.

A refused token does not end the exchange at once: the server answers a JSON document with the status, the
client must send the byte 1, and only then comes the refusal, with the JSON as its text. Any other message in
place of the byte 1 is read as a new initial response. The login has failed with the document, as a client
that knows it need not send the byte.

It differs from Kafka's in one point: a scheme other than `Bearer` is refused with the general sentence, while
Kafka's server fails over it and closes the connection without an answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.auth.errors import (
    AnnouncedRefusalError,
    SaslAuthenticationError,
    SaslClientError,
    SaslMechanismError,
)
from kustos.auth.mechanisms.base import (
    NOBODY,
    Challenge,
    Claimant,
    MechanismFactory,
    MechanismStep,
    ProofRefused,
    Proven,
)
from kustos.auth.mechanisms.oauthbearer_messages import InitialResponse, InitialResponseError

OAUTHBEARER: Final = "OAUTHBEARER"
INVALID_TOKEN: Final = "invalid_token"  # noqa: S105 (an error status of RFC 6750)
INSUFFICIENT_SCOPE: Final = "insufficient_scope"

_CONTROL_A: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class AcceptedToken:
    """What a valid token proves: the principal's name, the expiry (wall time), the scopes."""

    principal_name: str
    expires_at_ms: int
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RefusedToken:
    """Why a token is refused: `status` and `scope` for the client, `reason` for the log.

    `claimed_name` is the name in the token, proven by nothing; None if it could not be read. `was_judged`:
    False for text that is not a token at all, so that there was nothing to verify.
    """

    status: str
    reason: str
    scope: str | None = None
    claimed_name: str | None = None
    was_judged: bool = True

    @property
    def document(self) -> str:
        """The JSON document for the client, with Kafka's spaces."""
        scope = "" if self.scope is None else f', "scope":"{self.scope}"'
        return f'{{"status":"{self.status}"{scope}}}'


TokenValidator = Callable[[str], AcceptedToken | RefusedToken]
"""A token → what it proves, or why it is refused; answers from memory, never raises for a token's content."""


ExtensionValidator = Callable[[AcceptedToken, Mapping[str, str]], Mapping[str, str]]
"""A valid token and the SASL extensions beside it (KIP-342) → those that are not allowed, with the reason."""


def any_extensions(_token: AcceptedToken, _extensions: Mapping[str, str]) -> Mapping[str, str]:
    """Allow all extensions, as Kafka's own validators do; nothing here reads them."""
    return {}


class OAuthBearerServer:
    """One OAUTHBEARER exchange: the initial response; after a refused token, the client's byte 1."""

    __slots__ = ("_claimed_name", "_refused", "_validate", "_validate_extensions")

    def __init__(
        self, validate: TokenValidator, validate_extensions: ExtensionValidator = any_extensions
    ) -> None:
        self._validate = validate
        self._validate_extensions = validate_extensions
        self._refused: RefusedToken | None = None
        self._claimed_name: str | None = None

    @classmethod
    def factory(cls, validate: TokenValidator) -> MechanismFactory:
        """Return a factory of exchanges, one per connection."""
        return lambda: cls(validate)

    @property
    def claimed_name(self) -> str | None:
        """The authorization id of the message, else the name in the token."""
        return self._claimed_name

    def claim(self, token: bytes) -> Claimant:
        """Say that nobody's password is tried: a token that is accepted was issued, not guessed."""
        del token
        return NOBODY

    def respond(self, token: bytes) -> MechanismStep:
        """Return the proven principal, or the JSON document that says why the token is refused.

        Raise `SaslAuthenticationError` after the client's byte 1, and for an authorization id other than
        the principal, or an extension that is not allowed; `SaslMechanismError` for a malformed message.
        """
        if self._refused is not None and token == _CONTROL_A:
            raise AnnouncedRefusalError(self._refused.document, self._refused.reason)
        self._refused = None
        try:
            message = InitialResponse.parse(token)
        except InitialResponseError as error:
            raise SaslMechanismError(str(error), was_judged=False) from None
        self._claimed_name = message.authorization_id or None
        outcome = self._validate(message.token)
        if isinstance(outcome, RefusedToken):
            self._refused = outcome
            self._claimed_name = self._claimed_name or outcome.claimed_name
            return Challenge(outcome.document.encode(), ProofRefused(outcome.reason, outcome.was_judged))
        name = outcome.principal_name
        if message.authorization_id and message.authorization_id != name:
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({message.authorization_id}) "
                f"that is different from the token's principal name ({name})"
            )
        self._claimed_name = name
        invalid = self._validate_extensions(outcome, message.extensions)
        if invalid:
            reasons = "; ".join(f"{key}: {reason}" for key, reason in invalid.items())
            raise SaslAuthenticationError(
                f"Authentication failed: {len(invalid)} extensions are invalid! They are: {reasons}",
                f"extensions beside the token are not allowed: {', '.join(invalid)}",
            )
        return Proven(b"", name, outcome.expires_at_ms)


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token that we send, with its SASL extensions; neither is ever shown."""

    value: str = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class OAuthBearerClient:
    """The client side of OAUTHBEARER: it sends the token itself, so the link must be encrypted."""

    __slots__ = ("_complete", "_message", "_refused")

    name = OAUTHBEARER

    def __init__(self, token: BearerToken) -> None:
        try:
            self._message = InitialResponse(token.value, "", token.extensions).encode()
        except InitialResponseError as error:
            raise SaslClientError(str(error)) from None
        self._complete = False
        self._refused = False

    def __repr__(self) -> str:
        return "OAuthBearerClient()"

    @property
    def is_complete(self) -> bool:
        """Whether the server accepted the token."""
        return self._complete

    def first(self) -> bytes:
        """Return the initial response."""
        return self._message

    def respond(self, token: bytes) -> bytes | None:
        """Return the byte 1 after the server's error document, None after its empty token.

        Raise `SaslClientError` if the server goes on after either.
        """
        if self._complete or self._refused:
            raise SaslClientError("the server goes on after OAUTHBEARER has ended")
        if token:
            self._refused = True
            return _CONTROL_A
        self._complete = True
        return None
