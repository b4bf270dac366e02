"""What is signed off is what was shown: any change of a document is found."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl.forms import texts_of
from kustos.signoff import SignoffError
from kustos.signoff.document import (
    Document,
    ReviewDecision,
    digest_of,
    read_review,
    review_document,
    sign_off,
    verify_review,
    with_decision,
    with_decisions,
    write_review,
)
from kustos.signoff.row_choice import RowChoice
from kustos.signoff.signature import sign_review, verify_signed_review
from testkit.review_documents import (
    ACLS,
    AT,
    READ_PAY,
    ROWS,
    document,
    entitlement_row,
    keys,
)
from testkit.review_rows import AS_OF


def row_id(made: Document, principal: str, operation: str) -> str:
    (found,) = [
        row["row_id"]
        for row in made["review"]["rows"]
        if (row["principal"], row["operation"]) == (principal, operation)
    ]
    return str(found)


def decided(made: Document, **verdicts: str) -> Document:
    """Return a document with each row kept but those given, by their operations."""
    for row in made["review"]["rows"]:
        decision = ReviewDecision(verdicts.get(row["operation"], "keep"))
        made = with_decision(made, row["row_id"], decision, by="Ann", at=AT, reason="seen")
    return made


def test_a_review_is_read_back_as_it_was_written_and_counts_its_decisions() -> None:
    made = decided(document(), WRITE="revoke", ALL="ask")
    state = verify_review(read_review(write_review(made)))
    assert read_review(write_review(made)) == made
    assert (state.rows, state.keep, state.revoke, state.ask, state.undecided) == (4, 2, 1, 1, 0)
    assert not state.is_complete
    with pytest.raises(SignoffError, match="1 have the verdict `ask`"):
        sign_off(made, by="Ann", at=AT)
    closed = sign_off(decided(document(), WRITE="revoke"), by="Ann", at=AT)
    assert verify_review(closed).is_signed_off
    with pytest.raises(SignoffError, match="no row `x`"):
        with_decisions(made, [row_id(made, "User:bob", "WRITE"), "x"], ReviewDecision.KEEP, by="Ann", at=AT)
    with pytest.raises(SignoffError, match="signed off"):
        with_decision(closed, row_id(closed, "User:bob", "WRITE"), ReviewDecision.KEEP, by="Eve", at=AT)
    with pytest.raises(SignoffError, match="already"):
        sign_off(closed, by="Ann", at=AT)


def test_a_document_whose_acls_are_none_is_refused_though_its_digest_fits() -> None:
    """Anybody can compute a digest, and what is compared with the document is written again."""
    evil: list[Any] = [None, {}, [{}], ["x"], [texts_of(READ_PAY) | {"host": 7}]]
    for denied_by in evil:
        with pytest.raises(SignoffError, match="invalid ACL"):
            verify_review(
                review_document(
                    [ROWS[0] | {"denied_by": denied_by}], ACLS, as_of=AS_OF, dormant_days=90, created_at=AT
                )
            )


UNKNOWN_NAMES: list[Any] = [None, 7, [], "X"]


@pytest.mark.parametrize("column", ["operation", "resource_type", "pattern_type"])
@pytest.mark.parametrize("value", UNKNOWN_NAMES)
def test_a_row_with_an_unknown_name_is_refused_even_if_its_digest_fits(column: str, value: Any) -> None:
    rows = [ROWS[0] | {column: value}]
    made = review_document(rows, ACLS, as_of=AS_OF, dormant_days=90, created_at=AT)
    with pytest.raises(SignoffError, match=f"unknown `{column}`"):
        verify_review(made)


@pytest.mark.parametrize("acls", [None, "x", [], {}, {"digest": "sha256:"}])
def test_a_review_of_unknown_acls_is_refused_even_if_its_digest_fits(acls: Any) -> None:
    made = document()
    review = made["review"] | {"acls": acls}
    with pytest.raises(SignoffError, match="`acls`"):
        verify_review(made | {"review": review, "review_digest": digest_of(review)})


def test_the_order_of_rows_does_not_matter() -> None:
    again = review_document(reversed(ROWS), ACLS, as_of=AS_OF, dormant_days=90, created_at=AT)
    assert again == document()
    with pytest.raises(SignoffError, match="twice"):
        review_document([*ROWS, ROWS[0]], ACLS, as_of=AS_OF, dormant_days=90, created_at=AT)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where the plain values of a document stand."""
    if isinstance(value, dict):
        return [place for key, one in value.items() for place in places(one, (*path, key))]
    if isinstance(value, list):
        return [place for at, one in enumerate(value) for place in places(one, (*path, at))]
    return [path]


CLOSED = sign_off(decided(document(), WRITE="revoke"), by="Ann", at=AT)


@given(
    place=st.sampled_from(places(CLOSED)),
    value=st.none() | st.text(max_size=3) | st.integers(0, 9) | st.booleans(),
)
def test_no_value_of_a_closed_review_can_be_changed_unseen(place: tuple[Any, ...], value: Any) -> None:
    changed: Any = copy.deepcopy(CLOSED)
    within = changed
    for step in place[:-1]:
        within = within[step]
    is_same = within[place[-1]] == value and type(within[place[-1]]) is type(value)
    within[place[-1]] = value
    if is_same:
        verify_review(changed)
        return
    with pytest.raises(SignoffError):
        verify_review(changed)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a review"),
        ('{"format": 1, "format": 2}', "twice"),
        ('{"format": NaN}', "not JSON"),
        (write_review({**CLOSED, "version": 1}), "version 2"),
        (write_review({**CLOSED, "version": 3}), "version 2"),
        (write_review({**CLOSED, "version": True}), "version 2"),
        (write_review({**CLOSED, "sign_off": None, "decisions": {"x": {}}}), "does not have"),
        (write_review({**CLOSED, "extra": 1}), "not a review"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_review_is_refused(text: str, said: str) -> None:
    with pytest.raises(SignoffError, match=said):
        read_review(text)


@pytest.mark.parametrize(
    "wrong",
    [{"by": " "}, {"reason": "", "verdict": "revoke"}, {"at": "yesterday"}, {"at": "2026-01-01T00:00:00"},
     {"verdict": "perhaps"}, {"by": 7}, {"reason": "x" * 5000}],
)  # fmt: skip
def test_a_decision_without_who_when_or_why_is_refused(wrong: dict[str, Any]) -> None:
    made = decided(document())
    some = next(iter(made["decisions"]))
    made["decisions"][some] = made["decisions"][some] | wrong
    with pytest.raises(SignoffError):
        verify_review(made)


@pytest.mark.parametrize("kind", ["Ed25519", "ES256"])
def test_a_signed_review_is_taken_from_its_own_key_alone(kind: str) -> None:
    private, public = keys(kind)
    signed = sign_review(CLOSED, private)
    assert verify_signed_review(signed, public) == CLOSED
    head, payload, signature = signed.strip().split(".")
    other = sign_review(document(), private).split(".")[1]
    for altered in (
        f"{head}.{other}.{signature}",
        f"{head}.{payload}.{signature[:-8]}AAAAAAA",
        f"{head}.{payload}.",
    ):
        with pytest.raises(SignoffError, match="not one of this key"):
            verify_signed_review(altered, public)
    for stranger in ("Ed25519", "ES256"):
        with pytest.raises(SignoffError, match="not one of this key"):
            verify_signed_review(signed, keys(stranger)[1])
    with pytest.raises(SignoffError, match="public key"):
        sign_review(CLOSED, public)
    with pytest.raises(SignoffError, match="not an Ed25519 or P-256 key"):
        sign_review(CLOSED, b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n")


def test_a_signature_of_something_else_is_none_of_a_review() -> None:
    from joserfc import jws
    from joserfc.jwk import OKPKey

    private, public = keys("Ed25519")
    key = OKPKey.import_key(private)
    payload = json.dumps(CLOSED).encode()
    for header in ({"alg": "Ed25519"}, {"alg": "Ed25519", "typ": "JWT"}):
        with pytest.raises(SignoffError, match="not a review"):
            verify_signed_review(jws.serialize_compact(header, payload, key, ["Ed25519"]), public)
    unsigned = "eyJhbGciOiJub25lIn0.e30."
    with pytest.raises(SignoffError, match="not one of this key"):
        verify_signed_review(unsigned, public)


def test_a_verdict_is_on_rows_as_they_are_written() -> None:
    """A choice for a verdict takes no row that is for others too; the same choice for a question does."""
    everyone = entitlement_row("User:*", "READ", "pay.in", team="shops")
    rows = [*ROWS, everyone]

    def taken(*, as_written: bool = True, **asked: Any) -> set[tuple[str, str]]:
        choice = RowChoice.of(as_written=as_written, **asked)
        return {(row["principal"], row["operation"]) for row in rows if choice.takes(row)}

    assert taken(principal="User:alice") == {("User:alice", "READ"), ("User:alice", "DESCRIBE")}
    assert taken(principal="User:alice", as_written=False) >= {("User:*", "READ")}
    assert taken(resource_name="pay.in") == {("User:*", "READ")}
    assert taken(resource_name="pay.in", operation="read", as_written=False) == {
        ("User:*", "READ"),
        ("User:alice", "READ"),
        ("User:root", "ALL"),
    }
    assert taken(operation="all") == {("User:root", "ALL")}
    assert taken(pattern_type="prefixed", resource_type="topic", operation="DESCRIBE") == {
        ("User:alice", "DESCRIBE")
    }
    assert taken(is_unused=True) == {("User:bob", "WRITE"), ("User:root", "ALL"), ("User:*", "READ")}
    assert taken(team="shops") == {("User:*", "READ")}
    with pytest.raises(SignoffError, match="`match` is not a pattern"):
        RowChoice.of(pattern_type="match")
