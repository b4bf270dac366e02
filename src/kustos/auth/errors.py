"""What can go wrong while an identity is being proved; nothing here ever holds a secret."""

from enum import IntEnum, unique


class AuthError(Exception):
    """The root of this room's errors."""


class SaslAuthenticationError(AuthError):
    """The login is refused and the peer is told this very text (Kafka's SaslAuthenticationException)."""


class SaslMechanismError(AuthError):
    """The login is refused; the text is for our log, the peer gets one general sentence (SaslException)."""


class SaslClientError(AuthError):
    """The other side refused us or broke the protocol; `error_code` is Kafka's, 0 if it gave none."""

    def __init__(self, text: str, error_code: int = 0) -> None:
        super().__init__(text)
        self.error_code = error_code


class JaasError(AuthError, ValueError):
    """A `sasl.jaas.config` that cannot be used; the text gives the place, never the content."""


@unique
class SaslErrorCode(IntEnum):
    """Kafka's error codes that occur while a session authenticates."""

    NONE = 0
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    SASL_AUTHENTICATION_FAILED = 58
