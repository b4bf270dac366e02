"""Errors of authentication. They never contain a secret."""

from enum import IntEnum, unique
from typing import Final

REFUSAL_MAX_CHARACTERS: Final = 1_000
"""The maximum length of a refusal that is sent and logged: some quote half a megabyte from the peer."""


class AuthError(Exception):
    """The base class of this package's errors."""


class SaslAuthenticationError(AuthError):
    """The login is refused and this text is sent to the peer (Kafka's SaslAuthenticationException).

    `reason` is for the log; it defaults to the text. `was_judged`: credentials were checked and are wrong, so
    the failure may be a guess and counts against the client's network. False for a message without
    credentials, such as a malformed one.
    """

    def __init__(self, text: str, reason: str | None = None, *, was_judged: bool = True) -> None:
        super().__init__(text)
        self.reason = text if reason is None else reason
        self.was_judged = was_judged


class AnnouncedRefusalError(SaslAuthenticationError):
    """The end of an exchange whose `Challenge` announced the refusal, which was counted at that time."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason, was_judged=False)


class SaslMechanismError(AuthError):
    """The login is refused; the text is for the log, the peer gets a general message (SaslException).

    `was_judged` has the same meaning as in `SaslAuthenticationError`.
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
        """The text for the log."""
        return str(self)


class UnverifiedCredentialsError(SaslAuthenticationError):
    """The user store of PLAIN failed; the peer gets Kafka's text."""

    def __init__(self, reason: str) -> None:
        text = "Authentication failed: credentials for user could not be verified"
        super().__init__(text, reason, was_judged=False)


class SaslClientError(AuthError):
    """The server refused the login or violated the protocol; `error_code` is Kafka's, 0 if there is none."""

    def __init__(self, text: str, error_code: int = 0) -> None:
        super().__init__(text)
        self.error_code = error_code


class JaasError(AuthError, ValueError):
    """An invalid `sasl.jaas.config`; the text gives the place, never the content."""


class MappingRuleError(AuthError, ValueError):
    """A rule that maps names of principals is invalid; the node does not start with it."""


class NoMatchingRuleError(AuthError):
    """No rule maps this name to a user: the connection must be closed."""


class CredentialsError(AuthError):
    """The node itself has no usable credentials for a mechanism."""


class PrincipalBuilderError(SaslMechanismError):
    """A peer authenticated by SASL or TLS but has no principal, so the connection is refused."""

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
