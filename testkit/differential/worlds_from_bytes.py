"""Worlds out of bytes: what a fuzzer that sees coverage changes byte by byte, and hypothesis shrinks.

Every draw of the world's maker takes its bits from the bytes, so a small change of the bytes is a small
change of the world; where the bytes end, so does the world.
"""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from random import Random

from testkit.differential.comparison import compare, kinds_of
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.replay import answers_of_kustos, answers_of_spec
from testkit.differential.worlds import Start, Step

SHAPE = Shape(acl_count=40, question_count=200)
BYTES_MAX = 4096
"""Enough for some hundred steps."""


class BytesEndedError(Exception):
    """All bytes are drawn."""


class ByteRandom(Random):
    """A chance whose every outcome stands in the bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._rest = iter(data)

    def _draw(self, count: int) -> int:
        drawn = bytes(itertools.islice(self._rest, count))
        if len(drawn) < count:
            raise BytesEndedError
        return int.from_bytes(drawn, "little")

    def getrandbits(self, count: int, /) -> int:
        return self._draw((count + 7) // 8) & ((1 << count) - 1)

    def random(self) -> float:
        return self._draw(2) / (1 << 16)


def world_of(data: bytes) -> list[Step]:
    """Return the world that the bytes say, as far as they go."""
    steps: list[Step] = []
    with suppress(BytesEndedError):
        for step in WorldMaker(ByteRandom(data), SHAPE).steps():
            steps.append(step)  # noqa: PERF402 (what was made before the end counts)
    return steps


def differing(data: bytes) -> str | None:
    """Return how kustos and the specification differ on the world of these bytes, None if they do not."""
    steps = world_of(data)
    if not any(isinstance(step, Start) for step in steps):
        return None
    return compare("fuzzed", steps, answers_of_kustos(steps), answers_of_spec(steps), "the specification")


def kinds(data: bytes) -> Iterator[str]:
    steps = world_of(data)
    return kinds_of(steps, answers_of_kustos(steps))
