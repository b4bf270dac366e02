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
    assert stale == [], "run `python -m scripts.generate_docs`"


def test_every_page_is_in_the_navigation() -> None:
    # mkdocs' own tags name functions of its extensions, which nobody needs here
    settings = re.sub(r"!!python/\S+", "", (ROOT / "mkdocs.yml").read_text())
    navigation = yaml.safe_load(settings)["nav"]
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages(navigation) == written


def test_links_of_the_pages_beside_the_code_lead_somewhere() -> None:
    # mkdocs looks at those below docs/
    links = [
        (page.name, target.split("#")[0])
        for page in ROOT.glob("*.md")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    ]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link[1]).exists()] == []


def test_no_page_names_a_make_target_that_is_not_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {f"bench-{path.stem}" for path in (ROOT / "benchmarks").glob("*.py")}
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {word for page in pages for word in re.findall(r"(?:`|^|\$ )make ([a-z_-]+)", page.read_text())}
    assert {"demo", "test"} <= named
    assert named <= targets
