"""A frozen mapping with cheap modified copies: many small buckets, only touched ones are copied.

A plain dict of 100,000 ACLs takes milliseconds to copy for each change. Here entries lie in a fixed number of
buckets by their keys' hashes; a modified copy shares all buckets but the changed ones, so it costs one bucket
and the list of buckets.
"""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Any, Final, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

BUCKETS: Final = 1024
"""A power of two. With 100,000 entries a change copies about 100 of them and 1024 references."""

_NO_ENTRIES: Final[dict[Any, Any]] = {}
"""The shared empty bucket; never written to."""


class _Bucketed(Mapping[K, V]):
    """Base of both forms: look-up, and iteration in no fixed order."""

    __slots__ = ("_buckets", "_size")

    _buckets: "list[dict[K, V]] | tuple[dict[K, V], ...]"
    _size: int

    def __getitem__(self, key: K) -> V:
        return self._buckets[hash(key) % BUCKETS][key]

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D) -> V | D: ...
    def get(self, key: K, default: object = None) -> object:
        """Return the value of a key, the default if missing."""
        return self._buckets[hash(key) % BUCKETS].get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) % BUCKETS]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self._buckets)

    def items(self) -> ItemsView[K, V]:
        """Return the entries."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """Return the values."""
        return _Values(self)

    def pieces(self) -> list[object]:
        """Return what holds the entries, for `free`."""
        return list(self._buckets)


def free(pieces: list[object]) -> None:
    """Drop the pieces of maps that the caller no longer references, one at a time.

    Dropping the last reference to a map with a million entries holds the interpreter for a second or two.
    Between two pieces another thread can take it. Maps that others still use stay intact.
    """
    while pieces:
        pieces.pop()


class _Items(ItemsView[K, V]):
    _mapping: _Bucketed[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return chain.from_iterable(map(dict.items, filter(None, self._mapping._buckets)))


class _Values(ValuesView[V]):
    _mapping: _Bucketed[Any, V]

    def __iter__(self) -> Iterator[V]:
        return chain.from_iterable(map(dict.values, filter(None, self._mapping._buckets)))


class FrozenMap(_Bucketed[K, V]):
    """An immutable mapping, safe to read from any thread."""

    __slots__ = ()

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        buckets: dict[int, dict[K, V]] = {}
        for key, value in entries:
            buckets.setdefault(hash(key) % BUCKETS, {})[key] = value
        self._buckets = tuple(buckets.get(index, _NO_ENTRIES) for index in range(BUCKETS))
        self._size = sum(map(len, buckets.values()))

    def __repr__(self) -> str:
        return f"FrozenMap({dict(self.items())!r})"


class DraftMap(_Bucketed[K, V]):
    """A mutable copy; its base stays unchanged."""

    __slots__ = ("_owned",)

    def __init__(self, base: FrozenMap[K, V]) -> None:
        self._buckets: list[dict[K, V]] = list(base._buckets)
        self._size = len(base)
        self._owned: set[int] = set()

    def __setitem__(self, key: K, value: V) -> None:
        bucket = self._own(key)
        self._size += key not in bucket
        bucket[key] = value

    def add_all(self, entries: Iterable[tuple[K, V]]) -> K | None:
        """Add many entries that must be new; return the first key that exists already, None if all are new.

        If a key is returned, the draft must not be used further.
        """
        buckets, own = self._buckets, self._own
        owned = self._owned
        for key, value in entries:
            index = hash(key) % BUCKETS
            bucket = buckets[index] if index in owned else own(key)
            count = len(bucket)
            bucket[key] = value
            if len(bucket) == count:
                return key
            self._size += 1
        return None

    def pop(self, key: K) -> V | None:
        """Remove an entry and return its value, None if missing."""
        if key not in self:
            return None
        self._size -= 1
        return self._own(key).pop(key)

    def freeze(self) -> FrozenMap[K, V]:
        """Return the current state; later changes of the draft do not affect it."""
        frozen: FrozenMap[K, V] = FrozenMap.__new__(FrozenMap)
        frozen._buckets = tuple(self._buckets)
        frozen._size = self._size
        self._owned.clear()
        return frozen

    def _own(self, key: K) -> dict[K, V]:
        index = hash(key) % BUCKETS
        if index not in self._owned:
            self._buckets[index] = dict(self._buckets[index])
            self._owned.add(index)
        return self._buckets[index]
