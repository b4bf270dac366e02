"""Keyed hashes are HMAC (RFC 2104), as Python's own module computes it."""

import hmac

from hypothesis import example, given
from hypothesis import strategies as st

from kustos.runtime import KeyedHash, keyed_digest

NAMES = st.sampled_from(["sha256", "sha512"])
KEYS = st.binary(max_size=200)
"""Shorter than a block of either hash, as long, and longer."""
TEXTS = st.binary(max_size=300)


@given(name=NAMES, key=KEYS, text=TEXTS)
@example(name="sha256", key=b"k" * 64, text=b"")
@example(name="sha256", key=b"k" * 65, text=b"")
@example(name="sha512", key=b"k" * 128, text=b"")
@example(name="sha512", key=b"k" * 129, text=b"")
def test_a_keyed_digest_is_the_hmac(name: str, key: bytes, text: bytes) -> None:
    assert keyed_digest(name, key, text) == hmac.digest(key, text, name)


@given(name=NAMES, key=KEYS, start=TEXTS, rests=st.lists(TEXTS, min_size=1, max_size=3))
def test_what_texts_share_is_hashed_once_and_does_not_change(
    name: str, key: bytes, start: bytes, rests: list[bytes]
) -> None:
    keyed = KeyedHash(name, key)
    begun = keyed.begun(start)
    for rest in rests:
        assert begun.digest(rest) == hmac.digest(key, start + rest, name)
        assert keyed.digest(rest) == hmac.digest(key, rest, name)
