"""OAUTHBEARER (RFC 7628, KIP-255), compatible with Kafka's OAuthBearerSaslServer and OAuthBearerSaslClient.

A refused token does not end the exchange at once: the server answers with a JSON document that has the
status, the client must send the byte 1, and then the server sends the refusal with the JSON as its text. Any
other message instead of the byte 1 is read as a new initial response. The login counts as failed when the
document is sent, because a client may omit the byte.

One difference from Kafka: a scheme other than `Bearer` is refused with the general message, while Kafka's
server throws an exception and closes the connection without an answer.
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
    UNGUESSABLE,
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
    """A valid token: the principal's name, the expiry (wall time), the scopes, the groups of the client."""

    principal_name: str
    expires_at_ms: int
    scopes: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedToken:
    """A refused token: `status` and `scope` for the client, `reason` for the log.

    `claimed_name` is the unproven name in the token, None if it could not be read. `was_judged`: False if the
    text is not a token, so there was nothing to verify.
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
"""A token → accepted or refused; it does no IO and never raises for the content of a token."""


ExtensionValidator = Callable[[AcceptedToken, Mapping[str, str]], Mapping[str, str]]
"""A valid token and its SASL extensions (KIP-342) → the extensions that are not allowed, with the reason."""


def any_extensions(_token: AcceptedToken, _extensions: Mapping[str, str]) -> Mapping[str, str]:
    """Allow all extensions, as Kafka's own validators do; kustos does not use them."""
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
        """Return `UNGUESSABLE`: an accepted token was issued, not guessed."""
        del token
        return UNGUESSABLE

    def respond(self, token: bytes) -> MechanismStep:
        """Return the proven principal, or the JSON document with the reason of the refusal.

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
                f"extensions are not allowed for this token: {', '.join(invalid)}",
            )
        return Proven(b"", name, outcome.expires_at_ms, groups=outcome.groups)


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token for a login of kustos, with its SASL extensions; `repr` shows neither."""

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

        Raise `SaslClientError` if the server continues after either.
        """
        if self._complete or self._refused:
            raise SaslClientError("the server continues after OAUTHBEARER has ended")
        if token:
            self._refused = True
            return _CONTROL_A
        self._complete = True
        return None
