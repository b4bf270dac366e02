"""The arithmetic of SCRAM (RFC 5802 section 3), nonces, and credentials of users who do not exist."""

import hashlib
import hmac
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final, Protocol

from kustos.runtime import base36_text

MIN_ITERATIONS: Final = 4096
"""RFC 7677 section 4; less is refused on both sides, as in Kafka."""


@unique
class ScramHash(Enum):
    """The two mechanisms; the value is the hash's name."""

    SHA_256 = "sha256"
    SHA_512 = "sha512"

    @property
    def mechanism_name(self) -> str:
        """The SASL name, such as `SCRAM-SHA-256`."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def code(self) -> int:
        """Kafka's number of the mechanism in requests and records."""
        return 1 if self is ScramHash.SHA_256 else 2

    @property
    def size(self) -> int:
        """Bytes of a key, proof or signature."""
        return hashlib.new(self.value).digest_size

    def digest(self, data: bytes) -> bytes:
        """Return the hash."""
        return hashlib.new(self.value, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """Return the keyed hash."""
        return hmac.digest(key, data, self.value)

    def salted_password(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Return RFC 5802's SaltedPassword; the password is UTF-8 without SASLprep, as in Kafka."""
        return hashlib.pbkdf2_hmac(self.value, password, salt, iterations)


class ScramCredential(Protocol):
    """What a server keeps of a password; `kustos.metadata.scram.ScramCredential` is one."""

    @property
    def salt(self) -> bytes:
        """What was mixed in."""

    @property
    def stored_key(self) -> bytes:
        """H(ClientKey): verifies a proof."""

    @property
    def server_key(self) -> bytes:
        """Signs the server's answer."""

    @property
    def iterations(self) -> int:
        """Rounds of the password's hash."""


def auth_message(client_first_bare: bytes, server_first: bytes, client_final_without_proof: bytes) -> bytes:
    """Return what both sides sign."""
    return b",".join((client_first_bare, server_first, client_final_without_proof))


def exclusive_or(first: bytes, second: bytes) -> bytes:
    """Return the bitwise difference; ValueError unless both are equally long."""
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True, slots=True)
class _DecoyCredential:
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


class ScramDecoys:
    """Makes credentials for users without one, so that their logins fail like a wrong password.

    The salt is derived from `secret`, mechanism and name: the same at each try, on each node that has
    the secret and after each restart, else asking twice would tell. It has the form that Kafka's tools
    give salts (130 bits in base 36) and `iterations` the number they take when told nothing, 4096 for
    both mechanisms; where users were given more, set the number they have. Keys are derived too, and no
    password is known for them. Raise ValueError for a secret of less than 32 bytes.
    """

    __slots__ = ("_iterations", "_secret")

    MINIMUM_SECRET_SIZE: Final = 32

    def __init__(self, secret: bytes, iterations: int = MIN_ITERATIONS) -> None:
        if len(secret) < self.MINIMUM_SECRET_SIZE:
            raise ValueError(f"the decoy secret is shorter than {self.MINIMUM_SECRET_SIZE} bytes")
        if iterations < MIN_ITERATIONS:
            raise ValueError(f"decoy iterations are below {MIN_ITERATIONS}, which no client accepts")
        self._secret = secret
        self._iterations = iterations

    def __repr__(self) -> str:
        return f"ScramDecoys(iterations={self._iterations})"

    def credential(self, scram_hash: ScramHash, username: str) -> ScramCredential:
        """Return the decoy of a name, in the same work for every name."""

        def derived(purpose: bytes) -> bytes:
            name = b"\0".join((purpose, scram_hash.mechanism_name.encode(), username.encode()))
            return hmac.digest(self._secret, name, scram_hash.value)

        salt = base36_text(derived(b"salt")).encode()
        return _DecoyCredential(salt, derived(b"stored key"), derived(b"server key"), self._iterations)
