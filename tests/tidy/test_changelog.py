"""CHANGELOG.md has a release for the version there is, and short lines that link to more."""

import re

import kustos
from testkit.paths import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text()
ENTRY_CHARACTERS_MAX = 480
"""Four lines; whoever wants more follows the link."""


def test_the_newest_release_is_the_version_there_is_below_what_is_unreleased() -> None:
    headings = re.findall(r"^## \[(.+?)\](?: - (.+))?$", TEXT, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == kustos.__version__
    assert [date for _, date in headings[1:] if not re.fullmatch(r"\d{4}-\d\d-\d\d", date)] == []


def test_entries_are_short_and_link_to_a_page() -> None:
    added = re.split(r"^### Known to be missing$", TEXT, flags=re.MULTILINE)[0]
    found = re.findall(r"^- (?:.+\n)(?:  .+\n)*", added, re.MULTILINE)
    entries = [" ".join(entry.split()) for entry in found]
    assert len(entries) > 50
    assert [entry for entry in entries if len(entry) > ENTRY_CHARACTERS_MAX] == []
    assert [entry for entry in entries if not re.match(r"- \[[^]]+\]\([^)]+\)", entry)] == []
