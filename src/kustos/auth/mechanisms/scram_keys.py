"""The computations of SCRAM (RFC 5802 section 3), and the credential that a server stores."""

import hashlib
import hmac
from enum import Enum, unique
from typing import Final, Protocol

MIN_ITERATIONS: Final = 4096
"""RFC 7677 section 4; as in Kafka, server and client refuse less."""


@unique
class ScramHash(Enum):
    """The two mechanisms; the value is the hash's name."""

    SHA_256 = "sha256"
    SHA_512 = "sha512"

    def __init__(self, hash_name: str) -> None:
        # looked up several times in each login
        self.hash_name: Final = hash_name
        self.mechanism_name: Final = f"SCRAM-SHA-{hash_name.removeprefix('sha')}"
        """The SASL name, such as `SCRAM-SHA-256`."""
        self.code: Final = {"sha256": 1, "sha512": 2}[hash_name]
        """Kafka's code of the mechanism in requests and records."""
        self._new: Final = getattr(hashlib, hash_name)
        self.size: Final = self._new().digest_size
        """Bytes of a key, proof or signature."""

    # members are singletons; `Enum` hashes their names in Python
    __hash__ = object.__hash__

    def digest(self, data: bytes) -> bytes:
        """Return the hash."""
        digest: bytes = self._new(data).digest()
        return digest

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """Return the HMAC (RFC 2104)."""
        return hmac.digest(key, data, self.hash_name)

    def salted_password(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Return RFC 5802's SaltedPassword; the password is UTF-8 without SASLprep, as in Kafka."""
        return hashlib.pbkdf2_hmac(self.hash_name, password, salt, iterations)


class ServerCredential(Protocol):
    """The stored form of a password, such as `kustos.metadata.scram.ScramCredential`."""

    @property
    def salt(self) -> bytes:
        """The salt of the password's hash."""

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
    """Return the message that both sides sign."""
    return b",".join((client_first_bare, server_first, client_final_without_proof))


def exclusive_or(first: bytes, second: bytes) -> bytes:
    """Return the bitwise XOR; raise ValueError unless both have the same length."""
    if len(first) != len(second):
        raise ValueError("texts of different lengths have no XOR")
    return (int.from_bytes(first) ^ int.from_bytes(second)).to_bytes(len(first))
