"""Helpers for generated pages: paths and Markdown tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

REFERENCE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
README: Final = REFERENCE.parent.parent / "README.md"
WIDE: Final = "---\nhide:\n  - toc\n---"
"""Front matter that hides the table of contents, for a page with one wide table and no sections."""


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table."""
    cells = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def page(*parts: str | list[str]) -> str:
    """Join parts with blank lines."""
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts) + "\n"
