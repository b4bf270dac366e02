"""SCRAM-SHA-256 and -512 (RFC 5802, RFC 7677), compatible with Kafka's ScramSaslServer and ScramSaslClient.

One difference from Kafka is deliberate: in Kafka, an unknown user fails at the first token and a wrong
password at the second, which reveals which users exist. Here, a user without a credential for the mechanism
gets a decoy, and fails at the same step, after the same time and with the same text as a wrong password. The
same is true for a credential below 4096 iterations and for an unknown delegation token (KIP-48).

The credential of a delegation token is computed, not stored. When it is known, a correct proof is accepted at
once. Any other proof costs the hash rounds of one credential before it is refused, whether the token is in
use, unused or unknown. So the time of a refusal reveals nothing, only a complete exchange costs hashing, and
it counts as a failed login of the client's network.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kustos.auth.errors import SaslAuthenticationError, SaslClientError, SaslMechanismError
from kustos.auth.mechanisms.base import (
    HASHING,
    BlockingStep,
    Challenge,
    Claimant,
    MechanismFactory,
    MechanismStep,
    Proven,
    password_bytes,
)
from kustos.auth.mechanisms.scram_decoys import ScramDecoys
from kustos.auth.mechanisms.scram_keys import (
    MIN_ITERATIONS,
    ScramHash,
    ServerCredential,
    auth_message,
    exclusive_or,
)
from kustos.auth.mechanisms.scram_messages import (
    ClientFinal,
    ClientFirst,
    ScramSyntaxError,
    ServerFinal,
    ServerFirst,
    escape_name,
    in_base64,
)
from kustos.runtime import Entropy, random_nonce

CredentialLookup = Callable[[str, ScramHash], ServerCredential | None]
"""(user name, mechanism) → the current credential, None if there is none; without IO."""


class OwnedToken(NamedTuple):
    """An existing delegation token: its owner and its expiry (wall time)."""

    owner_name: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A delegation token at login.

    `known` is its credential if that was computed before, else a credential that no proof matches; both have
    the salt that clients see. `compute` always returns the credential, after 4096 hash rounds. `find` returns
    the current token, None if there is none.
    """

    known: ServerCredential = field(repr=False)
    compute: Callable[[], ServerCredential] = field(repr=False)
    find: Callable[[], OwnedToken | None] = field(repr=False)


TokenLookup = Callable[[str, ScramHash], TokenLogin]
"""(token id, mechanism) → the token, without IO, after the same work whether or not it exists."""

TOKEN_ID_MAX_CHARACTERS: Final = 64
"""Ids of Kafka and kustos have 22 characters; no credential is computed or cached for a longer one."""

MAX_CLIENT_ITERATIONS: Final = 1_000_000
"""The maximum number of iterations that a client computes for an unauthenticated server; Kafka stores up to
16384."""


def scram_login_obstacle(username: str) -> str | None:
    """Return why SCRAM refuses this user name, or None if it accepts the name.

    Kafka stores a credential for every name, but reads only ASCII in a client's first message
    (`ScramMessages.SASLNAME`), and fails each request of a user named `*`.
    """
    if not username.isascii() or "\0" in username:
        return "Kafka's SCRAM takes only ASCII characters other than NUL in a user name"
    return "`User:*` means everybody in ACLs" if username == "*" else None


class ScramServer:
    """One SCRAM exchange: client-first message, client-final message, end."""

    __slots__ = (
        "_bare",
        "_credential",
        "_decoys",
        "_entropy",
        "_first",
        "_hash",
        "_is_real",
        "_lookup",
        "_sent",
        "_token",
        "_tokens",
        "_username",
    )

    def __init__(
        self,
        scram_hash: ScramHash,
        lookup: CredentialLookup,
        decoys: ScramDecoys,
        entropy: Entropy,
        tokens: TokenLookup | None = None,
    ) -> None:
        self._hash = scram_hash
        self._lookup = lookup
        self._tokens = tokens
        self._decoys = decoys
        self._entropy = entropy
        self._first: ServerFirst | None = None
        self._sent = b""
        self._credential: ServerCredential | None = None
        self._is_real = False
        self._token: TokenLogin | None = None
        self._bare = b""
        self._username = ""

    @classmethod
    def factory(
        cls,
        scram_hash: ScramHash,
        lookup: CredentialLookup,
        decoys: ScramDecoys,
        entropy: Entropy,
        tokens: TokenLookup | None = None,
    ) -> MechanismFactory:
        """Return a factory of exchanges, one per connection; without `tokens` no token can log in."""
        return lambda: cls(scram_hash, lookup, decoys, entropy, tokens)

    @property
    def claimed_name(self) -> str | None:
        """The user or token id in the client's first message."""
        return self._username or None

    def claim(self, token: bytes) -> Claimant | None:
        """Return the user or token of the client's first message."""
        if self._first is not None:
            return Claimant(self._username, self._token is not None)
        try:
            message = ClientFirst.parse(token)
        except ScramSyntaxError:
            return None
        return Claimant(message.username, message.is_token)

    def respond(self, token: bytes) -> MechanismStep | BlockingStep:
        """Return the challenge, then the proven user; for a delegation token, a blocking step may hash first.

        Raise `SaslMechanismError` if Kafka answers with its general message, and `SaslAuthenticationError`
        for an authorization id other than the user. Only a proof counts as judged: a client that stops
        earlier has learned only the salt and the iterations, which may be a decoy's.
        """
        try:
            if self._first is None or self._credential is None:
                return self._begin(token)
            message = self._read_final(token, self._first)
            if self._token is not None:
                return self._finish_token(message, self._token)
            return self._finish(message, self._credential)
        except ScramSyntaxError as error:
            raise SaslMechanismError(str(error), was_judged=False) from None

    def _begin(self, token: bytes) -> Challenge:
        message = ClientFirst.parse(token)
        name, tokens, is_token = message.username, self._tokens, message.is_token
        self._username = name
        if is_token and tokens is not None and len(name) <= TOKEN_ID_MAX_CHARACTERS:
            self._token = login = tokens(name, self._hash)
            return self._challenge(message, login.known)
        # both are always computed, so that the timing does not reveal which one is used
        decoy = self._decoys.credential(self._hash, name, is_token=is_token)
        found = None if is_token else self._lookup(name, self._hash)
        self._is_real = found is not None and found.iterations >= MIN_ITERATIONS
        return self._challenge(message, found if found is not None and self._is_real else decoy)

    def _challenge(self, message: ClientFirst, credential: ServerCredential) -> Challenge:
        if message.authorization_id and message.authorization_id != message.username:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username",
                was_judged=False,
            )
        nonce = message.nonce + random_nonce(self._entropy)
        self._first = ServerFirst(nonce, credential.salt, credential.iterations)
        self._sent = self._first.encode()
        self._credential = credential
        self._bare = message.bare
        return Challenge(self._sent)

    def _read_final(self, token: bytes, first: ServerFirst) -> ClientFinal:
        message = ClientFinal.parse(token)
        if not hmac.compare_digest(message.nonce, first.nonce):
            text = "the nonce of the client's final message is not the server's"
            raise SaslMechanismError(text, was_judged=False)
        return message

    def _finish_token(self, message: ClientFinal, login: TokenLogin) -> Proven | BlockingStep:
        """Accept a proof that matches the known credential; otherwise hash before any other answer."""
        try:
            return self._finish(message, login.known)
        except SaslMechanismError:
            return BlockingStep(lambda: self._finish(message, login.compute()), HASHING)

    def _finish(self, message: ClientFinal, credential: ServerCredential) -> Proven:
        signed = auth_message(self._bare, self._sent, message.without_proof)
        signature = self._hash.hmac(credential.stored_key, signed)
        right_size = len(message.proof) == self._hash.size
        proof = message.proof if right_size else bytes(self._hash.size)
        stored_key = self._hash.digest(exclusive_or(signature, proof))
        proven = hmac.compare_digest(stored_key, credential.stored_key)
        server_signature = self._hash.hmac(credential.server_key, signed)
        if not (proven and right_size):
            raise SaslMechanismError("invalid client credentials")
        return self._admit(ServerFinal(None, server_signature).encode())

    def _admit(self, last: bytes) -> Proven:
        """Return the user who proved the credential; raise `SaslMechanismError` if it was removed.

        The client chooses when it answers the challenge. If the credential was removed since then, an
        administrator has received the answer to that change, so the login must fail. No proof matches a
        decoy's keys; if one did, this check would still refuse it.
        """
        if self._token is not None:
            token = self._token.find()
            if token is not None:
                return Proven(last, token.owner_name, token.expires_at_ms, token_authenticated=True)
        elif self._is_real:
            found = self._lookup(self._username, self._hash)
            if found is self._credential or found == self._credential:
                return Proven(last, self._username)
        raise SaslMechanismError("invalid client credentials")


class ScramClient:
    """The client side of SCRAM; the server must also prove that it knows the password.

    `token_authenticated`: name and password are the id and HMAC of a delegation token (KIP-48).
    """

    __slots__ = ("_bare", "_complete", "_expected", "_hash", "_nonce", "_password", "_username", "_via_token")

    def __init__(
        self,
        scram_hash: ScramHash,
        username: str,
        password: str,
        entropy: Entropy,
        token_authenticated: bool = False,
    ) -> None:
        if not username or not username.isascii() or "\0" in username:
            # Kafka's server accepts no other characters in a SCRAM user name
            raise SaslClientError("a SCRAM user name must be ASCII and not empty")
        self._hash = scram_hash
        self._username = username
        self._password = password_bytes(password)
        self._via_token = token_authenticated
        self._nonce = random_nonce(entropy)
        self._bare = b""
        self._expected: bytes | None = None
        self._complete = False

    def __repr__(self) -> str:
        return f"ScramClient({self.name})"

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self._hash.mechanism_name

    @property
    def is_complete(self) -> bool:
        """Whether the server's signature was verified."""
        return self._complete

    def first(self) -> bytes:
        """Return the client's first message."""
        extension = ",tokenauth=true" if self._via_token else ""
        self._bare = f"n={escape_name(self._username)},r={self._nonce}{extension}".encode()
        return b"n,," + self._bare

    def respond(self, token: bytes) -> bytes | None:
        """Return the proof, then None when the server has proved itself; raise `SaslClientError`."""
        try:
            if self._expected is None:
                return self._prove(token)
            self._verify(token, self._expected)
        except ScramSyntaxError as error:
            raise SaslClientError(str(error)) from None
        return None

    def _prove(self, token: bytes) -> bytes:
        message = ServerFirst.parse(token)
        if not message.nonce.startswith(self._nonce) or message.nonce == self._nonce:
            raise SaslClientError("the server's nonce does not continue ours")
        if not MIN_ITERATIONS <= message.iterations <= MAX_CLIENT_ITERATIONS:
            raise SaslClientError(
                f"the server requires {message.iterations} iterations, "
                f"outside {MIN_ITERATIONS}..{MAX_CLIENT_ITERATIONS}"
            )
        final = ClientFinal(b"n,,", message.nonce)
        signed = auth_message(self._bare, token, final.without_proof)
        salted = self._hash.salted_password(self._password, message.salt, message.iterations)
        client_key = self._hash.hmac(salted, b"Client Key")
        signature = self._hash.hmac(self._hash.digest(client_key), signed)
        self._expected = self._hash.hmac(self._hash.hmac(salted, b"Server Key"), signed)
        self._password = b""
        proof = in_base64(exclusive_or(client_key, signature))
        return final.without_proof + b",p=" + proof

    def _verify(self, token: bytes, expected: bytes) -> None:
        message = ServerFinal.parse(token)
        if self._complete or message.error is not None:
            raise SaslClientError("the server ended the SCRAM exchange with an error")
        if not hmac.compare_digest(message.signature, expected):
            raise SaslClientError("the server's signature is wrong: it does not know the password")
        self._complete = True
