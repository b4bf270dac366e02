"""What generated pages are made of: where they lie, and tables in Markdown."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

REFERENCE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
README: Final = REFERENCE.parent.parent / "README.md"
WIDE: Final = "---\nhide:\n  - toc\n---"
"""The place of the table of contents is the table's, on a page that has one table and no sections."""


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table."""
    cells = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def page(*parts: str | list[str]) -> str:
    """Return parts with blank lines between them."""
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts) + "\n"
