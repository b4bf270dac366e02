"""The sign-off of an access review: its document, the decisions of reviewers, signatures, and the changes."""

from kustos.signoff.changes import Contested, Flipped, ReplayFunction, ReviewChanges, changes_of
from kustos.signoff.csv_form import (
    COMPARED_COLUMNS,
    ENTITLEMENT_COLUMNS,
    entitlements_csv,
    instant_text,
    review_csv,
)
from kustos.signoff.document import (
    Document,
    ReviewDecision,
    ReviewedAcls,
    ReviewState,
    read_review,
    review_document,
    sign_off,
    verify_review,
    with_decision,
    with_decisions,
    write_review,
)
from kustos.signoff.errors import SignoffError
from kustos.signoff.former import Comparison, former_of
from kustos.signoff.review_file import change_review_file
from kustos.signoff.row_choice import RowChoice
from kustos.signoff.signature import sign_review, verify_signed_review

__all__ = [
    "COMPARED_COLUMNS",
    "ENTITLEMENT_COLUMNS",
    "Comparison",
    "Contested",
    "Document",
    "Flipped",
    "ReplayFunction",
    "ReviewChanges",
    "ReviewDecision",
    "ReviewState",
    "ReviewedAcls",
    "RowChoice",
    "SignoffError",
    "change_review_file",
    "changes_of",
    "entitlements_csv",
    "former_of",
    "instant_text",
    "read_review",
    "review_csv",
    "review_document",
    "sign_off",
    "sign_review",
    "verify_review",
    "verify_signed_review",
    "with_decision",
    "with_decisions",
    "write_review",
]
