"""The changes that a review's decisions require: the ACLs to delete, and rows that no deletion can revoke.

Every ACL that grants a row marked `revoke` is to be deleted. An ACL that also grants another row is
*contested* and stays: the prefix `pay.` cannot lose `pay.in` alone. Rows that only a super user or a
default allows have no ACL to delete: `beyond_acls` has their ids.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kustos.acl import EVERY_PRINCIPAL, AclBinding, PatternType, ResourcePattern, ResourceType
from kustos.acl.forms import (
    AclAction,
    AclForm,
    Place,
    binding_of_fields,
    kafka_acls_commands,
    write_acls,
)
from kustos.analysis import name_is_matched
from kustos.signoff.document import Document, ReviewDecision, ReviewedAcls, verify_review
from kustos.signoff.errors import SignoffError

Flipped = tuple[str, str, str, str | None]
"""An access that would be lost: principal, operation, resource type, resource name."""

ReplayFunction = Callable[[Sequence[AclBinding]], Iterable[Flipped]]
"""From the ACLs that would be left, returns every recorded use that they would not allow any more."""


@dataclass(frozen=True, slots=True)
class Contested:
    """An ACL that grants rows to be revoked (`revoke`) and rows that are not (`other`), by their ids."""

    binding: AclBinding
    revoke: tuple[str, ...]
    other: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReviewChanges:
    """The ACLs to `remove`; those `contested`; ids of revoked rows that no ACL grants (`beyond_acls`).

    `unexpected` are accesses that a replay says would flip though nobody revoked them; None without a replay.
    """

    remove: tuple[AclBinding, ...]
    contested: tuple[Contested, ...]
    beyond_acls: tuple[str, ...]
    unexpected: tuple[Flipped, ...] | None = None

    def to_yaml(self) -> str:
        """Return the ACLs to remove as YAML, as `kustos acls` reads it."""
        return write_acls(self.remove, AclForm.YAML)

    def to_commands(self, **options: Any) -> list[str]:
        """Return the removals as kafka-acls commands; options are those of `kafka_acls_commands`."""
        return kafka_acls_commands(self.remove, AclAction.REMOVE, **options)


def changes_of(
    document: Document,
    acls: ReviewedAcls | None = None,
    replay: ReplayFunction | None = None,
    reviewed: ReplayFunction | None = None,
) -> ReviewChanges:
    """Return the changes for the decisions of a review; raise `SignoffError` for an altered document.

    `acls`, today's, must be those that were reviewed. With `replay` too, `unexpected` has the access that
    would be lost beyond the revoked rows, and nothing should be removed while there is any. `reviewed` is a
    replay of what was recorded up to the time of the review: of the uses to which a revoked pattern entitles,
    only those were seen by who revoked it, and none of a row without uses.
    """
    verify_review(document)
    if acls is not None and document["review"]["acls"]["digest"] != f"sha256:{acls.digest}":
        raise SignoffError(f"the ACLs of `{acls.name}` are not those that were reviewed, make a new review")
    revoked, granting, granting_others = _sorted_out(document)
    removed = [binding for binding in granting if binding not in granting_others]
    contested = [
        Contested(binding, tuple(granting[binding]), tuple(granting_others[binding]))
        for binding in granting
        if binding in granting_others
    ]
    granted_by_none = [row["row_id"] for row in revoked if not row["granted_by"]]
    unexpected = None
    if acls is not None and replay is not None:
        unexpected = _unexpected(revoked, removed, acls, replay, reviewed)
    return ReviewChanges(tuple(removed), tuple(contested), tuple(granted_by_none), unexpected)


Granting = dict[AclBinding, list[str]]


def _sorted_out(document: Document) -> tuple[list[dict[str, Any]], Granting, Granting]:
    """Return the revoked rows, the ACLs that grant them, and those that grant others, with ids of rows."""
    decisions = document["decisions"]
    revoked: list[dict[str, Any]] = []
    granting: Granting = {}
    granting_others: Granting = {}
    for row in document["review"]["rows"]:
        decision = decisions.get(row["row_id"])
        is_revoked = decision is not None and decision["verdict"] == ReviewDecision.REVOKE
        if is_revoked:
            revoked.append(row)
        held = granting if is_revoked else granting_others
        for texts in row["granted_by"]:
            held.setdefault(binding_of_fields(texts, Place("the review", 1)), []).append(row["row_id"])
    return revoked, granting, granting_others


def _unexpected(
    revoked: Iterable[dict[str, Any]],
    removed: Sequence[AclBinding],
    acls: ReviewedAcls,
    replay: ReplayFunction,
    reviewed: ReplayFunction | None,
) -> tuple[Flipped, ...]:
    gone = set(removed)
    left = [binding for binding in acls.bindings if binding not in gone]
    seen = None if reviewed is None else set(reviewed(left))
    wanted: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in revoked:
        wanted.setdefault((row["operation"], row["resource_type"]), []).append(row)

    def is_expected(flip: Flipped) -> bool:
        return any(_is_of(flip, row, seen) for row in wanted.get(flip[1:3], ()))

    return tuple(sorted({flip for flip in replay(left) if not is_expected(flip)}, key=repr))


def _is_of(flip: Flipped, row: dict[str, Any], seen: set[Flipped] | None) -> bool:
    """Return whether an access is the one that a row is about, or one seen to which it entitles."""
    principal, _, kind, name = flip
    # who revoked a pattern saw no use of it, or only those recorded by then
    if not row["use_count"] or (seen is not None and flip not in seen):
        return False
    if row["principal"] not in (principal, EVERY_PRINCIPAL):
        return False
    if name is None or row["resource_name"] is None:
        # about any resource of a type: each entitlement to one of them allows it
        return name is None
    pattern = ResourcePattern(ResourceType[kind], row["resource_name"], PatternType[row["pattern_type"]])
    return name_is_matched(pattern, name)
