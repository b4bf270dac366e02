"""Keyed hashes of short texts: HMAC (RFC 2104), as every login by SCRAM takes several.

`hmac.digest` fetches its algorithm from OpenSSL 3 at each call, and a copy of `hmac.HMAC` copies three states
where two are enough: both take longer than to hash a short text.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final

_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
"""What each byte of a key becomes before the text: RFC 2104's `ipad`."""
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))
"""What it becomes before the hash of that: `opad`."""

_FUNCTIONS: Final[dict[str, tuple[Callable[[bytes], Any], int]]] = {
    "sha256": (hashlib.sha256, 64),
    "sha512": (hashlib.sha512, 128),
}
"""Name → the function, and the bytes of one of its blocks."""


def keyed_digest(hash_name: str, key: bytes, text: bytes) -> bytes:
    """Return the keyed hash of a text; `hash_name` is `sha256` or `sha512`, else KeyError is raised.

    What it returns may be secret: compare it with `hmac.compare_digest`.
    """
    new, inner, outer = _prepared(hash_name, key)
    digest: bytes = new(outer + new(inner + text).digest()).digest()
    return digest


def _prepared(hash_name: str, key: bytes) -> tuple[Callable[[bytes], Any], bytes, bytes]:
    """Return the function, and what it hashes of the key before the text and before the hash of that."""
    new, block_bytes = _FUNCTIONS[hash_name]
    padded = (key if len(key) <= block_bytes else new(key).digest()).ljust(block_bytes, b"\0")
    return new, padded.translate(_INNER), padded.translate(_OUTER)


class KeyedHash:
    """Hashes texts under one key, or texts that begin alike: what they share is hashed once."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, hash_name: str, key: bytes) -> None:
        new, inner, outer = _prepared(hash_name, key)
        self._inner: Any = new(inner)
        self._outer: Any = new(outer)

    def __repr__(self) -> str:
        return "KeyedHash()"

    def begun(self, start: bytes) -> "KeyedHash":
        """Return what hashes texts that begin with `start`, and is given the rest of them."""
        begun = KeyedHash.__new__(KeyedHash)
        begun._inner, begun._outer = self._inner.copy(), self._outer
        begun._inner.update(start)
        return begun

    def digest(self, text: bytes) -> bytes:
        """Return the keyed hash of a text."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text)
        outer.update(inner.digest())
        digest: bytes = outer.digest()
        return digest
