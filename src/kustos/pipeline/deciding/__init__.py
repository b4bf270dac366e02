"""Decisions in bulk: sets of ACLs as values, sent to the workers, where stages decide by them.

The workers compile and run `kustos.authorizer`; there is no second implementation.
"""

from kustos.pipeline.deciding.acl_set import AclsInForce
from kustos.pipeline.deciding.questions import (
    VERDICT_SCHEMA,
    decide,
    decide_each,
    distinct_questions,
    evaluated_once,
    is_by_super_user,
    principal_text,
    verdict,
    with_principal,
)
from kustos.pipeline.deciding.shipped_acls import ShippedAcls, ship
from kustos.pipeline.deciding.sources import read_acl_set, read_acl_set_at_revision

__all__ = [
    "VERDICT_SCHEMA",
    "AclsInForce",
    "ShippedAcls",
    "decide",
    "decide_each",
    "distinct_questions",
    "evaluated_once",
    "is_by_super_user",
    "principal_text",
    "read_acl_set",
    "read_acl_set_at_revision",
    "ship",
    "verdict",
    "with_principal",
]
