"""The results of lint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kustos.acl import AclBinding, ResourceType
from kustos.analysis.lint.codes import LINT_CODES, LintCode, Severity

Listing = Mapping[ResourceType, frozenset[str]]
"""The names of the existing resources, for the listed types."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one ACL: the problem and the remedy.

    `number` is the ACL's index (from 0) in the input, `related` has the indices of related ACLs. `message`
    and `fix` are sentences without a period; names are in backticks.
    """

    code: str
    number: int
    message: str
    fix: str
    related: tuple[int, ...] = ()

    @property
    def kind(self) -> LintCode:
        """The general description of the code."""
        return LINT_CODES[self.code]

    @property
    def severity(self) -> Severity:
        """The severity of the finding."""
        return self.kind.severity

    def to_json(self) -> dict[str, Any]:
        """Return the finding as an object of plain values, without the ACL."""
        return {
            "code": self.code,
            "name": self.kind.name,
            "severity": self.severity.value,
            "message": self.message,
            "fix": self.fix,
        }


RELATED_MAX = 5
"""Most related ACLs that one finding names; more would not help the reader."""


def acl_text(binding: AclBinding) -> str:
    """Return an ACL in words: `ALLOW READ to User:a on topic orders`."""
    pattern, entry = binding.pattern, binding.entry
    kind = pattern.resource_type.name.lower().replace("_", " ")
    prefix = " (prefix)" if pattern.pattern_type.name == "PREFIXED" else ""
    host = "" if entry.host == "*" else f" from `{entry.host}`"
    return (
        f"{entry.permission_type.name} {entry.operation.name} to `{entry.principal}`{host} on {kind} "
        f"`{pattern.name}`{prefix}"
    )
