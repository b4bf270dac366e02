"""Policy statements that a set of ACLs must satisfy, as values.

A statement demands that something is never, or always, allowed for these principals, operations, resource
names and hosts. Names, hosts and principals are infinite sets, so no list of questions could cover a
statement.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, unique
from itertools import chain
from typing import Final, NamedTuple

from kustos.acl import AclOperation, ResourceType
from kustos.analysis.host_sets import HostSet
from kustos.analysis.kernel import AnalysisError
from kustos.analysis.name_sets import Site

_STEM: Final = "someone"
_STARTS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class PolicyError(AnalysisError):
    """An invalid policy: `file`, `line` (from 1), the invalid `value`, and the `rule` that it violates."""

    def __init__(self, file: str, line: int, value: str, rule: str) -> None:
        self.file = file
        self.line = line
        self.value = value
        self.rule = rule
        super().__init__(f"{file}:{line}: `{value}`: {rule}")


@unique
class StatementKind(Enum):
    """The kind of demand of a statement."""

    NEVER = "never"
    ALWAYS = "always"


class PrincipalPattern(NamedTuple):
    """One principal as `Type:name`, or all principals with this prefix."""

    text: str
    is_prefix: bool

    def matches(self, principal: str) -> bool:
        """Return whether the pattern matches a principal."""
        return principal.startswith(self.text) if self.is_prefix else principal == self.text


@dataclass(frozen=True, slots=True)
class PolicyPrincipals:
    """The principals of a statement: these principals, or everyone except them."""

    patterns: tuple[PrincipalPattern, ...]
    is_everyone_but: bool = False

    def __contains__(self, principal: str) -> bool:
        return any(pattern.matches(principal) for pattern in self.patterns) is not self.is_everyone_but

    def unnamed(self, named: Collection[str]) -> str | None:
        """Return a principal that the statement covers and that is not in `named`, None without one."""
        if self.is_everyone_but:
            taken = [pattern.text for pattern in self.patterns if pattern.is_prefix]
            stems = (f"User:{start}" for start in chain([_STEM], _STARTS, map(chr, range(0x100, 0xD800))))
            # a policy cannot exclude `User:*`, so some prefix is always free
            free = (s for s in stems if not any(t.startswith(s) or s.startswith(t) for t in taken))
            return _fresh(next(free), named, self)
        for pattern in self.patterns:
            if pattern.is_prefix:
                return _fresh(f"{pattern.text}{_STEM}", named, self)
            if pattern.text not in named:
                return pattern.text
        return None


def _fresh(stem: str, named: Collection[str], wanted: PolicyPrincipals) -> str:
    """Return the first of `stem`, `stem-2`, ... that is in `wanted` and not in `named`."""
    candidate, number = stem, 1
    while candidate in named or candidate not in wanted:
        number += 1
        candidate = f"{stem}-{number}"
    return candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One demand, with its `sentence` and its place in the file.

    `counts_super_users` extends a NEVER to super users, which are not subject to ACLs.
    """

    statement_id: str
    kind: StatementKind
    principals: PolicyPrincipals
    operations: tuple[AclOperation, ...]
    resource_type: ResourceType
    sites: tuple[Site, ...]
    hosts: HostSet
    sentence: str
    reason: str | None = None
    counts_super_users: bool = False
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """All the statements of a file, in order."""

    statements: tuple[Statement, ...]
