"""Many texts cut into pieces at once: the pieces are Arrow arrays over the bytes of the texts, not copies."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, np.dtype[Any]]


_WINDOWS: Final = (32, 256)
"""Bytes that are searched at a time, of all texts at once: few values are longer than the first."""


@dataclass(slots=True)
class Text:
    """The bytes of a batch of lines, and where each of some of them starts and ends."""

    buffer: pa.Buffer
    data: Numbers
    starts: Numbers
    ends: Numbers

    @classmethod
    def of(cls, texts: pa.Array) -> Self:
        """Return the bytes of an array of strings, which it shares unless that is a part of a longer one."""
        if texts.offset:
            texts = pa.concat_arrays([texts])  # else the bytes before the part are searched, too
        _, offsets, buffer = texts.buffers()
        buffer = buffer or pa.py_buffer(b"")
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(buffer, np.uint8)[: bounds[-1]]
        return cls(buffer, data, bounds[:-1], bounds[1:])

    def at(self, places: Numbers) -> Numbers:
        """Return the bytes at these places; a place outside takes the nearest byte."""
        found: Numbers = self.data.take(places, mode="clip")
        return found

    def has(self, places: Numbers, what: bytes) -> Numbers:
        """Return whether these bytes are at each place; from a place near the end, before it.

        So whoever asks must know that there are as many bytes.
        """
        last = len(self.data) - len(what)
        if last < 0 or not what:
            return np.full(len(places), not what)
        starts = np.minimum(places, last)
        pieces = self._pieces(starts, starts + len(what), pa.binary())
        # Arrow compares bytes where they are, in a fifth of the time that their copies would take
        found: Numbers = flags_of(pc.equal(pieces, pa.scalar(what, pa.binary())))
        return found[::2]

    def first_of(self, marks: bytes, places: Numbers) -> Numbers:
        """Return the first place with one of these bytes, from one in each text on, or the text's end."""
        found: Numbers = self.ends.astype(np.int64)
        left: Any = slice(None)  # at first all
        for width in _WINDOWS:
            last = len(self.data) - width
            if last < 0:
                break
            windows = np.ndarray((last + 1,), np.dtype((np.void, width)), buffer=self.data, strides=(1,))
            own = places[left]
            content = windows[np.minimum(own, last)].view(np.uint8).reshape(-1, width)
            is_mark = reduce(np.logical_or, [content == mark for mark in marks])
            at = is_mark.argmax(axis=1)
            is_found = (is_mark[:, 0] | (at > 0)) & (own <= last)
            found[left] = np.where(is_found, own + at, found[left])
            others = np.flatnonzero(~is_found)
            left = others if isinstance(left, slice) else left[others]
            if not len(left):
                break
        rows = np.arange(len(places))[left]
        for row in rows[places[rows] < self.ends[rows]].tolist():  # long ones, and the last of all texts
            rest = self.data[places[row] : self.ends[row]].tobytes()
            ends = [rest.find(bytes([mark])) for mark in marks]
            found[row] = places[row] + min((end for end in ends if end >= 0), default=len(rest))
        nearest: Numbers = np.minimum(found, self.ends)
        return nearest

    def between(self, starts: Numbers, ends: Numbers, mask: Numbers | None = None) -> pa.Array:
        """Return copies of the bytes from each start to its end, both ascending; null where `mask` is."""
        pieces = self._pieces(starts, ends, pa.string())
        return pieces.take(pa.array(np.arange(0, 2 * len(starts), 2), mask=mask))

    def _pieces(self, starts: Numbers, ends: Numbers, kind: pa.DataType) -> pa.Array:
        """Return the bytes from each start to its end, and between two of them what lies there; no copies."""
        offsets = np.empty(2 * len(starts), dtype=np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        buffers = [None, pa.py_buffer(offsets), self.buffer]
        return pa.Array.from_buffers(kind, max(0, len(offsets) - 1), buffers)

    def rows_of(self, places: Numbers) -> Numbers:
        """Return the number of the line in which each place lies, of all lines in order."""
        return np.searchsorted(self.starts, places, side="right") - 1


@dataclass(slots=True)
class Pieces:
    """Pieces of each row of a text, cut at ascending places: `bounds` has a row for each place."""

    texts: pa.Array
    width: int
    count: int

    @classmethod
    def cut(cls, text: Text, bounds: Numbers) -> Self:
        """Return the pieces between the bounds: of row n those of column n, ascending, as the columns are."""
        width, count = bounds.shape
        offsets = np.empty(width * count + 1, dtype=np.int32)
        offsets[:-1] = bounds.T.ravel()  # the last piece of a row ends where the next row begins
        offsets[-1] = bounds[-1, -1]
        buffers = [None, pa.py_buffer(offsets), text.buffer]
        return cls(pa.Array.from_buffers(pa.string(), width * count, buffers), width, count)

    def take(self, number: int, rows: Numbers | None = None, mask: Numbers | None = None) -> pa.Array:
        """Return the piece of that number of all rows, or of some, null where `mask` is."""
        chosen = np.arange(self.count) if rows is None else rows
        return self.texts.take(pa.array(chosen * self.width + number, mask=mask))


def codes_of(column: pa.Array, words: Sequence[str]) -> Numbers:
    """Return which of the words each value is, -1 for none of them."""
    found: Numbers = pc.index_in(column, pa.array(words)).fill_null(-1).to_numpy()
    return found


def equal_to(column: pa.Array, word: str) -> Numbers:
    """Return which values are the word."""
    return flags_of(pc.equal(column, word))


def flags_of(column: pa.Array) -> Numbers:
    """Return booleans, none of them null, as an array that may be written to."""
    found: Numbers = column.to_numpy(zero_copy_only=False, writable=True)
    return found


def consists_of(column: pa.Array, table: Numbers) -> Numbers:
    """Return whether each value has characters of the table only, and at least one."""
    text = Text.of(column)
    found: Numbers = text.ends > text.starts
    first = text.starts[0]
    wrong = np.flatnonzero(~table[text.data[first:]]) + first
    if len(wrong):
        found[np.searchsorted(text.starts, wrong, side="right") - 1] = False
    return found


def words_of(words: Sequence[str], codes: Numbers, mask: Numbers | None = None) -> pa.Array:
    """Return the words by their numbers, null where `mask` is."""
    return pa.array(words, pa.string()).take(pa.array(codes, mask=mask))


def in_order(rows: Numbers, first: pa.Array, others: Numbers, second: pa.Array) -> pa.Array:
    """Return values of `first`, which belong in these rows, and of `second`, which belong in the others."""
    order = np.empty(len(rows) + len(others), dtype=np.int64)
    order[rows] = np.arange(len(rows))
    order[others] = np.arange(len(rows), len(order))
    return pa.concat_arrays([first, second]).take(pa.array(order))


class Marks:
    """Places of one kind of mark in a text: of each line the first one's number, and how many it has."""

    __slots__ = ("counts", "firsts", "places")

    def __init__(self, text: Text, places: Numbers) -> None:
        self.places: Final = places
        self.firsts: Final = np.searchsorted(places, text.starts)
        self.counts: Final = np.searchsorted(places, text.ends) - self.firsts

    def of(self, rows: Numbers, count: int) -> Numbers:
        """Return the places of the first `count` marks of each row, a row for each mark.

        If a row has fewer, the missing places are arbitrary.
        """
        if not len(self.places):
            return np.zeros((count, len(rows)), dtype=self.places.dtype)
        return self.places.take(self.firsts[rows] + np.arange(count)[:, None], mode="clip")
