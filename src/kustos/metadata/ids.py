"""UUIDs as Kafka encodes and generates them."""

import base64
import re
from typing import Final
from uuid import UUID

from kustos.runtime import Entropy

_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_DASH: Final = 0x3E
"""The six bits that URL-safe Base64 writes as a dash."""


def uuid_text(value: UUID) -> str:
    """Return Kafka's text form of a UUID: 22 characters of URL-safe Base64."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_of_text(text: str) -> UUID:
    """Return the UUID of 22 characters of URL-safe Base64; raise `ValueError` for any other text."""
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"`{text}` is not a UUID in 22 characters of URL-safe Base64")
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def new_uuid(entropy: Entropy) -> UUID:
    """Return a random UUID whose text does not begin with a dash, which tools would parse as an option."""
    while (uuid := entropy.uuid()).bytes[0] >> 2 == _DASH:
        continue
    return uuid


SNAPSHOT_SUFFIX: Final = ".checkpoint"
SEGMENT_SUFFIX: Final = ".log"
METADATA_SUFFIXES: Final = frozenset({SNAPSHOT_SUFFIX, SEGMENT_SUFFIX})
