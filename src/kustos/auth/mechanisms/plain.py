"""PLAIN (RFC 4616) for servers and clients, compatible with Kafka's PlainSaslServer.

The refusal texts are Kafka's and are sent to the client. Passwords are kept only as keyed digests, with a key
per process. A check takes one HMAC and one constant-time comparison, regardless of the lengths and of whether
the user exists.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, Protocol

from kustos.auth.errors import SaslAuthenticationError, SaslClientError
from kustos.auth.mechanisms.base import Claimant, MechanismFactory, Proven, password_bytes
from kustos.runtime import Entropy

PLAIN: Final = "PLAIN"
_USER_PREFIX: Final = "user_"
_KEY_SIZE: Final = 32
_MAX_TOKENS: Final = 4  # Kafka stops counting there


class PlainUsers:
    """User names and password digests; immutable, so a change creates a new table."""

    __slots__ = ("_decoy", "_digests", "_key")

    def __init__(self, passwords: Mapping[str, str], entropy: Entropy) -> None:
        self._key = entropy.token_bytes(_KEY_SIZE)
        self._decoy = entropy.token_bytes(_KEY_SIZE)
        self._digests = {
            user: self._digest(password.encode(errors="surrogatepass"))
            for user, password in passwords.items()
        }

    @classmethod
    def from_jaas_options(cls, options: Mapping[str, str], entropy: Entropy) -> "PlainUsers":
        """Return the table of a PlainLoginModule's `user_<name>="<password>"` options."""
        prefix = len(_USER_PREFIX)
        return cls(
            {name[prefix:]: value for name, value in options.items() if name.startswith(_USER_PREFIX)},
            entropy,
        )

    def __repr__(self) -> str:
        return f"PlainUsers(<{len(self._digests)} users>)"

    def _digest(self, password: bytes) -> bytes:
        return hmac.digest(self._key, password, hashlib.sha256)

    def verify(self, user: str, password: bytes) -> bool:
        """Return whether this is the user's password, with the same work for an unknown user."""
        expected = self._digests.get(user, self._decoy)
        return hmac.compare_digest(self._digest(password), expected)


class Passwords(Protocol):
    """The users of PLAIN."""

    def verify(self, user: str, password: bytes) -> bool:
        """Return whether this is the user's password; raise `SaslAuthenticationError`."""


class ReplaceablePlainUsers:
    """The users of a listener; a replacement of `current` also affects exchanges in progress."""

    __slots__ = ("current",)

    def __init__(self, current: PlainUsers) -> None:
        self.current = current

    def verify(self, user: str, password: bytes) -> bool:
        """Return whether this is the user's password now."""
        return self.current.verify(user, password)


class PlainServer:
    """One PLAIN exchange: one token, then the end."""

    __slots__ = ("_claimed_name", "_users")

    def __init__(self, users: Passwords) -> None:
        self._users = users
        self._claimed_name: str | None = None

    @classmethod
    def factory(cls, users: Passwords) -> MechanismFactory:
        """Return a factory of exchanges over this table, one per connection."""
        return lambda: cls(users)

    @property
    def claimed_name(self) -> str | None:
        """The user that the token names."""
        return self._claimed_name

    def claim(self, token: bytes) -> Claimant | None:
        """Return the user of this token."""
        parts = token.split(b"\0", _MAX_TOKENS)
        return Claimant(parts[1].decode(errors="replace")) if len(parts) == 3 else None

    def respond(self, token: bytes) -> Proven:
        """Return the proven user; raise `SaslAuthenticationError` with Kafka's text.

        A message without a user or a password does not count as judged, because nothing was compared.
        """
        parts = token.split(b"\0", _MAX_TOKENS)
        if len(parts) != 3:
            count = min(len(parts), _MAX_TOKENS)
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {count}"
            raise SaslAuthenticationError(text, was_judged=False)
        authorization_id, name, password = parts
        if not name:
            text = "Authentication failed: username not specified"
            raise SaslAuthenticationError(text, was_judged=False)
        # no user can have a name with invalid UTF-8; Java decodes it to replacement characters
        user = self._claimed_name = name.decode(errors="replace")
        if not password:
            text = "Authentication failed: password not specified"
            raise SaslAuthenticationError(text, was_judged=False)
        if not self._users.verify(user, password):
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != name:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Proven(b"", user)


class PlainClient:
    """The client side of PLAIN: it sends the password itself, so the link must be encrypted."""

    __slots__ = ("_complete", "_token")

    name = PLAIN

    def __init__(self, username: str, password: str) -> None:
        if not username or not password or "\0" in username + password:
            raise SaslClientError("user name and password must not be empty or contain NUL")
        self._token = b"\0".join((b"", password_bytes(username), password_bytes(password)))
        self._complete = False

    def __repr__(self) -> str:
        return "PlainClient()"

    @property
    def is_complete(self) -> bool:
        """Whether the server accepted."""
        return self._complete

    def first(self) -> bytes:
        """Return the only token."""
        return self._token

    def respond(self, token: bytes) -> None:
        """Accept the server's empty token; raise `SaslClientError` if it is not empty."""
        if token or self._complete:
            raise SaslClientError("the server continues after PLAIN has ended")
        self._complete = True
