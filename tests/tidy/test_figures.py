"""A figure of a benchmark stands on one page, and every benchmark says which."""

import re
from pathlib import Path

from testkit.paths import ROOT

INDEX = ROOT / "docs" / "how-to" / "benchmark.md"
ROW = re.compile(r"^\| `([a-z_]+)` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
FIGURE = re.compile(r"\d(?:[\d.,]*\d)? (?:ns|µs|ms|s|MB|GB|times|%)(?![\w-])")


def pages() -> dict[str, Path | None]:
    """Return the page that holds each benchmark's figures; None for those that are only printed."""
    found: dict[str, Path | None] = {}
    for name, cell in ROW.findall(INDEX.read_text()):
        link = re.search(r"\]\(([^)#]*)", cell)
        found[name] = None if link is None else (INDEX.parent / link[1]).resolve() if link[1] else INDEX
    return found


def test_the_page_of_benchmarks_names_each_of_them_and_where_its_figures_are() -> None:
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "figures"}
    assert set(pages()) == modules
    assert [page for page in pages().values() if page is not None and not page.is_file()] == []


def test_who_names_a_benchmark_on_another_page_links_to_its_figures_and_repeats_none() -> None:
    known = pages()
    repeated = [
        (page.name, name, figures)
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for paragraph in re.split(r"\n\n|\n- ", page.read_text())
        for name in re.findall(r"`make bench-([a-z_]+)`", paragraph)
        if known[name] not in {None, page} and (figures := FIGURE.findall(paragraph))
    ]
    assert repeated == []
