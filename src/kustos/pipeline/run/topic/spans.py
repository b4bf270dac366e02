"""Which records a batch takes of the partitions of a topic, and which of them each task reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

TASK_RECORDS: Final = 1 << 16
"""About as many records as a task reads: a third of a second of parsing. A batch of half a million makes
eight tasks, whatever the number of partitions, and one of two thousand a single one, with one login."""


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of a partition, `first` included and `end` not; offsets may have no record."""

    partition: int
    first: int
    end: int

    @property
    def count(self) -> int:
        """The number of offsets."""
        return self.end - self.first


def spans(first: Mapping[int, int], end: Mapping[int, int]) -> tuple[Span, ...]:
    """Return what lies between offsets, by partition; those without a record, or an end, are left out."""
    found = (Span(number, offset, end.get(number, offset)) for number, offset in sorted(first.items()))
    return tuple(span for span in found if span.count > 0)


def limited(all_spans: Iterable[Span], maximum: int) -> tuple[Span, ...]:
    """Return the beginnings of the spans, about `maximum` records in all: of each its part, one at least."""
    left = tuple(all_spans)
    total = sum(span.count for span in left)
    if total <= maximum:
        return left
    return tuple(
        Span(span.partition, span.first, span.first + max(1, span.count * maximum // total)) for span in left
    )


def tasks_of(all_spans: Iterable[Span], records: int = TASK_RECORDS) -> tuple[tuple[Span, ...], ...]:
    """Return the spans cut into tasks of equal numbers of records, as few as `records` a task allow."""
    left = tuple(all_spans)
    total = sum(span.count for span in left)
    count = -(-total // records)
    ends = [total * number // count for number in range(1, count + 1)]
    begins = [0, *accumulate(span.count for span in left)]
    tasks = []
    for first, end in zip([0, *ends], ends, strict=False):
        cut = (
            Span(
                span.partition,
                span.first + max(first - begin, 0),
                span.first + min(end - begin, span.count),
            )
            for span, begin in zip(left, begins, strict=False)
        )
        tasks.append(tuple(span for span in cut if span.count > 0))
    return tuple(tasks)
