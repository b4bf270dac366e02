"""Third-party code in a login: mechanisms and callback handlers, which may block, raise or return invalid
values.

Each step runs outside the event loop, with a time limit that the gateway enforces, and its result is
validated before use. Any failure refuses the login. The log names the type of an exception, never its text,
which may contain bytes of the peer.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kustos.auth.errors import REFUSAL_MAX_CHARACTERS, CallbackError, SaslAuthenticationError
from kustos.auth.mechanisms.base import (
    BlockingStep,
    Challenge,
    Claimant,
    MechanismFactory,
    MechanismStep,
    Proven,
    ServerMechanism,
)

TOKEN_MAX_BYTES: Final = 524_288
"""The longest token of a custom mechanism: as long as a client may send (KIP-938)."""

NAME_MAX_CHARACTERS: Final = 32_767
"""The longest name that Kafka's messages allow."""

INT64_MAX: Final = 2**63 - 1


class AuthenticateCallbackHandler(ABC):  # noqa: B024 - what it must answer is for its subclasses to say
    """The base class of custom handlers and mechanisms. One object serves one listener of a process.

    It is created without arguments, then configured. Several threads call it at the same time.
    """

    def configure(  # noqa: B027 - most need no settings
        self, configs: Mapping[str, str], mechanism: str, options: Mapping[str, str]
    ) -> None:
        """Receive the node's settings, and the options of the mechanism's `sasl.jaas.config`.

        This is called once, before other calls. An exception prevents the start of the node.
        """

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release all resources; there are no more logins."""


class SaslServerExchange(ABC):
    """The server's side of one login, step by step; only one thread at a time calls it."""

    claimed_name: str | None = None
    """The name that the client claims, proven or not, for the audit log."""

    @abstractmethod
    def respond(self, token: bytes) -> MechanismStep:
        """Return `Challenge(token)` to go on, or `Proven(token, name)` at the end.

        Raise `SaslAuthenticationError` to refuse the client with its text, or any other exception to refuse
        it with a general text. The former counts as a guess, unless it says `was_judged=False`.
        """


class SaslServerMechanism(AuthenticateCallbackHandler):
    """A custom SASL mechanism."""

    @abstractmethod
    def exchange(self) -> SaslServerExchange:
        """Return the server's side of a new login."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Third-party code runs in the threads of its own `group`, for at most `timeout_ms`."""

    group: str
    timeout_ms: int


class CallbackServer:
    """A mechanism of kustos whose steps call a callback handler, so each step runs outside the event loop."""

    __slots__ = ("_around", "_inner")

    def __init__(self, inner: ServerMechanism, around: Surroundings) -> None:
        self._inner = inner
        self._around = around

    @classmethod
    def factory(cls, make: MechanismFactory, around: Surroundings) -> MechanismFactory:
        """Return a factory of exchanges, one per login."""
        return lambda: cls(make(), around)

    @property
    def claimed_name(self) -> str | None:
        """The name that the client claims."""
        return self._inner.claimed_name

    def claim(self, token: bytes) -> Claimant | None:
        """Return the claimant in the token, as the mechanism of kustos reads it."""
        return self._inner.claim(token)

    def respond(self, token: bytes) -> BlockingStep:
        """Return the blocking step; it may return another one that must run in another group."""
        return BlockingStep(lambda: self._inner.respond(token), self._around.group, self._around.timeout_ms)


class CustomServer:
    """One login by a custom mechanism."""

    __slots__ = ("_around", "_claimed_name", "_exchange", "_mechanism")

    def __init__(self, mechanism: SaslServerMechanism, around: Surroundings) -> None:
        self._mechanism = mechanism
        self._around = around
        self._exchange: SaslServerExchange | None = None
        self._claimed_name: str | None = None

    @classmethod
    def factory(cls, mechanism: SaslServerMechanism, around: Surroundings) -> MechanismFactory:
        """Return a factory of exchanges, one per login."""
        return lambda: cls(mechanism, around)

    @property
    def claimed_name(self) -> str | None:
        """The name that the client claims according to the exchange, None if that is not a usable name."""
        return self._claimed_name

    def claim(self, token: bytes) -> None:
        """Return None: only the mechanism can read its tokens."""

    def respond(self, token: bytes) -> BlockingStep:
        """Return the blocking step."""
        return BlockingStep(lambda: self._step(token), self._around.group, self._around.timeout_ms)

    def _step(self, token: bytes) -> MechanismStep:
        if self._exchange is None:
            made: object = called("the mechanism", self._mechanism.exchange)
            if not isinstance(made, SaslServerExchange):
                raise nonsense("the mechanism", made)
            self._exchange = made
        exchange = self._exchange
        try:
            return checked_step(called("the mechanism", lambda: exchange.respond(token)))
        finally:
            # it may be a property, so it is read here and not on the event loop
            with suppress(Exception):
                claimed: object = exchange.claimed_name
                self._claimed_name = claimed if type(claimed) is str and is_name(claimed) else None


def called(whose: str, call: Callable[[], object]) -> object:
    """Return the result of third-party code; raise `CallbackError` for its exceptions other than refusals."""
    try:
        return call()
    except SaslAuthenticationError as error:
        # the log does not repeat the text of third-party code, which may quote the client a custom class may
        # lack the attribute, or have any value in it
        was_judged = getattr(error, "was_judged", True) is not False
        text, reason = _text_of(error), f"{whose} refused the login"
        raise SaslAuthenticationError(text, reason, was_judged=was_judged) from None
    except Exception as error:  # noqa: BLE001 - whatever foreign code raises must deny
        raise CallbackError(f"{whose} raised {type(error).__name__}") from None


def _text_of(error: Exception) -> str:
    """Return the text of a refusal if a message can contain it, else an empty text."""
    try:
        text = str(error)[:REFUSAL_MAX_CHARACTERS]
        text.encode()
    except Exception:  # noqa: BLE001 - of a custom class
        return ""
    return text


def nonsense(whose: str, answer: object) -> CallbackError:
    """Return the error for an invalid answer, without the answer."""
    return CallbackError(f"{whose} returned an invalid answer, a `{type(answer).__name__}`")


def checked_step(step: object) -> MechanismStep:
    """Return a mechanism's step, validated; raise `CallbackError`. Only kustos knows delegation tokens."""
    # a subclass could change after the check
    if type(step) is Challenge and _is_token(step.token):
        return Challenge(step.token)
    if type(step) is Proven and _is_token(step.token) and is_name(step.authorization_id):
        expires_at_ms = step.credential_expires_at_ms
        if expires_at_ms is None or is_time(expires_at_ms):
            return Proven(step.token, step.authorization_id, expires_at_ms)
    raise nonsense("the mechanism", step)


def _is_token(found: object) -> bool:
    return type(found) is bytes and len(found) <= TOKEN_MAX_BYTES


def is_name(found: object) -> bool:
    """Return whether it can be the name of a user."""
    return type(found) is str and 0 < len(found) <= NAME_MAX_CHARACTERS and _is_unicode(found)


def is_time(found: object) -> bool:
    """Return whether it can be a wall time in milliseconds."""
    return type(found) is int and 0 <= found <= INT64_MAX


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
