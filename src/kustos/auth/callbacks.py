"""Callback handlers: custom sources of credentials for PLAIN, SCRAM and OAUTHBEARER.

Kafka's handlers get a list of callbacks; here each mechanism has its own interface with one method. kustos
validates the result of a handler, and an exception refuses the login.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Final, TypeVar

from kustos.auth.errors import CallbackError, UnverifiedCredentialsError
from kustos.auth.groups import GroupError, checked_groups
from kustos.auth.mechanisms.custom import (
    AuthenticateCallbackHandler,
    called,
    is_name,
    is_time,
    nonsense,
)
from kustos.auth.mechanisms.oauthbearer import AcceptedToken, RefusedToken
from kustos.auth.mechanisms.scram_keys import MIN_ITERATIONS, ScramHash, ServerCredential

MAX_ITERATIONS: Final = 16_384
"""The maximum number of iterations of a credential, as in Kafka: the client computes them."""

SALT_MAX_BYTES: Final = 1_024
"""The longest salt, which any client may request."""

THE_HANDLER: Final = "the callback handler"
_STATUS: Final = re.compile(r"[a-z_]{1,64}")
_SCOPE: Final = re.compile(r"[!#-\[\]-~ ]{0,1024}")
"""The characters of RFC 6749, section 3.3; none of them ends a string in JSON."""

_REASON: Final = re.compile(r"[ -~]{0,200}")
"""A reason that is sent to the client."""

Handler = TypeVar("Handler", bound=AuthenticateCallbackHandler)


class PlainServerCallbackHandler(AuthenticateCallbackHandler):
    """Checks passwords for PLAIN."""

    @abstractmethod
    def authenticate(self, username: str, password: str) -> bool:
        """Return True or False; compare in constant time, and take the same time for unknown users."""


class ScramServerCallbackHandler(AuthenticateCallbackHandler):
    """Finds the credentials of users, for the SCRAM mechanism that it is configured with."""

    @abstractmethod
    def credential(self, username: str) -> ServerCredential | None:
        """Return salt, keys and iterations, such as a `kustos.metadata.ScramCredential`.

        None if there is no such user: kustos then continues with a decoy of 4096 iterations and a salt like
        those of Kafka's tools. If your users have other iterations or salts, clients can find out which users
        exist.
        """


class OAuthBearerValidatorCallbackHandler(AuthenticateCallbackHandler):
    """Judges bearer tokens, for OAUTHBEARER."""

    @abstractmethod
    def validate(self, token: str) -> AcceptedToken | RefusedToken:
        """Return what the token proves, or why it is refused (`INVALID_TOKEN`, `INSUFFICIENT_SCOPE`)."""

    def invalid_extensions(self, token: AcceptedToken, extensions: Mapping[str, str]) -> Mapping[str, str]:
        """Return the SASL extensions that are not allowed with this token, each with the reason.

        The login is refused if there are any. The client gets names and reasons (KIP-342).
        """
        del token, extensions
        return {}


class HandlerPasswords:
    """A callback handler as the users of PLAIN."""

    def __init__(self, handler: PlainServerCallbackHandler) -> None:
        self._handler: Final = handler

    def verify(self, user: str, password: bytes) -> bool:
        """Return whether this is the user's password; raise `UnverifiedCredentialsError`."""
        try:
            text = password.decode()
        except UnicodeDecodeError:
            return False
        try:
            answer = called(THE_HANDLER, lambda: self._handler.authenticate(user, text))
            if answer is not True and answer is not False:
                raise nonsense(THE_HANDLER, answer)
        except CallbackError as error:
            raise UnverifiedCredentialsError(error.reason) from None
        return answer


class HandlerCredentials:
    """A callback handler as the users of SCRAM."""

    def __init__(self, handler: ScramServerCallbackHandler) -> None:
        self._handler: Final = handler

    def __call__(self, user: str, scram_hash: ScramHash) -> ServerCredential | None:
        """Return the credential of a user, None if there is none; raise `CallbackError`."""
        answer = called(THE_HANDLER, lambda: self._handler.credential(user))
        return None if answer is None else _checked_credential(answer, scram_hash)


def _checked_credential(answer: object, scram_hash: ScramHash) -> ServerCredential:
    try:
        found = _CheckedCredential(answer)
    except Exception:  # noqa: BLE001 - foreign attributes may raise whatever they like
        raise nonsense(THE_HANDLER, answer) from None
    keys = (found.stored_key, found.server_key)
    if (
        all(type(key) is bytes and len(key) == scram_hash.size for key in keys)
        and type(found.salt) is bytes
        and 0 < len(found.salt) <= SALT_MAX_BYTES
        and type(found.iterations) is int
        and MIN_ITERATIONS <= found.iterations <= MAX_ITERATIONS
    ):
        return found
    raise nonsense(THE_HANDLER, answer)


class _CheckedCredential:
    """A copy of a credential, so that it cannot change after the check."""

    __slots__ = ("iterations", "salt", "server_key", "stored_key")

    def __init__(self, found: object) -> None:
        self.salt: Final[bytes] = getattr(found, "salt")  # noqa: B009 - of an unknown class
        self.stored_key: Final[bytes] = getattr(found, "stored_key")  # noqa: B009
        self.server_key: Final[bytes] = getattr(found, "server_key")  # noqa: B009
        self.iterations: Final[int] = getattr(found, "iterations")  # noqa: B009


class HandlerTokens:
    """A callback handler as the validator of OAUTHBEARER."""

    def __init__(self, handler: OAuthBearerValidatorCallbackHandler) -> None:
        self._handler: Final = handler

    def __call__(self, token: str) -> AcceptedToken | RefusedToken:
        """Return what the handler says, validated; raise `CallbackError`."""
        answer = called(THE_HANDLER, lambda: self._handler.validate(token))
        if type(answer) is AcceptedToken and is_name(answer.principal_name) and is_time(answer.expires_at_ms):
            try:
                groups = checked_groups(answer.groups)
            except GroupError as error:
                raise CallbackError(f"{THE_HANDLER} returned groups that cannot be used: {error}") from None
            return AcceptedToken(answer.principal_name, answer.expires_at_ms, groups=groups)
        if (
            type(answer) is RefusedToken
            and _is_text(answer.status, _STATUS)
            and (answer.scope is None or _is_text(answer.scope, _SCOPE))
        ):
            claimed = answer.claimed_name if is_name(answer.claimed_name) else None
            reason, was_judged = f"{THE_HANDLER} refused the token", answer.was_judged is not False
            return RefusedToken(answer.status, reason, answer.scope, claimed, was_judged)
        raise nonsense(THE_HANDLER, answer)


class HandlerExtensions:
    """A callback handler as the validator of SASL extensions."""

    def __init__(self, handler: OAuthBearerValidatorCallbackHandler) -> None:
        self._handler: Final = handler

    def __call__(self, token: AcceptedToken, extensions: Mapping[str, str]) -> Mapping[str, str]:
        """Return the extensions that the handler does not allow; raise `CallbackError`."""
        answer = called(THE_HANDLER, lambda: self._handler.invalid_extensions(token, extensions))
        if type(answer) is dict and all(
            name in extensions and _is_text(reason, _REASON) for name, reason in answer.items()
        ):
            return answer
        raise nonsense(THE_HANDLER, answer)


def _is_text(found: object, pattern: re.Pattern[str]) -> bool:
    return type(found) is str and pattern.fullmatch(found) is not None


def configured_handler(
    handler_class: type[Handler], configs: Mapping[str, str], mechanism: str, options: Mapping[str, str]
) -> Handler:
    """Return a new handler, configured; raise `CallbackError` if that fails."""
    try:
        handler = handler_class()
        handler.configure(configs, mechanism, options)
    except Exception as error:  # noqa: BLE001 - whatever it raises keeps the node from starting
        # only the type: the options of a login module may be secrets
        raise CallbackError(
            f"`{handler_class.__name__}` for `{mechanism}` cannot be configured: it raised "
            f"{type(error).__name__}"
        ) from None
    return handler
