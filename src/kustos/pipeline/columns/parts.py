"""Files cut into parts of similar size by their bytes alone: planning reads no footer."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

PART_BYTES_MAX: Final = 128 << 20
"""As large as the part of a file that Spark gives a task: some two million events."""


WHOLE_FILE: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class FilePart:
    """The row groups of a file whose middle byte lies in `start` (included) to `end` (excluded)."""

    path: str
    start: int = 0
    end: int = WHOLE_FILE


def parts_of(paths: Iterable[Path]) -> list[FilePart]:
    """Return parts that hold each row group of the files once; raise `OSError` for a file that is gone."""
    parts = []
    for path in paths:
        size = path.stat().st_size
        count = max(1, -(-size // PART_BYTES_MAX))
        edges = [size * number // count for number in range(count + 1)]
        parts += [FilePart(str(path), start, end) for start, end in pairwise(edges)]
    return parts
