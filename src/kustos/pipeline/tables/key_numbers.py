"""Numbers of keys, by which equal ones are found among many: texts are compared where numbers are equal."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.uint64]

_WORD_BYTES: Final = 8
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
"""Odd numbers without a pattern: products with them have the bits of a word all over."""

_SIEVE_BITS: Final = 24
_SIEVE_SHIFT: Final = np.uint64(64 - _SIEVE_BITS)
"""A sieve has 16 million holes, of a byte each: a million ids open 6 percent of them."""


def numbers_of_keys(keys: pa.Array) -> Numbers:
    """Return a number of 64 bits for each key, equal for equal keys, by its first and last 16 bytes.

    `keys` are texts, none of them null. Nothing may depend on the others' numbers differing: who writes a log
    chooses its ids.
    """
    if not len(keys):
        return np.array([], np.uint64)
    _, offsets_buffer, buffer = keys.buffers()
    bounds = np.frombuffer(offsets_buffer, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    starts, ends = bounds[:-1], bounds[1:]
    lengths = ends - starts
    data = np.frombuffer(buffer or b"", np.uint8)
    is_short = lengths < _WORD_BYTES
    if not is_short.any():
        return _mixed(_words(data, starts, ends), lengths)
    found = np.empty(len(keys), np.uint64)
    found[is_short] = _mixed([_short_words(data, starts[is_short], ends[is_short])], lengths[is_short])
    if not is_short.all():
        is_long = ~is_short
        found[is_long] = _mixed(_words(data, starts[is_long], ends[is_long]), lengths[is_long])
    return found


def _words(data: Any, starts: Any, ends: Any) -> list[Numbers]:
    """Return the first and last 16 bytes of texts of eight bytes or more, which may overlap."""
    # each place of the texts as one value of eight bytes
    words = np.ndarray((data.size - _WORD_BYTES + 1,), np.dtype("<u8"), buffer=data, strides=(1,))
    last = ends - _WORD_BYTES
    places = (starts, np.minimum(starts + _WORD_BYTES, last), np.maximum(last - _WORD_BYTES, starts), last)
    return [words[place] for place in places]


def _short_words(data: Any, starts: Any, ends: Any) -> Numbers:
    """Return texts of less than eight bytes as numbers."""
    found = np.zeros(len(starts), np.uint64)
    for number in range(_WORD_BYTES - 1):
        rows = np.flatnonzero(starts + number < ends)
        found[rows] |= data[starts[rows] + number].astype(np.uint64) << np.uint64(8 * number)
    return found


def _mixed(words: list[Numbers], lengths: Any) -> Numbers:
    mixed: Numbers = lengths.astype(np.uint64)
    for word, factor in zip(words, _FACTORS, strict=False):
        mixed = (mixed ^ word) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(32)
    return mixed * np.uint64(_FACTORS[0])


class Sieve:
    """Says which numbers may be among others, wrongly of a few; of the same size for any number of them."""

    __slots__ = ("_holes",)

    def __init__(self, numbers: Numbers) -> None:
        self._holes = np.zeros(1 << _SIEVE_BITS, dtype=bool)
        self._holes[numbers >> _SIEVE_SHIFT] = True

    def lets_through(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return which of these numbers may be among those of the sieve."""
        found: npt.NDArray[np.bool_] = self._holes[numbers >> _SIEVE_SHIFT]
        return found

    def kept(self, keys: pa.Array) -> pa.Array:
        """Return the keys, in their order, whose numbers may be among those of the sieve; a null is none."""
        keys = keys.drop_null()
        return keys.filter(pa.array(self.lets_through(numbers_of_keys(keys))))
