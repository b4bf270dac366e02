"""CHANGELOG.md follows Keep a Changelog; its newest release is the version of package and chart."""

import re

import yaml

import kustos
from testkit.paths import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text()
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
ENTRY_CHARACTERS_MAX = 480
"""Four lines; the link leads to more."""


def entries(text: str) -> list[str]:
    return [" ".join(entry.split()) for entry in re.findall(r"^- (?:.+\n)(?:  .+\n)*", text, re.MULTILINE)]


def release(version: str) -> str:
    return TEXT.split(f"## [{version}]")[1].split("\n## [")[0]


def test_the_newest_release_is_the_version_there_is_below_what_is_unreleased() -> None:
    headings = re.findall(r"^## \[(.+?)\](?: - (.+))?$", TEXT, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == kustos.__version__
    assert [date for _, date in headings[1:] if not re.fullmatch(r"\d{4}-\d\d-\d\d", date)] == []


def test_the_helm_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "kustos" / "Chart.yaml").read_text())
    assert chart["appVersion"] == kustos.__version__


def test_changes_are_grouped_by_the_kinds_of_keep_a_changelog() -> None:
    for part in TEXT.split("\n## [")[1:]:
        kinds = re.findall(r"^### (.+)$", part, re.MULTILINE)
        assert set(kinds) <= KINDS
        assert len(kinds) == len(set(kinds))


def test_entries_are_short_and_link_to_a_page() -> None:
    found = entries(TEXT)
    assert len(found) > 50
    assert [entry for entry in found if len(entry) > ENTRY_CHARACTERS_MAX] == []
    assert [entry for entry in found if not re.match(r"- \[[^]]+\]\([^)]+\)", entry)] == []


def test_a_change_is_one_sentence() -> None:
    changes = entries(release("Unreleased") + release(kustos.__version__))
    assert [each for each in changes if not re.fullmatch(r"- \[[^]]+\]\([^)]+\): .+\.", each)] == []
    several = re.compile(r"(?<!No)\. [A-Z`]")
    assert [each for each in changes if several.search(each)] == []
