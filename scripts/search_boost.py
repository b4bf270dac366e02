"""A mkdocs hook that ranks task pages above decision pages in the search."""

from typing import Any, Final

BOOSTS: Final = {
    "faq.md": 4.0,
    "how-to/": 2.0,
    "tutorial/": 2.0,
    "explanation/decisions/": 0.2,
    "reference/coverage.md": 0.1,
}
"""Path prefix → factor for matches on these pages."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Set the page's factor in the search index."""
    for start, boost in BOOSTS.items():
        if page.file.src_uri.startswith(start):
            page.meta.setdefault("search", {"boost": boost})
    return markdown
