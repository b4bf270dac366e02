"""Words that standard technical English does not need; the packages and pages without them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

WORDS = {
    "beside": "in addition to, next to, with",
    "deed": "effect, action",
    "lane": "queue, sequence",
    "nobody": "no client, no user, none",
    "of which": "a clause of its own",
    "rooms": "packages",
    "stranger": "unauthenticated client",
    "strangers": "unauthenticated clients",
    "told": "report, send, log",
    "twice is harmless": "further calls have no effect",
    "whoever": "the client that, the user who",
}
"""Word → what to write instead."""

PACKAGES = (
    "acl",
    "analysis",
    "auth",
    "authorizer",
    "cli",
    "client",
    "gateway",
    "legacy",
    "metadata",
    "protocol",
    "runtime",
    "server",
    "tls",
    "wire",
)
"""Packages whose code, comments and messages do without them."""

UNREAD = ("cli/legacy", "cli/migrate", "cli/pipeline")
"""Parts of these packages that still have some of the words."""

NOT_YET = {
    "docs/reference/anomalies.md",
    "docs/reference/audit-fields.md",
    "docs/reference/authorization.md",
    "docs/reference/cli.md",
    "docs/reference/coverage.md",
}
"""Pages that are generated from texts in the code, which still have such words."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(file, word) → why the file needs the word; at most ten."""

PATTERN = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)


def files() -> list[Path]:
    kustos = ROOT / "src" / "kustos"
    unread = [kustos / part for part in UNREAD]
    sources = [
        path
        for package in PACKAGES
        for path in (kustos / package).rglob("*.py")
        if not any(path.is_relative_to(part) for part in unread)
    ]
    pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    return sorted(sources) + [page for page in pages if str(page.relative_to(ROOT)) not in NOT_YET]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_in_standard_english(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = [
        f"line {number}: `{word}`, write {WORDS[word.lower()]}"
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        for word in PATTERN.findall(line)
        if (name, word.lower()) not in EXCEPTIONS
    ]
    assert not found, "\n".join(found)


def test_the_list_of_exceptions_stays_short() -> None:
    assert len(EXCEPTIONS) <= 10
    for name, word in EXCEPTIONS:
        assert re.search(rf"\b{word}\b", (ROOT / name).read_text(encoding="utf-8"), re.IGNORECASE), name
