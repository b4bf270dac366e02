"""Findings about an ACL in relation to other ACLs, the settings, or the existing resources."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from kustos.acl import WILDCARD, AclBinding, AclOperation, AclPermissionType, PatternType
from kustos.analysis.entry_books import Entry
from kustos.analysis.kernel import Rules
from kustos.analysis.lint.findings import RELATED_MAX, Finding, Listing, acl_text
from kustos.analysis.necessity import Necessity, necessity
from kustos.authorizer.index import ALLOWS, IMPLIED_OPERATIONS

_DESCRIBE: Final = ALLOWS[AclOperation.DESCRIBE]
_IMPLYING: Final = frozenset(
    operation for operation, implied in IMPLIED_OPERATIONS.items() if implied is AclOperation.DESCRIBE
)


def duplicate_findings(bindings: Sequence[AclBinding]) -> Iterator[Finding]:
    """Yield a finding for each ACL that repeats an earlier one."""
    first: dict[AclBinding, int] = {}
    for number, binding in enumerate(bindings):
        earlier = first.setdefault(binding, number)
        if earlier != number:
            yield Finding("KUS001", number, f"{acl_text(binding)} occurs twice", "remove one", (earlier,))


def listing_findings(number: int, binding: AclBinding, existing: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding if an ACL's pattern matches no name of a sorted listing."""
    pattern = binding.pattern
    if pattern.pattern_type is PatternType.LITERAL and pattern.name == WILDCARD:
        return
    at = bisect_left(existing, pattern.name)
    found = existing[at] if at < len(existing) else None
    kind = pattern.resource_type.name.lower().replace("_", " ")
    if pattern.pattern_type is PatternType.LITERAL:
        if found != pattern.name:
            yield Finding(
                "KUS208", number, f"there is no {kind} `{pattern.name}`", "remove it, or correct it"
            )
    elif found is None or not found.startswith(pattern.name):
        yield Finding(
            "KUS208", number, f"no {kind} begins with `{pattern.name}`", "remove it, or correct the prefix"
        )


def sorted_listing(listing: Listing) -> dict[int, Sequence[str]]:
    """Return the names of each listed type, sorted."""
    return {kind: sorted(names) for kind, names in listing.items()}


class SetFindings:
    """Findings from a comparison of each ACL with the others in a set without duplicates."""

    def __init__(self, bindings: Sequence[AclBinding], rules: Rules) -> None:
        self._bindings = bindings
        self._rules = rules
        self._necessity: Necessity = necessity(bindings, rules)
        self._numbers = {binding: number for number, binding in enumerate(bindings)}

    def findings(self, silent: Collection[int]) -> Iterator[Finding]:
        """Yield the findings; `silent`: the ACLs that were already reported as never deciding."""
        for number, binding in enumerate(self._bindings):
            if number in silent:
                continue
            if binding.entry.principal in self._rules.super_users:
                yield self._of_super_user(number, binding)
            elif (denied := self._denied_too(binding)) is not None:
                yield self._conflicting(number, binding, denied)
            elif not self._necessity.matters[number]:
                if not self._is_plain_describe(number, binding):
                    yield self._idle(number, binding)
            elif binding.entry.permission_type is not AclPermissionType.ALLOW:
                yield from self._describe_remains(number, binding)

    def _of_super_user(self, number: int, binding: AclBinding) -> Finding:
        message = f"`{binding.entry.principal}` is a super user, no ACL applies to it"
        fix = "remove the ACL, or remove the principal from `super.users`"
        if self._necessity.matters[number]:
            # `allow.everyone.if.no.acl.found` depends on whether an ACL of any principal names the resource
            message += ", but no other ACL keeps what it names from being open to everyone"
            fix = (
                "first add an ACL of another principal on the same pattern, or remove it to open the resource"
            )
        return Finding("KUS006", number, message, fix)

    def _denied_too(self, binding: AclBinding) -> int | None:
        """Return the DENY that differs only in the permission; None for a DENY or without such a DENY."""
        if binding.entry.permission_type is not AclPermissionType.ALLOW:
            return None
        return self._numbers.get(
            replace(binding, entry=replace(binding.entry, permission_type=AclPermissionType.DENY))
        )

    def _is_plain_describe(self, number: int, binding: AclBinding) -> bool:
        """Return whether an ALLOW of DESCRIBE has an otherwise equal ALLOW whose operation implies DESCRIBE.

        The options `--producer` and `--consumer` of kafka-acls and `kustos acls add` create such pairs.
        """
        entry = binding.entry
        if entry.operation is not AclOperation.DESCRIBE or not self._necessity.effective[number]:
            return False
        if entry.permission_type is not AclPermissionType.ALLOW:
            return False
        implying = (replace(binding, entry=replace(entry, operation=operation)) for operation in _IMPLYING)
        return any(each in self._numbers for each in implying)

    def _conflicting(self, number: int, binding: AclBinding, denied: int) -> Finding:
        entry = binding.entry
        implied = IMPLIED_OPERATIONS.get(entry.operation)
        left = (
            f", of the ALLOW only {implied.name} is left"
            if implied and self._necessity.effective[number]
            else ""
        )
        message = f"{entry.operation.name} is both allowed and denied to `{entry.principal}`{left}"
        return Finding("KUS002", number, message, "remove the unintended one", (denied,))

    def _idle(self, number: int, binding: AclBinding) -> Finding:
        is_allow = binding.entry.permission_type is AclPermissionType.ALLOW
        is_effective = self._necessity.effective[number]
        if is_allow and not is_effective:
            return self._shadowed(number, binding)
        if not is_allow and is_effective:
            message = f"{acl_text(binding)} denies nothing that is allowed"
            return Finding("KUS005", number, message, "remove it, unless it guards against a later ALLOW")
        whole, partly = self._equivalents(number, denies=not is_allow)
        if whole:
            message = f"{acl_text(binding)} is part of {acl_text(self._bindings[whole[0]])}"
            return Finding("KUS004", number, message, "remove it", tuple(whole[:1]))
        message = f"other ACLs together cover all of {acl_text(binding)}"
        denying = self._equivalents(number, denies=True)[1] if is_allow else []
        if denying:
            message = f"{acl_text(binding)} is denied in part, and other ACLs cover the rest"
        related = sorted({*partly, *denying})[:RELATED_MAX]
        return Finding("KUS004", number, message, "remove it", tuple(related))

    def _shadowed(self, number: int, binding: AclBinding) -> Finding:
        whole, partly = self._equivalents(number, denies=True)
        by = f"by {acl_text(self._bindings[whole[0]])}" if whole else "by DENYs together"
        related = whole[:1] or partly[:RELATED_MAX]
        message = f"{acl_text(binding)} is denied {by}"
        return Finding("KUS003", number, message, "remove it, or the DENY", tuple(related))

    def _around(self, number: int) -> list[Entry]:
        return [entry for entry in self._necessity.around(number) if entry.number != number]

    def _equivalents(self, number: int, *, denies: bool) -> tuple[list[int], list[int]]:
        """Return the ALLOWs or DENYs that cover this ACL, and the ones that cover a part of it."""
        mine = next(entry for entry in self._necessity.around(number) if entry.number == number)
        bits = mine.allows | mine.denies
        whole: list[int] = []
        partly: list[int] = []
        for other in self._around(number):
            bits_of_other = other.denies if denies else other.allows
            if not bits_of_other & bits:
                continue
            is_whole = not bits & ~bits_of_other and other.covers_hosts_of(mine)
            (whole if is_whole else partly).append(other.number)
        return sorted(whole), sorted(partly)

    def _describe_remains(self, number: int, binding: AclBinding) -> Iterator[Finding]:
        if binding.entry.operation not in _IMPLYING:
            return
        around = self._necessity.around(number)
        mine = next(entry for entry in around if entry.number == number)
        if any(other.denies & _DESCRIBE and other.covers_hosts_of(mine) for other in around):
            return
        for other in around:
            its = self._bindings[other.number].entry
            if other.allows & _DESCRIBE and its.operation in _IMPLYING - {binding.entry.operation}:
                yield Finding(
                    "KUS007",
                    number,
                    f"{binding.entry.operation.name} is denied, but DESCRIBE stays allowed by the ALLOW of "
                    f"{its.operation.name}",
                    "deny ALL or DESCRIBE too, if the resource is to be hidden",
                    (other.number,),
                )
                return
