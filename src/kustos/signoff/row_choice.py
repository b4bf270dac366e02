"""Entitlements by principal, operation and resource: "who may delete payments" over patterns and DENYs.

A name chooses each pattern that matches it, literal, prefixed or `*`, and a principal those of `User:*` too;
super users may everything. What DENYs leave is then said for the chosen name and principal alone: an ALLOW on
a prefix is VOID for a name that a DENY takes out of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from kustos.acl import (
    EVERY_PRINCIPAL,
    AclBinding,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.acl.forms import Place, binding_of_fields, texts_of
from kustos.analysis import Denying, Effect, name_is_matched
from kustos.authorizer import RuleKind
from kustos.signoff.document import ReviewedAcls
from kustos.signoff.errors import SignoffError


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChoice:
    """What rows are about; None leaves it open. Create it with `RowChoice.of`.

    `as_written`: principal, operation and name are those of the ACL itself, not whom and what it is for. A
    verdict is on a whole row, so reviewers choose rows by what stands in them.
    """

    principal: str | None = None
    operation: AclOperation | None = None
    resource_type: ResourceType | None = None
    resource_name: str | None = None
    pattern_type: PatternType | None = None
    team: str | None = None
    is_unused: bool = False
    as_written: bool = False

    @classmethod
    def of(
        cls,
        *,
        principal: str | None = None,
        operation: str | None = None,
        resource_type: str | None = None,
        resource_name: str | None = None,
        pattern_type: str | None = None,
        team: str | None = None,
        is_unused: bool = False,
        as_written: bool = False,
    ) -> Self:
        """Return the choice of texts, in any case; raise `SignoffError` for an unknown or empty one."""
        given = {
            "principal": principal,
            "operation": operation,
            "resource type": resource_type,
            "resource name": resource_name,
            "pattern type": pattern_type,
            "team": team,
        }
        for what, text in given.items():
            if text is not None and not text.strip():
                raise SignoffError(f"the {what} is empty, name one or leave the choice by it out")
        wanted = None if operation is None else AclOperation.from_text(operation)
        kind = None if resource_type is None else ResourceType.from_text(resource_type)
        how = None if pattern_type is None else PatternType.from_text(pattern_type)
        unchecked = {AclOperation.UNKNOWN, AclOperation.ANY}
        if wanted in (unchecked if as_written else unchecked | {AclOperation.ALL}):
            raise SignoffError(f"`{operation}` is not an operation that Kafka checks, such as READ or DELETE")
        if kind in (ResourceType.UNKNOWN, ResourceType.ANY):
            raise SignoffError(f"`{resource_type}` is not a type of resources, such as TOPIC or GROUP")
        if how not in (None, PatternType.LITERAL, PatternType.PREFIXED):
            raise SignoffError(f"`{pattern_type}` is not a pattern of an ACL, take LITERAL or PREFIXED")
        return cls(
            principal=principal,
            operation=wanted,
            resource_type=kind,
            resource_name=resource_name,
            pattern_type=how,
            team=team,
            is_unused=is_unused,
            as_written=as_written,
        )

    @property
    def is_everything(self) -> bool:
        """Whether nothing is chosen."""
        return replace(self, as_written=False) == RowChoice()

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row of `entitlements`, or of a review's document, is chosen."""
        # super users may everything, but a verdict by operation or resource is not on them
        is_beyond = row["resource_type"] == "ANY" and not self.as_written
        everyone = () if self.as_written else (EVERY_PRINCIPAL,)
        return (
            (self.principal is None or row["principal"] in (self.principal, *everyone))
            and (self.operation is None or is_beyond or row["operation"] == self.operation.name)
            and (self.resource_type is None or is_beyond or row["resource_type"] == self.resource_type.name)
            and (self.resource_name is None or is_beyond or self._is_on_name(row, self.resource_name))
            and (self.pattern_type is None or row["pattern_type"] == self.pattern_type.name)
            and (self.team is None or row["team"] == self.team)
            and not (self.is_unused and (row["use_count"] or not row["is_dormant"]))
        )

    def _is_on_name(self, row: Mapping[str, Any], name: str) -> bool:
        if self.as_written:
            return bool(row["resource_name"] == name)
        kind, how = ResourceType[row["resource_type"]], PatternType[row["pattern_type"]]
        return name_is_matched(ResourcePattern(kind, row["resource_name"], how), name)

    def narrowed(self, rows: Iterable[Mapping[str, Any]], acls: ReviewedAcls) -> Iterator[dict[str, Any]]:
        """Yield the chosen rows with what the DENYs of `acls`, the reviewed ones, leave of the choice."""
        bindings = acls.bindings
        denying = Denying(bindings, acls.rules)
        is_narrower = self.principal is not None or self.resource_name is not None
        for row in rows:
            is_default = row["basis"] == RuleKind.DEFAULT_ALLOW.value
            if not self.takes(row) or (is_default and self._is_named(bindings)):
                continue
            if not is_narrower or not row["granted_by"]:
                yield dict(row)
                continue
            binding = self._part_of(binding_of_fields(row["granted_by"][0], Place("the review", 1)))
            operation = AclOperation[row["operation"]]
            left = denying.of_operation(binding, operation, denying.meeting(binding))
            yield {
                **row,
                # what is void as a whole is void in part
                "effect": row["effect"] if row["effect"] == Effect.VOID else left.effect.value,
                "denied_by": [texts_of(bindings[number]) for number in left.denied_by],
                "deny_count": left.deny_count,
            }

    def _part_of(self, binding: AclBinding) -> AclBinding:
        """Return the part of an ACL that is chosen, as an ACL."""
        pattern, entry = binding.pattern, binding.entry
        if self.resource_name is not None:
            pattern = ResourcePattern(pattern.resource_type, self.resource_name, PatternType.LITERAL)
        if self.principal is not None:
            entry = replace(entry, principal=self.principal)
        return AclBinding(pattern, entry)

    def _is_named(self, bindings: Iterable[AclBinding]) -> bool:
        """Return whether ACLs name the chosen resource, so that the default does not apply to it."""
        return (
            self.resource_name is not None
            and self.resource_type is not None
            and any(
                binding.pattern.resource_type is self.resource_type
                and name_is_matched(binding.pattern, self.resource_name)
                for binding in bindings
            )
        )
