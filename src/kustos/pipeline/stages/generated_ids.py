"""Ids that kustos makes for lines: of events that bring none, and of lines that are quarantined."""

import hashlib
import re
from typing import Final

EVENT_ID_BEGIN: Final = "kafka-"
"""What the id of an event begins with that brings none, as Kafka's text."""

LINE_ID_BEGIN: Final = "line-"
"""What the id of a line begins with whose event brings its own."""

DIGEST_CHARACTERS: Final = 32
"""Of a SHA-256 in hexadecimal: 128 bits, of which no two lines agree by chance."""

_GENERATED: Final = re.compile(f"{EVENT_ID_BEGIN}[0-9a-f]{{{DIGEST_CHARACTERS}}}(-[0-9]+)?", re.ASCII)


def is_generated(event_id: str) -> bool:
    """Return whether an id is as those made here.

    Whoever brought such a one could have another's line taken for a copy, which nobody would see.
    """
    return _GENERATED.fullmatch(event_id) is not None


def line_digest(log: str, position: int | None, line: bytes) -> str:
    """Return what tells the line at this place of its log from all others.

    Bytes, not characters: what is no text in UTF-8 must not become equal by being read as such. The end of a
    line that Windows writes is none of it.
    """
    place = f"{log}\n{'' if position is None else position}\n".encode()
    return hashlib.sha256(place + line.rstrip(b"\r")).hexdigest()[:DIGEST_CHARACTERS]


def numbered(line_key: str | None, occurrence: int) -> str:
    """Return the id of the n-th of equal lines of a log."""
    return f"{line_key}-{occurrence}"
