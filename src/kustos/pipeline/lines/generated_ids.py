"""Ids that kustos generates: for events without an id, and for quarantined lines."""

import hashlib
import re
from typing import Final

EVENT_ID_BEGIN: Final = "kafka-"
"""The prefix of generated event ids, as for Kafka's text."""

LINE_ID_BEGIN: Final = "line-"
"""The prefix of the id of a line whose event has an id of its own."""

DIGEST_CHARACTERS: Final = 32
"""Of a SHA-256 in hexadecimal: 128 bits, so that no two lines collide by chance."""

_GENERATED: Final = re.compile(f"{EVENT_ID_BEGIN}[0-9a-f]{{{DIGEST_CHARACTERS}}}(-[0-9]+)?", re.ASCII)


def is_generated(event_id: str) -> bool:
    """Return whether an id has the form of the generated ones.

    A forged event with such an id could turn another line into its duplicate, unnoticed.
    """
    return _GENERATED.fullmatch(event_id) is not None


def line_digest(log: str, position: int | None, line: bytes) -> str:
    """Return a digest that identifies the line at this place of its log.

    Bytes, not characters: different invalid UTF-8 must not become equal by decoding. A carriage return at the
    end does not count.
    """
    place = f"{log}\n{'' if position is None else position}\n".encode()
    return hashlib.sha256(place + line.rstrip(b"\r")).hexdigest()[:DIGEST_CHARACTERS]


def numbered(line_key: str | None, occurrence: int) -> str:
    """Return the id of the n-th of equal lines of a log."""
    return f"{line_key}-{occurrence}"
