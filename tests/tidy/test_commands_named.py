"""A command that a page, a message or a remedy names is one that works."""

from pathlib import Path

import pytest

from kustos.acl import AclOperation
from kustos.cli.failures import kafka_error_text
from kustos.client.errors import KafkaError, Requester
from testkit.paths import ROOT
from tests.tidy.command_lines import (
    lines_of_page,
    mentioned,
    problem_of,
    require_whole,
    texts_of_source,
    words_of,
)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def problems(lines: list[str]) -> list[str]:
    return [problem for problem in map(problem_of, lines) if problem is not None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_commands_and_options_that_there_are(page: Path) -> None:
    text = page.read_text()
    assert problems([*lines_of_page(text), *mentioned(text)]) == []


def test_the_readme_shows_whole_commands() -> None:
    lines = list(lines_of_page(PAGES[0].read_text()))
    assert len(lines) > 20
    for line in lines:
        require_whole(line)


def test_the_code_names_commands_and_options_that_there_are() -> None:
    lines = [
        line
        for path in sorted((ROOT / "src").rglob("*.py"))
        for text in texts_of_source(path)
        for line in mentioned(text)
    ]
    assert len(lines) > 50
    assert problems(lines) == []


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(31, "", Requester(who, f"`{who}`", AclOperation.ALTER, "one:1,[::1]:2", logs_in))
        for who, logs_in in (("User:al", True), ("User:ANONYMOUS", False), ("User:a b'c", True))
    ]
    + [KafkaError(35, "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.")],
    ids=lambda error: f"{error.name}-{error.requester.principal if error.requester else ''}",
)
def test_a_remedy_is_a_whole_command(error: KafkaError) -> None:
    (remedy,) = mentioned(kafka_error_text(error))
    require_whole(remedy)
    if error.requester is not None:
        assert error.requester.principal in words_of(remedy)


@pytest.mark.parametrize(
    "line", ["kustos fly", "kustos acls fly", "kustos lint --metadata x", "kustos acls list --topik t"]
)
def test_what_is_no_command_is_noticed(line: str) -> None:
    assert problem_of(line) is not None
