"""The documentation says what the code says, and every page can be found."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from testkit.browser import browse
from testkit.paths import ROOT

CLICKS = """
<script>
const scheme = () => document.body.getAttribute("data-md-color-scheme")
const seen = JSON.parse(sessionStorage.getItem("seen") ?? "[]")
const timer = setInterval(() => {
  const toggle = document.querySelector("[data-md-component=palette] label:not([hidden])")
  if (toggle === null) return
  clearInterval(timer)
  seen.push(scheme())
  if (seen.length === 3) return document.body.setAttribute("data-seen", seen.join(" "))
  toggle.click()
  sessionStorage.setItem("seen", JSON.stringify(seen))
  location.reload()
}, 10)
</script>
"""
"""Clicks the toggle of the palette and loads the page again, twice, and notes the scheme of each time."""


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


def test_a_click_on_the_toggle_changes_the_palette_for_the_pages_after(tmp_path: Path) -> None:
    """A page of its own, with the settings of the documentation; the browser prefers light."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# A page\n")
    settings = {"INHERIT": str(ROOT / "mkdocs.yml"), "docs_dir": "pages", "nav": ["index.md"], "hooks": []}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    build = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--config-file",
        str(tmp_path / "mkdocs.yml"),
    ]
    subprocess.run(build, check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    page = tmp_path / "site" / "index.html"
    page.write_text(page.read_text().replace("</body>", f"{CLICKS}</body>"))
    shown = browse(page, tmp_path / "profile", "--dump-dom", "--virtual-time-budget=20000").stdout
    assert re.findall('data-seen="([^"]*)"', shown) == ["default slate default"]
