"""The beginning of a log: what copies of it share, however far they grew, and other logs do not.

Theory of operation. Many logs begin alike: brokers print the same banner, and a layout may have a header.
Lines with a time do not recur: two brokers hardly log the same text in the same millisecond, and not several
times in a row. So a beginning is a ladder of digests: each covers all text up to the 1st, 2nd, 4th, 8th and
16th line with a time. Files that agree on every digest both have are copies, or one grew out of the other;
the last one in common says how many such lines vouch for that. Where no line has milliseconds, times to the
second count instead, and more of them must agree.
"""

import hashlib
import re
import zlib
from dataclasses import dataclass
from typing import IO, Final, Self

RUNGS: Final = (1, 2, 4, 8, 16)
"""Lines with a time up to which a digest goes; few, so that a log has one soon, and at most so many."""

BEGINNING_BYTES_MAX: Final = 1 << 20
"""How far a beginning goes at most: the longest banners, whole configurations, have some 100 kB."""

LINE_BYTES_MAX: Final = 1 << 16
"""Longer lines are cut here for the digest."""

FIRST_LINES: Final = 4
"""Different lines with a time by which the beginning of a log is recognized within another file.

Rotation may cut between equal lines of one millisecond: several of them are no more in common than one.
"""

SECONDS_LINES: Final = 4
"""So many lines with a time to the second vouch like one to the millisecond."""

_DIGEST_CHARACTERS: Final = 32
_STAMPED_WITHIN_BYTES: Final = 192
"""How far into a line its time begins: the names of a pod and a container may come first."""

_TIME: Final = re.compile(rb"\d\d:\d\d:\d\d[.,]\d{3}|(?<!\d)1\d{12}(?!\d)")
"""A time of day to the millisecond, or milliseconds since the epoch: seconds are often shared."""

_SECONDS: Final = re.compile(rb"\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Beginning:
    """The ladder of digests of a log, and the marks of its `first_lines` with a time, none of JSON.

    `first_line` is the digest of the first line that is not blank. `seconds` is a ladder by times to the
    second, of a log without any to the millisecond. `at_once` of the `first_lines` have the first one's time.
    """

    rungs: tuple[str, ...] = ()
    first_lines: tuple[str, ...] = ()
    first_line: str | None = None
    seconds: tuple[str, ...] = ()
    at_once: int = 1

    def in_common(self, other: "Beginning") -> int | None:
        """Return how many lines with a time both begin with, as far as known; None if they differ.

        Of times to the second `SECONDS_LINES` count as one.
        """
        by_seconds = not (self.rungs and other.rungs)
        one, another = (self.seconds, other.seconds) if by_seconds else (self.rungs, other.rungs)
        both = min(len(one), len(another))
        if not both:
            return 0
        if one[:both] != another[:both]:
            return None
        return RUNGS[both - 1] // (SECONDS_LINES if by_seconds else 1)

    def may_have_become(self, other: "Beginning") -> bool:
        """Return whether a log with this beginning has the other one if it only grew."""
        by_seconds = bool(self.seconds) and not other.rungs  # else times to the second count no more
        return (
            other.rungs[: len(self.rungs)] == self.rungs
            and (not by_seconds or other.seconds[: len(self.seconds)] == self.seconds)
            and self.first_line in (None, other.first_line)
        )

    def to_text(self) -> str:
        """Return the text that the table `inputs` keeps."""
        first_lines = ",".join(self.first_lines)
        seconds = ",".join(self.seconds)
        return ";".join(
            (",".join(self.rungs), first_lines, self.first_line or "", seconds, str(self.at_once))
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the beginning with this text; raise ValueError if it is none."""
        rungs, first_lines, first_line, seconds, at_once = text.split(";")
        return cls(
            tuple(filter(None, rungs.split(","))),
            tuple(filter(None, first_lines.split(","))),
            first_line or None,
            tuple(filter(None, seconds.split(","))),
            int(at_once),
        )


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
    text = line[:LINE_BYTES_MAX].rstrip(b"\r\n")
    return f"{zlib.crc32(text):08x}{line_digest(text)}"


def read_beginning(content: IO[bytes]) -> Beginning:
    """Return the beginning of a file's unpacked content; raise what reading raises.

    A last line without its end does not count for the ladder, since it may go on.
    """
    whole = hashlib.sha256()
    rungs: list[str] = []
    seconds: list[str] = []
    first_lines: dict[str, bytes] = {}
    first_line: str | None = None
    stamped, timed, left = 0, 0, BEGINNING_BYTES_MAX
    while left > 0 and len(rungs) < len(RUNGS) and (line := content.readline(min(left, LINE_BYTES_MAX))):
        left -= len(line)
        if not line.strip():
            continue
        first_line = first_line or line_digest(line)
        if not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
            break
        whole.update(line.rstrip(b"\r\n") + b"\n")
        time = time_in(line)
        if time is not None:
            stamped += 1
            if len(first_lines) < FIRST_LINES and not line.startswith(b"{"):
                first_lines.setdefault(line_mark(line), time)
            if stamped in RUNGS:
                rungs.append(whole.hexdigest()[:_DIGEST_CHARACTERS])
        elif len(seconds) < len(RUNGS) and _SECONDS.search(_with_time(line)):
            timed += 1
            if timed in RUNGS:
                seconds.append(whole.hexdigest()[:_DIGEST_CHARACTERS])
    times = list(first_lines.values())
    return Beginning(
        tuple(rungs),
        tuple(first_lines),
        first_line,
        () if rungs else tuple(seconds),
        times.count(times[0]) if times else 1,
    )
