"""A hook of mkdocs: the search finds pages that help with a task before those that explain a decision."""

from typing import Any, Final

BOOSTS: Final = {
    "faq.md": 4.0,
    "how-to/": 2.0,
    "tutorial/": 2.0,
    "explanation/decisions/": 0.2,
    "reference/coverage.md": 0.1,
}
"""Beginning of a page's path → factor of its matches."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Set the factor of a page in the index of the search."""
    for start, boost in BOOSTS.items():
        if page.file.src_uri.startswith(start):
            page.meta.setdefault("search", {"boost": boost})
    return markdown
