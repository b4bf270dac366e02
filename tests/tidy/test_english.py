"""Words that standard technical English does not need, and the packages and pages that do without them."""

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

PAGES = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/explanation/analysis.md",
    "docs/explanation/architecture.md",
    "docs/explanation/bytes.md",
    "docs/explanation/differences-from-kafka.md",
    "docs/explanation/metadata-log.md",
    "docs/explanation/node-profile.md",
    "docs/explanation/performance.md",
    "docs/explanation/request.md",
    "docs/explanation/testing.md",
    "docs/how-to/acls-and-users.md",
    "docs/how-to/admin-listener.md",
    "docs/how-to/ask-about-access.md",
    "docs/how-to/audit.md",
    "docs/how-to/bearer-tokens.md",
    "docs/how-to/cluster-mode.md",
    "docs/how-to/connect.md",
    "docs/how-to/custom-authorizer.md",
    "docs/how-to/decide-in-bulk.md",
    "docs/how-to/delegation-tokens.md",
    "docs/how-to/guard-a-cluster.md",
    "docs/how-to/host-names.md",
    "docs/how-to/kerberos.md",
    "docs/how-to/kubernetes.md",
    "docs/how-to/lint-acls.md",
    "docs/how-to/load-balancer.md",
    "docs/how-to/look-into-metadata.md",
    "docs/how-to/map-names.md",
    "docs/how-to/metrics.md",
    "docs/how-to/output.md",
    "docs/how-to/principal-builder.md",
    "docs/how-to/review-acl-changes.md",
    "docs/how-to/sasl-callback-handlers.md",
    "docs/how-to/tls.md",
    "docs/how-to/try-acls.md",
    "docs/how-to/unauthenticated-clients.md",
    "docs/how-to/upstream-identity.md",
    "docs/how-to/worker-processes.md",
)

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
    return sorted(sources) + [ROOT / page for page in PAGES]


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
