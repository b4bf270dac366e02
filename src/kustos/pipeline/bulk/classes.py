"""Classes of resource names that the ACLs cannot distinguish.

The index has some literal names and prefixes and treats most names alike: two names that are not literals and
have the same longest prefix match the same ACLs. So every name has a class, and there are only as many
classes as literals and prefixes, however many names there are.

Classes are numbered along the sorted patterns, so that all names under a prefix are one range of
numbers. Bytes of UTF-8 sort as code points do.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kustos.acl import WILDCARD, AclValueError, HostRange

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

NO_NAME: Final = -1
"""The class of a null: a question about any resource of the type."""

_PLAIN: Final = 0
_STARRED: Final = 1
"""The two classes of names under no prefix: `_STARRED` names begin with `*`, so the literal `*` does not
apply."""

GRID_BYTES_MAX: Final = 1 << 20
"""Bytes of names laid out at a time, so that they stay in the processor cache."""

GRID_WORDS_MAX: Final = 32
"""With prefixes of more words (topics have at most 249 characters) names are looked up one by one."""

SAMPLED_NAMES: Final = 4096
"""Names sampled to estimate whether names repeat."""

_WORD: Final = 8
_LOW_BYTES: Final = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], "<u8")


def _encodable(names: Iterable[str]) -> dict[str, bytes]:
    encoded: dict[str, bytes] = {}
    for name in names:
        try:
            encoded[name] = name.encode()
        except UnicodeEncodeError:
            # a lone surrogate: no name in an Arrow column equals it or begins with it
            continue
    return encoded


class NameClasses:
    """The classes of all names, given every literal and every prefix of the ACLs."""

    def __init__(self, literals: Iterable[str], prefixes: Iterable[str]) -> None:
        literal_bytes = _encodable({WILDCARD, *literals})
        prefix_bytes = _encodable(prefixes)
        prefix_bytes.pop("", None)
        patterns = sorted([*[(name, 0) for name in prefix_bytes], *[(name, 1) for name in literal_bytes]])
        self.count: Final = _STARRED + 1 + len(patterns)
        self.literals: Final[dict[str, int]] = {}
        self.ranges: Final[dict[str, tuple[int, int]]] = {"": (0, self.count)}
        self._patterns: Final = [name for name, _ in patterns]
        self._is_literal: Final = [bool(kind) for _, kind in patterns]
        parents = self._number()
        self._names: Final = pa.array(list(self.literals), type=pa.large_string())
        self._classes: Final[Codes] = np.fromiter(self.literals.values(), np.int32, len(self.literals))
        self._lay_out([b"", *[prefix_bytes[name] for name in list(self.ranges)[1:]]], parents)
        self.starred: Final = np.zeros(self.count, bool)
        self.starred[_STARRED] = True
        self.starred[[_STARRED + 1 + n for n, name in enumerate(self._patterns) if name[:1] == WILDCARD]] = (
            True
        )
        self.in_wildcard: Final = ~self.starred
        self.in_wildcard[self.literals[WILDCARD]] = True

    def _number(self) -> list[int]:
        """Fill `literals` and `ranges`; return the next shorter prefix of each prefix, by position."""
        parents = [0]
        open_prefixes: list[tuple[str, int, int]] = []
        for number, (name, is_literal) in enumerate(
            zip(self._patterns, self._is_literal, strict=True), _STARRED + 1
        ):
            while open_prefixes and not name.startswith(open_prefixes[-1][0]):
                self._close(*open_prefixes.pop()[:2], number)
            if is_literal:
                self.literals[name] = number
            else:
                parents.append(open_prefixes[-1][2] if open_prefixes else 0)
                open_prefixes.append((name, number, len(parents) - 1))
                self.ranges[name] = (number, number)
        for name, start, _ in open_prefixes:
            self._close(name, start, self.count)
        return parents

    def _close(self, name: str, start: int, end: int) -> None:
        self.ranges[name] = (start, end)

    def _lay_out(self, encoded: list[bytes], parents: list[int]) -> None:
        self._prefixes = list(self.ranges)
        self._prefix_classes: Codes = np.array([start for start, _ in self.ranges.values()], np.int32)
        self._parents = np.array(parents, np.int32)
        self._lengths = np.array([len(prefix) for prefix in encoded], np.int32)
        self._words = -(-max(1, *self._lengths) // _WORD)
        if self._words <= GRID_WORDS_MAX:
            self._sorted = np.array(encoded, f"S{self._words * _WORD}")
            self._grid = self._sorted.view("<u8").reshape(len(encoded), self._words)

    def of(self, names: Any) -> Codes:
        """Return the class of each name in an Arrow array of strings, `NO_NAME` for nulls."""
        large = names.cast(pa.large_string())
        found = pc.index_in(large, value_set=self._names).fill_null(-1).to_numpy(zero_copy_only=False)
        classes: Codes = self._classes.take(found, mode="wrap")
        missing = np.flatnonzero(found < 0)
        if len(missing):
            rest = large if len(missing) == len(large) else large.take(pa.array(missing))
            if _repeats(rest):
                encoded = rest.dictionary_encode(null_encoding="encode")
                classes[missing] = self._of_no_literals(encoded.dictionary).take(encoded.indices.to_numpy())
            else:
                classes[missing] = self._of_no_literals(rest)
        return classes

    def _of_no_literals(self, names: Any) -> Codes:
        if names.null_count:
            classes = np.full(len(names), NO_NAME, np.int32)
            named = names.is_valid()
            classes[named.to_numpy(zero_copy_only=False)] = self._of_no_literals(names.filter(named))
            return classes
        if self._words > GRID_WORDS_MAX:
            return np.array([self._under_prefix(name) for name in names.to_pylist()], np.int32)
        step = GRID_BYTES_MAX // _WORD // self._words
        parts = [self._under_prefixes(names.slice(start, step)) for start in range(0, len(names), step)]
        return np.concatenate([np.empty(0, np.int32), *parts])

    def _under_prefix(self, name: str) -> int:
        """Find a name's longest prefix: the greatest entry not above it, or one of that entry's prefixes."""
        nearest = bisect_right(self._prefixes, name) - 1
        while not name.startswith(self._prefixes[nearest]):
            nearest = self._parents[nearest]
        return _STARRED if nearest == 0 and name[:1] == WILDCARD else int(self._prefix_classes[nearest])

    def _under_prefixes(self, names: Any) -> Codes:
        """Find the longest prefix of many names: as much of the greatest entry as a name shares."""
        offsets = np.frombuffer(names.buffers()[1], np.int64)[names.offset : names.offset + len(names) + 1]
        lengths = np.diff(offsets)
        grid = _grid(names.buffers()[2], offsets[:-1], lengths, self._words)
        nearest = (
            np.searchsorted(self._sorted, grid.view(f"S{self._words * _WORD}").ravel(), side="right") - 1
        )
        shared = _shared_bytes(grid, self._grid.take(nearest, axis=0))
        np.minimum(shared, lengths, out=shared)
        while len(longer := np.flatnonzero(self._lengths[nearest] > shared)):
            nearest[longer] = self._parents[nearest[longer]]
        classes = self._prefix_classes.take(nearest)
        classes[(nearest == 0) & (grid[:, 0] & _LOW_BYTES[1] == ord(WILDCARD))] = _STARRED
        return classes

    def example(self, number: int) -> str:
        """Return a name of a class."""
        if number <= _STARRED:
            return self._under(WILDCARD if number == _STARRED else "")
        name = self._patterns[number - _STARRED - 1]
        return name if self._is_literal[number - _STARRED - 1] else self._under(name)

    def _under(self, stem: str) -> str:
        """Return a name that begins with `stem` and matches no other pattern."""
        for code in range(ord("a"), 0x10000):
            name = f"{stem}{chr(code)}"
            place = bisect_left(self._patterns, name)
            if place == len(self._patterns) or not self._patterns[place].startswith(name):
                return name
        raise ValueError(f"every character goes on after `{stem}`")


def _repeats(names: Any) -> bool:
    """Return whether names repeat so often that each should be looked up once, judged by a sample."""
    sample = names.slice(0, SAMPLED_NAMES)
    return len(sample) == SAMPLED_NAMES and len(sample.unique()) < SAMPLED_NAMES * 7 // 8


def _grid(data: Any, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], words: int) -> Words:
    """Return the first words of many names, one name per row, padded with zeros."""
    first, end = int(starts[0]), int(starts[-1] + lengths[-1])
    padded = np.zeros(end - first + words * _WORD, np.uint8)
    if end > first:
        padded[: end - first] = np.frombuffer(data, np.uint8)[first:end]
    everywhere: Words = np.ndarray((len(padded) - _WORD + 1,), "<u8", padded.data, strides=(1,))
    grid = np.empty((len(starts), words), "<u8")
    for word in range(words):
        kept = np.clip(lengths - word * _WORD, 0, _WORD)
        grid[:, word] = everywhere.take(starts + (word * _WORD - first)) & _LOW_BYTES.take(kept)
    return grid


def _shared_bytes(left: Words, right: Words) -> npt.NDArray[np.int64]:
    """Return the length of the common prefix of each pair of rows, in bytes."""
    rows, words = left.shape
    shared = np.full(rows, words * _WORD)
    for word in reversed(range(words)):
        differs = left[:, word] ^ right[:, word]
        lowest = differs & -differs
        equal = np.full(rows, word * _WORD)
        for low_bytes in _LOW_BYTES[1:-1]:
            equal += lowest > low_bytes
        np.copyto(shared, equal, where=differs != 0)
    return shared


KEPT_HOSTS_MAX: Final = 65_536
"""Hosts whose class is cached; when full, the cache is cleared."""


class HostClasses:
    """The classes of all hosts, given every host in the ACLs."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns: Final = frozenset(patterns)
        ranges = [
            parsed for text in self._patterns if "/" in text and (parsed := _range_of(text)) is not None
        ]
        self._ends: Final = {
            bits: sorted({end for r in ranges if r.bits == bits for end in (r.lowest, r.highest + 1)})
            for bits in (32, 128)
        }
        self._numbers: Final[dict[tuple[str | None, int, int], int]] = {}
        self._known: Final[dict[str, int]] = {}
        self.examples: Final[list[str]] = []

    def of(self, host: str) -> int:
        """Return the class of a host: `getHostAddress()` form, or a text that only equal texts match."""
        number = self._known.get(host)
        if number is None:
            if len(self._known) >= KEPT_HOSTS_MAX:
                self._known.clear()
            number = self._known[host] = self._class_of(host)
        return number

    def _class_of(self, host: str) -> int:
        bits = 128 if ":" in host else 32
        address = _range_of(f"{host}/{bits}")
        place = (0, 0) if address is None else (bits, bisect_right(self._ends[bits], address.highest))
        key = (host if host in self._patterns else None, *place)
        number = self._numbers.setdefault(key, len(self.examples))
        if number == len(self.examples):
            self.examples.append(host)
        return number


def _range_of(text: str) -> HostRange | None:
    try:
        return HostRange.parse(text)
    except AclValueError:
        return None
