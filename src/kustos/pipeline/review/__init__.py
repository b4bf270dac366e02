"""The access review: which ACLs grant which access to whom, its last use, and the reviewers' decisions.

Each name is imported on first use: signing and checking a review need no Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kustos.pipeline.review.access import (
        DORMANT_DAYS,
        access_review,
        lost_uses,
        of_team,
        review_questions,
        under,
    )
    from kustos.pipeline.review.changes import Contested, ReplayFunction, ReviewChanges, changes_of
    from kustos.pipeline.review.commands import AclAction, kafka_acls_commands
    from kustos.pipeline.review.csv_form import entitlements_csv, review_csv
    from kustos.pipeline.review.entitled import entitlement_rows
    from kustos.pipeline.review.former import Comparison, former_of
    from kustos.pipeline.review.period import bindings_of, in_force, team_of, until, with_team
    from kustos.pipeline.review.review_file import change_review_file
    from kustos.pipeline.review.revoked import with_uses_until_revoked
    from kustos.pipeline.review.row_choice import RowChoice
    from kustos.pipeline.review.signature import sign_review, verify_signed_review
    from kustos.pipeline.review.signoff import (
        Document,
        ReviewDecision,
        ReviewState,
        read_review,
        review_document,
        sign_off,
        verify_review,
        with_decision,
        with_decisions,
        write_review,
    )

__all__ = [
    "DORMANT_DAYS",
    "AclAction",
    "Comparison",
    "Contested",
    "Document",
    "ReplayFunction",
    "ReviewChanges",
    "ReviewDecision",
    "ReviewState",
    "RowChoice",
    "access_review",
    "bindings_of",
    "change_review_file",
    "changes_of",
    "entitlement_rows",
    "entitlements_csv",
    "former_of",
    "in_force",
    "kafka_acls_commands",
    "lost_uses",
    "of_team",
    "read_review",
    "review_csv",
    "review_document",
    "review_questions",
    "sign_off",
    "sign_review",
    "team_of",
    "under",
    "until",
    "verify_review",
    "verify_signed_review",
    "with_decision",
    "with_decisions",
    "with_team",
    "with_uses_until_revoked",
    "write_review",
]

_HOMES: Final = {
    "AclAction": "commands",
    "RowChoice": "row_choice",
    "Comparison": "former",
    "Contested": "changes",
    "DORMANT_DAYS": "access",
    "Document": "signoff",
    "ReplayFunction": "changes",
    "ReviewChanges": "changes",
    "ReviewDecision": "signoff",
    "ReviewState": "signoff",
    "access_review": "access",
    "bindings_of": "period",
    "change_review_file": "review_file",
    "changes_of": "changes",
    "entitlement_rows": "entitled",
    "entitlements_csv": "csv_form",
    "former_of": "former",
    "in_force": "period",
    "kafka_acls_commands": "commands",
    "lost_uses": "access",
    "of_team": "access",
    "read_review": "signoff",
    "review_csv": "csv_form",
    "review_document": "signoff",
    "review_questions": "access",
    "sign_off": "signoff",
    "sign_review": "signature",
    "under": "access",
    "until": "period",
    "verify_review": "signoff",
    "verify_signed_review": "signature",
    "with_decision": "signoff",
    "with_decisions": "signoff",
    "team_of": "period",
    "with_team": "period",
    "with_uses_until_revoked": "revoked",
    "write_review": "signoff",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `{__name__}` has nothing called `{name}`")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
