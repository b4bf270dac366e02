"""Lists in words, truncated to a readable length."""

from collections.abc import Sequence
from typing import Final

SHOWN_MAX: Final = 8
"""Items of a list that a text spells out; it counts the rest, and JSON has all."""


def listed(items: Sequence[str], last: str, shown_max: int = SHOWN_MAX) -> str:
    """Return `a, b and c`, with `last` for "and"; only counts the end of a longer list."""
    if len(items) > shown_max:
        shown = max(1, shown_max - 1)
        return f"{', '.join(items[:shown])} {last} {len(items) - shown} more"
    if len(items) > 1:
        return f"{', '.join(items[:-1])} {last} {items[-1]}"
    return "".join(items)


def quoted(text: str) -> str:
    """Return a text in backticks."""
    return f"`{text}`"
