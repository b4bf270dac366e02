"""Lists in words, cut where a reader would stop."""

from collections.abc import Sequence
from typing import Final

SHOWN_MAX: Final = 8
"""Items of a list that are written out in a text; the rest is counted, and JSON has all of it."""


def listed(items: Sequence[str], last: str) -> str:
    """Return `a, b and c`, with `last` for "and"; of a long list the end is only counted."""
    if len(items) > SHOWN_MAX:
        return f"{', '.join(items[: SHOWN_MAX - 1])} {last} {len(items) - SHOWN_MAX + 1} more"
    if len(items) > 1:
        return f"{', '.join(items[:-1])} {last} {items[-1]}"
    return "".join(items)


def quoted(text: str) -> str:
    """Return a text in backticks."""
    return f"`{text}`"
