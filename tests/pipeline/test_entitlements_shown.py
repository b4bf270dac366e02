"""The rows of a review on a terminal: two lines each, which eighty columns hold; elsewhere a table."""

import io
from contextlib import redirect_stdout
from typing import Any

import pytest

from kustos.cli.pipeline.entitlements import SHOWN_MAX, ShownRows, print_entitlements
from testkit.review_rows import AS_OF

RECORD = "2 of the 90 days up to 2026-11-28 have a record: too early to say"
COUNTS: dict[str, Any] = {"record": {"text": RECORD}, "since": {"as_of": "2026-06-30T00:00:00Z", "NEW": 1}}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def row(principal: str, name: str, **changed: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "principal": principal,
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource_name": name,
        "pattern_type": "LITERAL",
        "host": "*",
        "basis": "MatchingAcl",
        "principal_count": 1,
        "name_count": 1,
        "effect": "WHOLE",
        "use_count": 0,
        "used_by_count": 0,
        "last_used": None,
        "is_dormant": True,
        "change": "NEW",
        "changed": [],
        "former_decision": None,
    }
    return made | changed


ROWS = [
    row("User:payments-service", "pay.eu.incoming-transactions.v2", operation="DESCRIBE_CONFIGS"),
    row(
        "User:*",
        "pay.",
        pattern_type="PREFIXED",
        principal_count=80,
        name_count=54,
        effect="PARTLY_DENIED",
        use_count=1_234_567,
        used_by_count=79,
        last_used=AS_OF,
        change="CHANGED",
        changed=["effect", "denied_by"],
        former_decision="revoke",
    ),
    row("User:eve", "old", change="GONE", last_used="2026-09-01T00:00:00Z", use_count=1, used_by_count=1),
    row("User:root", "*", resource_type="ANY", basis="SuperUser", operation="ALL", change="SAME"),
]


def printed(stream: io.StringIO, rows: list[dict[str, Any]]) -> list[str]:
    shown = ShownRows(0, [])
    for each in rows:
        shown.add(each)
    with redirect_stdout(stream):
        print_entitlements(COUNTS, shown, "today", is_chosen=True)
    return stream.getvalue().splitlines()


def test_eighty_columns_hold_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed(Terminal(), ROWS)
    assert max(map(len, lines)) <= 80
    assert lines[1] == RECORD
    assert lines[2:6] == [
        "User:payments-service may DESCRIBE_CONFIGS TOPIC pay.eu.incoming-transactions.v2",
        "  new; no use recorded",
        "User:* (80 known) may READ TOPIC pay. (prefix, 54 known)",
        "  changed: effect, denies, was revoked; denied in part; used 1,234,567 times by",
    ]
    assert lines[-4:] == [
        "User:eve may READ TOPIC old",
        "  gone; used once, the last on 2026-09-01",
        "User:root may do everything (super user)",
        "  the same; no use recorded",
    ]


def test_a_pipe_gets_a_line_each_and_is_told_how_many_are_left_out() -> None:
    lines = printed(io.StringIO(), ROWS * 20)
    assert lines[2].split()[-1] == "change"
    assert len(lines) == 2 + 1 + SHOWN_MAX + 1
    assert lines[-1] == f"and {20 * len(ROWS) - SHOWN_MAX} more, see `--csv` or `-o json`"
    assert printed(io.StringIO(), [])[2:] == ["no ACL allows it"]
