"""Groups spilled to disk until all are known, then combined one bucket at a time.

Groups with the same keys are in the same bucket. The hash that chooses it has a new random key each time:
else an attacker could choose names that all fall into one bucket, which must fit in memory.
"""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BUCKETS: Final = 16
"""With sixteen, groups of sixteen times the memory can be combined."""

_BUCKET_BITS: Final = 4
_HASH_BYTES: Final = 8
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
"""Odd, its bits evenly mixed: 2**64 by the golden ratio (Knuth, volume 3, 6.4)."""

Hashes = npt.NDArray[np.uint64]


class SpilledGroups:
    """Tables of groups on disk, each a file of as many batches as there are buckets."""

    def __init__(self, folder: Path, keys: Sequence[str]) -> None:
        """`keys`: dictionary columns, whose texts spread groups over the buckets."""
        self._folder: Final = folder
        self._keys: Final = tuple(keys)
        self._secret: Final = secrets.token_bytes(hashlib.blake2b.MAX_KEY_SIZE)
        self._files: list[Path] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing was spilled."""
        return not self._files

    def add(self, table: pa.Table) -> None:
        """Write a table; raise `OSError` if there is no room for it."""
        table = table.unify_dictionaries().combine_chunks()  # a file has one dictionary for a column
        buckets = self._buckets_of(table)
        order = np.argsort(buckets, kind="stable")
        edges = np.searchsorted(buckets[order], np.arange(BUCKETS + 1))
        [batch] = table.take(pa.array(order)).combine_chunks().to_batches()
        path = self._folder / f"{len(self._files)}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as file:
            for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
                file.write_batch(batch.slice(start, end - start))
        self._files.append(path)

    def buckets(self) -> Iterator[list[pa.Table]]:
        """Yield the spilled groups, bucket by bucket; equal keys are in one bucket."""
        for number in range(BUCKETS):
            batches = []
            for path in self._files:
                with pa.memory_map(str(path)) as source:
                    batches.append(pa.ipc.open_file(source).get_batch(number))
            found = [pa.Table.from_batches([batch]) for batch in batches if batch.num_rows]
            if found:
                yield found

    def _buckets_of(self, table: pa.Table) -> Hashes:
        found = np.zeros(table.num_rows, np.uint64)
        for name in self._keys:
            column = table.column(name).combine_chunks()
            texts = self._hashes(column.dictionary)
            codes = column.indices.fill_null(len(texts) - 1).to_numpy()
            found = (found ^ texts[codes]) * _MULTIPLIER
        return found >> np.uint64(64 - _BUCKET_BITS)

    def _hashes(self, texts: pa.Array) -> Hashes:
        """Return a number for each text, and one for a null."""
        digests = [
            hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES, key=self._secret).digest()
            for text in texts.to_pylist()
        ]
        return np.frombuffer(b"".join([*digests, bytes(_HASH_BYTES)]), np.uint64)


@contextmanager
def spilled_groups(keys: Sequence[str]) -> Iterator[SpilledGroups]:
    """Yield a place for groups in Spark's local folder, removed with the application; else in `TMPDIR`."""
    of_spark = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    folder = of_spark if of_spark and Path(of_spark).is_dir() else None
    with tempfile.TemporaryDirectory(prefix="kustos-groups-", dir=folder) as directory:
        yield SpilledGroups(Path(directory), keys)
