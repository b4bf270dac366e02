"""The access review: which ACLs grant which access to whom, its last use, and ACLs that nobody needs.

Reviewers decide without Spark, by `kustos.signoff`.
"""

from kustos.pipeline.review.access import (
    DORMANT_DAYS,
    access_review,
    chosen_rows,
    lost_uses,
    of_team,
    review_questions,
    under,
)
from kustos.pipeline.review.broken_rules import BROKEN_DUTY, BROKEN_POLICY, rule_findings
from kustos.pipeline.review.entitled import entitlement_rows
from kustos.pipeline.review.existing_names import NOTHING_KNOWN, Existing
from kustos.pipeline.review.findings import UNUSED_DAYS, acl_findings, removable_together
from kustos.pipeline.review.kinds import Cause, FindingKind, FindingSeverity
from kustos.pipeline.review.period import bindings_of, in_force, team_of, until, with_team
from kustos.pipeline.review.revoked import with_uses_until_revoked
from kustos.pipeline.review.supports import carried, safe_together, supports

__all__ = [
    "BROKEN_DUTY",
    "BROKEN_POLICY",
    "DORMANT_DAYS",
    "NOTHING_KNOWN",
    "UNUSED_DAYS",
    "Cause",
    "Existing",
    "FindingKind",
    "FindingSeverity",
    "access_review",
    "acl_findings",
    "bindings_of",
    "carried",
    "chosen_rows",
    "entitlement_rows",
    "in_force",
    "lost_uses",
    "of_team",
    "removable_together",
    "review_questions",
    "rule_findings",
    "safe_together",
    "supports",
    "team_of",
    "under",
    "until",
    "with_team",
    "with_uses_until_revoked",
]
