"""Worlds: kustos decides as the specification does, whatever the ACLs, changes and questions."""

from collections.abc import Iterator
from random import Random
from typing import Final

from fuzz.targets import FoundError
from testkit.differential.worlds_from_bytes import BYTES_MAX, differing

INPUT_MAX_BYTES: Final = BYTES_MAX

BEGINNINGS: Final = 64
"""Random worlds of full length from which the first search begins: short ones have few ACLs."""


def check(data: bytes) -> None:
    """Raise on a difference; libFuzzer keeps the bytes, the comparison the world."""
    difference = differing(data)
    if difference is not None:
        raise FoundError(difference)


def seeds() -> Iterator[bytes]:
    """Yield the first worlds."""
    for number in range(BEGINNINGS):
        yield Random(number).randbytes(BYTES_MAX)
