"""Logins of an operator's own: some work, some hang, raise or answer nonsense, as their user's name says."""

import hmac
import os
import threading
from collections.abc import Mapping

from kustos.auth import (
    INVALID_TOKEN,
    AcceptedToken,
    Challenge,
    OAuthBearerValidatorCallbackHandler,
    PlainServerCallbackHandler,
    Proven,
    RefusedToken,
    SaslAuthenticationError,
    SaslServerExchange,
    SaslServerMechanism,
    ScramServerCallbackHandler,
)
from kustos.metadata import ScramCredential, ScramMechanism, scram_credential

FAR_AWAY_MS = 4_000_000_000_000


def misbehave(user: str, secret: str) -> object:
    """Do what the name of a user says; return an invalid answer."""
    if user == "hangs":
        threading.Event().wait()
    if user == "raises":
        raise ValueError(f"the secret is {secret}")
    if user == "exits":
        raise SystemExit(secret)
    return f"yes, {secret}"


class Passwords(PlainServerCallbackHandler):
    """Passwords are the name of the user with what the settings say behind it."""

    def configure(self, configs: Mapping[str, str], mechanism: str, options: Mapping[str, str]) -> None:
        self._ending = configs["own.ending"] + options.get("more", "")

    def authenticate(self, username: str, password: str) -> bool:
        if username in {"hangs", "raises", "exits", "babbles"}:
            return misbehave(username, password)  # type: ignore[return-value]
        return hmac.compare_digest(password.encode(), (username + self._ending).encode())


class Credentials(ScramServerCallbackHandler):
    """Knows one user, of the mechanism that it serves."""

    def configure(self, configs: Mapping[str, str], mechanism: str, options: Mapping[str, str]) -> None:
        self._mechanism = next(each for each in ScramMechanism if each.name.replace("_", "-") == mechanism)
        self._ending = configs["own.ending"]

    def credential(self, username: str) -> ScramCredential | None:
        if username != "dora":
            return None if username == "nobody" else misbehave(username, "s3cret")  # type: ignore[return-value]
        return scram_credential(self._mechanism, "dora" + self._ending, b"salt-of-dora", 4096)


class Tokens(OAuthBearerValidatorCallbackHandler):
    """A token is a name."""

    def validate(self, token: str) -> AcceptedToken | RefusedToken:
        if token in {"hangs", "raises", "exits", "babbles"}:
            return misbehave(token, "s3cret")  # type: ignore[return-value]
        if token == "erin":
            return AcceptedToken("erin", FAR_AWAY_MS)
        return RefusedToken(INVALID_TOKEN, f"the secret is {token}")


class PinExchange(SaslServerExchange):
    """The client names its user, gets a nonce, and answers with its keyed hash."""

    def __init__(self, pins: Mapping[str, str]) -> None:
        self._pins = pins
        self._nonce = os.urandom(16)

    def respond(self, token: bytes) -> Challenge | Proven:
        if self.claimed_name is None:
            self.claimed_name = token.decode()
            return Challenge(self._nonce)
        if self.claimed_name not in self._pins:
            return misbehave(self.claimed_name, "s3cret")  # type: ignore[return-value]
        expected = hmac.digest(self._pins[self.claimed_name].encode(), self._nonce, "sha256")
        if not hmac.compare_digest(token, expected):
            raise SaslAuthenticationError("the PIN is wrong")
        return Proven(b"welcome", self.claimed_name)


class Pin(SaslServerMechanism):
    """A mechanism whose users are in its login module's options."""

    def configure(self, configs: Mapping[str, str], mechanism: str, options: Mapping[str, str]) -> None:
        self._pins = dict(options)

    def exchange(self) -> PinExchange:
        return PinExchange(self._pins)
