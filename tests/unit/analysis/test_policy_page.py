"""The page on policy files says what the parser takes."""

import re

import pytest

from kustos.acl import ResourceType
from kustos.analysis import parse_policy
from testkit.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "policy.md").read_text()
REVIEW = (ROOT / "docs" / "how-to" / "review-acl-changes.md").read_text()
ROWS = dict(re.findall(r"^\| (principals|operations|resources|hosts) \| (.*) \|$", PAGE, re.MULTILINE))


def examples(part: str) -> list[str]:
    return [text for text in re.findall(r"`([^`]+)`", ROWS[part]) if text not in {"and", "or"}]


@pytest.mark.parametrize("page", [PAGE, REVIEW])
def test_the_files_on_the_pages_are_policies(page: str) -> None:
    (text,) = re.findall(r"```yaml[^\n]*\n(.*?)```", page, re.DOTALL)
    assert len(parse_policy(text, "page").statements) >= 2


@pytest.mark.parametrize("part", ["principals", "operations", "resources", "hosts"])
def test_each_part_of_a_sentence_can_be_written_as_the_page_says(part: str) -> None:
    names = {kind.name.lower().replace("_", "-") for kind in ResourceType}
    found = [text for text in examples(part) if text != "..."]
    assert len(found) >= 3
    for text in found:
        sentence = {
            "principals": f"{text} READ topic orders",
            "operations": f"everyone {text} topic orders",
            "resources": f"everyone ALL {text} {'name' if text in names else ''}",
            "hosts": f"everyone READ topic orders {text}",
        }[part]
        statements = parse_policy(f"version: 1\nstatements:\n- never: {sentence}\n").statements
        assert len(statements) == 1, sentence
