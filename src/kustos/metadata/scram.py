"""SCRAM mechanisms, stored credentials and their derivation from passwords (RFC 5802, RFC 7677)."""

import hashlib
import hmac
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final

MIN_ITERATIONS: Final = 4096
"""RFC 7677 section 4, and Kafka's lower bound."""
MAX_ITERATIONS: Final = 16384
"""Kafka's upper bound: a login costs one side this many hash rounds."""


@unique
class ScramMechanism(IntEnum):
    """The two mechanisms of Kafka, with their codes in requests and records."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The SASL name, such as `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The name of the hash in `hashlib`."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @classmethod
    def from_code(cls, code: int) -> "ScramMechanism | None":
        """Return the mechanism with this code, None if it is unknown."""
        return cls(code) if code in cls._value2member_map_ else None

    @classmethod
    def from_name(cls, name: str) -> "ScramMechanism | None":
        """Return the mechanism with this SASL name, None if there is none."""
        return cls.__members__.get(name.replace("-", "_")) if "_" not in name else None


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The stored form of a password: it verifies a proof, but cannot make one."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return RFC 5802's SaltedPassword (`Hi`), which is PBKDF2 with HMAC of the mechanism's hash."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, iterations)


def credential_from_salted_password(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the credential of a salted password, as an AlterUserScramCredentials request carries it."""
    name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", name)
    return ScramCredential(
        salt,
        hashlib.new(name, client_key).digest(),
        hmac.digest(salted, b"Server Key", name),
        iterations,
    )


def scram_credential(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the credential of a password, encoded as UTF-8 without SASLprep, as in Kafka."""
    salted = salted_password(mechanism, password.encode(), salt, iterations)
    return credential_from_salted_password(mechanism, salted, salt, iterations)
