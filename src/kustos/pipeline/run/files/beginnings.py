"""The beginning of a log: its first lines with a time, which copies share and other logs do not.

Many logs begin alike: brokers print the same banner, and a layout may have a header. Lines with a time do not
recur: two brokers hardly log the same text in the same millisecond, and not several times in a row. So a log
is known by its first lines with a time. Files that agree in all that both have are copies, or one grew out of
the other; the number of these lines is the evidence. Without milliseconds, several lines count as one.
"""

import hashlib
import json
import re
import zlib
from dataclasses import dataclass
from typing import IO, Final, Self

FIRST_LINES: Final = 4
"""Different lines with a time by which a log is known within another file: few, so that a log has them soon.

Rotation may cut between equal lines of one millisecond: there several are no more evidence than one.
"""

LINES_MAX: Final = 16
"""Lines of a beginning at most, equal ones included: copies of a burst share their number, too."""

SECONDS_LINES: Final = 4
"""Lines with a time to the second that count as one with milliseconds."""

BEGINNING_BYTES_MAX: Final = 1 << 20
"""How far a beginning goes at most: the longest banners, whole configurations, have some 100 kB."""

LINE_BYTES_MAX: Final = 1 << 16
"""Longer lines are cut here for the digest."""

_DIGEST_CHARACTERS: Final = 32
_STAMPED_WITHIN_BYTES: Final = 192
"""How far into a line its time begins: the names of a pod and a container may come first."""

_JSON: Final = "{"
"""What the mark of a line of JSON begins with, as the line does."""

_TIME: Final = re.compile(rb"\d\d:\d\d:\d\d[.,]\d{3}|(?<!\d)1\d{12}(?!\d)")
"""A time of day to the millisecond, or milliseconds since the epoch: seconds are often shared."""

_SECONDS: Final = re.compile(rb"\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Beginning:
    """The marks of the `first_lines` with a time; `at_once` different ones have the time of the first.

    `seconds` is for a log without milliseconds: digests of its text up to each of its first lines with a
    time. `first_line` is the digest of the first line that is not blank.
    """

    first_lines: tuple[str, ...] = ()
    seconds: tuple[str, ...] = ()
    first_line: str | None = None
    at_once: int = 1

    @property
    def marks(self) -> tuple[str, ...]:
        """The different marks of the first lines, without those of JSON: its events have ids of their own."""
        return tuple(dict.fromkeys(mark for mark in self.first_lines if not mark.startswith(_JSON)))

    def in_common(self, other: "Beginning") -> int | None:
        """Return how many lines with a time both begin with, as far as known; None if they differ."""
        by_seconds = not (self.first_lines and other.first_lines)
        one, another = (each.seconds if by_seconds else each.first_lines for each in (self, other))
        both = min(len(one), len(another))
        if one[:both] != another[:both]:
            return None
        if not both and None not in (self.first_line, other.first_line):
            return 0 if self.first_line == other.first_line else None
        return both // SECONDS_LINES if by_seconds else both

    def may_have_become(self, other: "Beginning") -> bool:
        """Return whether a log with this beginning has the other one if it only grew."""
        by_seconds = not other.first_lines  # else times to the second count no more
        return (
            other.first_lines[: len(self.first_lines)] == self.first_lines
            and (not by_seconds or other.seconds[: len(self.seconds)] == self.seconds)
            and self.first_line in (None, other.first_line)
        )

    def to_text(self) -> str:
        """Return the text that the table `inputs` keeps."""
        return json.dumps((self.first_lines, self.seconds, self.first_line, self.at_once))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the beginning with this text; raise ValueError if there is none."""
        first_lines, seconds, first_line, at_once = json.loads(text)
        return cls(tuple(first_lines), tuple(seconds), first_line, at_once)


def is_stamped(line: bytes) -> bool:
    """Return whether a line has a time that other logs hardly share."""
    return time_in(line) is not None


def time_in(line: bytes) -> bytes | None:
    """Return a line's time to the millisecond, as it is written; JSON may have it anywhere."""
    found = _TIME.search(_with_time(line))
    return None if found is None else found[0]


def _with_time(line: bytes) -> bytes:
    return line if line.startswith(b"{") else line[:_STAMPED_WITHIN_BYTES]


def line_digest(line: bytes) -> str:
    """Return a digest of a line without its end."""
    return hashlib.sha256(line[:LINE_BYTES_MAX].rstrip(b"\r\n")).hexdigest()[:_DIGEST_CHARACTERS]


def line_mark(line: bytes) -> str:
    """Return a mark of a line without its end: a checksum, which is quick to compare, and a digest."""
    return f"{checksum(line):08x}{line_digest(line)}"


def checksum(line: bytes) -> int:
    """Return the number that the mark of a line begins with."""
    return zlib.crc32(line[:LINE_BYTES_MAX].rstrip(b"\r\n"))


def read_beginning(content: IO[bytes]) -> Beginning:
    """Return the beginning of a file's unpacked content; raise what reading raises.

    A last line without its end counts only as the `first_line`, since it may go on.
    """
    whole = hashlib.sha256()
    first_lines: list[str] = []
    times: dict[str, bytes] = {}
    seconds: list[str] = []
    first_line: str | None = None
    left = BEGINNING_BYTES_MAX
    while left > 0 and len(times) < FIRST_LINES and len(first_lines) < LINES_MAX:
        line = content.readline(min(left, LINE_BYTES_MAX))
        if not line:
            break
        left -= len(line)
        if not line.strip():
            continue
        first_line = first_line or line_digest(line)
        if not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
            break
        whole.update(line.rstrip(b"\r\n") + b"\n")
        time = time_in(line)
        if time is not None:
            mark = _JSON + line_digest(line) if line.startswith(b"{") else line_mark(line)
            first_lines.append(mark)
            times.setdefault(mark, time)
        elif len(seconds) < LINES_MAX and _SECONDS.search(_with_time(line)):
            seconds.append(whole.hexdigest()[:_DIGEST_CHARACTERS])
    found = [*times.values()]
    return Beginning(
        tuple(first_lines),
        () if first_lines else tuple(seconds),
        first_line,
        found.count(found[0]) if found else 1,
    )
