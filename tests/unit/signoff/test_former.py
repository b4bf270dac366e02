"""What is new, gone and changed since a former review, and what was decided then."""

import json
from datetime import timedelta
from typing import Any

import pytest

from kustos.acl.forms import texts_of
from kustos.signoff import SignoffError
from kustos.signoff.document import read_review, review_document, verify_review, write_review
from kustos.signoff.former import Comparison, former_of
from testkit.review_documents import ACLS, AT, ROWS, document, entitlement_row
from testkit.review_rows import AS_OF, acl
from tests.unit.signoff.test_document import decided

FORMER = decided(document(), WRITE="revoke", ALL="ask")


def compared(rows: list[dict[str, Any]]) -> tuple[dict[str, tuple[Any, ...]], Comparison]:
    comparison = Comparison(former_of(FORMER))
    found = list(comparison.of(rows))
    assert [{**one, "change": 0, "changed": 0, "former_decision": 0} for one in found] == [
        {**row, "change": 0, "changed": 0, "former_decision": 0} for row in rows
    ]
    by_operation = {
        one["operation"]: (one["change"], one["changed"], one["former_decision"]) for one in found
    }
    return by_operation, comparison


def test_the_same_rows_are_the_same_whatever_their_use() -> None:
    later = [row | {"as_of": AS_OF + timedelta(days=90), "use_count": 77, "last_used": AT} for row in ROWS]
    found, comparison = compared(later)
    assert {change for change, _, _ in found.values()} == {"SAME"}
    assert {name: decision for name, (_, _, decision) in found.items()} == {
        "READ": "keep",
        "DESCRIBE": "keep",
        "WRITE": "revoke",
        "ALL": "ask",
    }
    assert comparison.gone() == []
    assert comparison.counts == {"SAME": 4, "revoked_and_granted": 1}


def test_new_gone_and_changed_rows_are_told_with_what_changed() -> None:
    denied = texts_of(acl("User:*", "READ", "TOPIC", "pay.secret", deny=True))
    added = acl("User:alice", "ALTER", "TOPIC", "pay.in")
    rows = [
        ROWS[0] | {"effect": "PARTLY_DENIED", "denied_by": [denied], "deny_count": 1, "name_count": 5},
        ROWS[1] | {"granted_since": AT, "team": "shops"},
        entitlement_row("User:alice", "ALTER", "pay.in", granted_by=[texts_of(added)]),
        ROWS[3],
    ]
    found, comparison = compared(rows)
    assert found == {
        "READ": ("CHANGED", ["effect", "denied_by", "name_count"], "keep"),
        "DESCRIBE": ("CHANGED", ["team", "granted_since"], "keep"),
        "ALTER": ("NEW", [], None),
        "ALL": ("SAME", [], "ask"),
    }
    (gone,) = comparison.gone()
    assert (gone["operation"], gone["change"], gone["former_decision"]) == ("WRITE", "GONE", "revoke")
    assert comparison.gone() == [gone]
    assert comparison.counts == {"CHANGED": 2, "NEW": 1, "SAME": 1, "GONE": 1}


def test_what_was_compared_is_part_of_what_is_signed() -> None:
    _, comparison = compared(ROWS[:2])
    rows = list(comparison.of(ROWS[:2]))
    since = {"as_of": FORMER["review"]["as_of"], "gone": comparison.gone()}
    made = review_document(rows, ACLS, as_of=AS_OF, dormant_days=90, created_at=AT, since=since)
    again = read_review(write_review(made))
    assert {one["operation"] for one in again["review"]["since"]["gone"]} == {"WRITE", "ALL"}
    again["review"]["since"]["gone"].pop()
    with pytest.raises(SignoffError, match="altered"):
        verify_review(again)
    json.dumps(former_of(made))


def test_without_a_former_review_nothing_is_compared() -> None:
    comparison = Comparison(None)
    assert {one["change"] for one in comparison.of(ROWS)} == {None}
    assert (comparison.gone(), comparison.counts) == ([], {})
