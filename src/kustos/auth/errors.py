"""Errors of authentication; none of them ever holds a secret."""

from enum import IntEnum, unique
from typing import Final

REFUSAL_MAX_CHARACTERS: Final = 1_000
"""How much of a refusal is sent and logged: some quote what the peer sent, half a megabyte of it."""


class AuthError(Exception):
    """The base class of this package's errors."""


class SaslAuthenticationError(AuthError):
    """The login is refused and this text is sent to the peer (Kafka's SaslAuthenticationException).

    `reason` is for our log; without it the text is. `was_judged`: credentials were checked and are wrong, so
    the failure may be a guess and counts against the client's network. False for a message without
    credentials, such as a malformed one.
    """

    def __init__(self, text: str, reason: str | None = None, *, was_judged: bool = True) -> None:
        super().__init__(text)
        self.reason = text if reason is None else reason
        self.was_judged = was_judged


class AnnouncedRefusalError(SaslAuthenticationError):
    """The end of an exchange whose `Challenge` has announced the refusal, which was counted then."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason, was_judged=False)


class SaslMechanismError(AuthError):
    """The login is refused; the text is for our log, the peer gets a general sentence (SaslException).

    `was_judged` means what it does in `SaslAuthenticationError`.
    """

    def __init__(self, text: str, *, was_judged: bool = True) -> None:
        super().__init__(text)
        self.was_judged = was_judged


class CallbackError(SaslMechanismError):
    """A custom callback handler or mechanism failed: the credentials were not checked."""

    def __init__(self, text: str) -> None:
        super().__init__(text, was_judged=False)

    @property
    def reason(self) -> str:
        """The text, for our log."""
        return str(self)


class UnverifiedCredentialsError(SaslAuthenticationError):
    """The store of PLAIN's users failed; the text for the peer is Kafka's."""

    def __init__(self, reason: str) -> None:
        text = "Authentication failed: credentials for user could not be verified"
        super().__init__(text, reason, was_judged=False)


class SaslClientError(AuthError):
    """The other side refused us or broke the protocol; `error_code` is Kafka's, 0 if it gave none."""

    def __init__(self, text: str, error_code: int = 0) -> None:
        super().__init__(text)
        self.error_code = error_code


class JaasError(AuthError, ValueError):
    """An invalid `sasl.jaas.config`; the text gives the place, never the content."""


class MappingRuleError(AuthError, ValueError):
    """A rule that maps names of principals is invalid; the node does not start with it."""


class NoMatchingRuleError(AuthError):
    """No rule gives this name a user: the connection must be closed."""


class CredentialsError(AuthError):
    """The node has no usable credentials of its own for a mechanism."""


class PrincipalBuilderError(SaslMechanismError):
    """There is no principal for a peer that proved who it is, by SASL or TLS: it is turned away."""

    def __init__(self, text: str) -> None:
        super().__init__(text, was_judged=False)


@unique
class SaslErrorCode(IntEnum):
    """Kafka's error codes that occur while a session authenticates."""

    NONE = 0
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    SASL_AUTHENTICATION_FAILED = 58
