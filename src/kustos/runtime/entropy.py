"""Where randomness comes from."""

import secrets
import uuid
from typing import Protocol


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
        return secrets.token_bytes(size)

    def uuid(self) -> uuid.UUID:
        """Return a random (version 4) UUID."""
        return uuid.uuid4()
