"""The documentation says what the code says, and every page can be found."""

import re
import subprocess
import sys

import yaml

from testkit.paths import ROOT


def pages(entry: object) -> set[str]:
    if isinstance(entry, dict):
        return set().union(*(pages(value) for value in entry.values()))
    if isinstance(entry, list):
        return set().union(*(pages(value) for value in entry))
    return {str(entry)}


def test_generated_pages_are_current() -> None:
    reference = ROOT / "docs" / "reference"
    program = (
        "import runpy, sys, json\n"
        "pages = runpy.run_path(sys.argv[1])['PAGES']\n"
        "print(json.dumps({name: page() for name, page in pages.items()}))\n"
    )
    script = str(ROOT / "scripts" / "generate_docs.py")
    made = subprocess.run(
        [sys.executable, "-c", program, script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    generated: dict[str, str] = yaml.safe_load(made)
    assert generated
    stale = [name for name, text in generated.items() if (reference / name).read_text() != text]
    assert stale == [], "run `python scripts/generate_docs.py`"


def test_every_page_is_in_the_navigation() -> None:
    # mkdocs' own tags name functions of its extensions, which nobody needs here
    settings = re.sub(r"!!python/\S+", "", (ROOT / "mkdocs.yml").read_text())
    navigation = yaml.safe_load(settings)["nav"]
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages(navigation) == written
