"""Words that standard technical English does not need; all pages and most packages do without them."""

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
"""The packages whose code, comments and messages do not contain these words."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(file, word) → why the file needs the word; at most ten."""

PATTERN = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)


def files() -> list[Path]:
    kustos = ROOT / "src" / "kustos"
    sources = [path for package in PACKAGES for path in (kustos / package).rglob("*.py")]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(sources) + sorted(pages)


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
