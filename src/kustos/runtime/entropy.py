"""Sources of randomness."""

import os
import uuid
from typing import Final, Protocol

TEXT_BITS: Final = 130
TEXT_SOURCE_SIZE_BYTES: Final = -(-TEXT_BITS // 8)
NONCE_CHARACTERS: Final = 26
"""The number of five-bit letters: 130 bits, as in Kafka's nonces."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAIRS: Final = tuple(first + second for first in _DIGITS for second in _DIGITS)
_NONCE_LETTERS: Final = _DIGITS[:32].encode() * 8
"""The letter for each byte; each letter has the same number of bytes."""


class Entropy(Protocol):
    """A source of unpredictable bytes; tests take a seeded one."""

    def token_bytes(self, size: int) -> bytes:
        """Return `size` unpredictable bytes."""

    def uuid(self) -> uuid.UUID:
        """Return a random (version 4) UUID."""


class SystemEntropy:
    """The operating system's generator."""

    __slots__ = ()

    def token_bytes(self, size: int) -> bytes:
        """Return `size` unpredictable bytes."""
        # the function behind `secrets`, without the modules that `secrets` imports
        return os.urandom(size)

    def uuid(self) -> uuid.UUID:
        """Return a random (version 4) UUID."""
        return uuid.uuid4()


def random_text(entropy: Entropy) -> str:
    """Return 130 random bits in Kafka's form, base 36: for a salt of SCRAM."""
    return base36_text(entropy.token_bytes(TEXT_SOURCE_SIZE_BYTES))


def random_nonce(entropy: Entropy) -> str:
    """Return 130 random bits as letters and digits, for a nonce of SCRAM: every login takes one."""
    return entropy.token_bytes(NONCE_CHARACTERS).translate(_NONCE_LETTERS).decode()


def base36_text(data: bytes) -> str:
    """Return the first 130 bits of at least 17 bytes in base 36, without leading zeros."""
    number = int.from_bytes(data) >> (len(data) * 8 - TEXT_BITS)
    pairs, base, texts = [], len(_PAIRS), _PAIRS
    while number:
        number, pair = divmod(number, base)
        pairs.append(texts[pair])
    return "".join(reversed(pairs)).lstrip("0") or "0"
