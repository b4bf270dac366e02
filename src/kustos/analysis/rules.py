"""The two settings of `StandardAuthorizer` that affect decisions beside the ACLs; the room's errors."""

from dataclasses import dataclass
from typing import Final

from kustos.acl import EVERY_PRINCIPAL, KafkaPrincipal


class AnalysisError(ValueError):
    """The base of this package's errors; the text names the value and the remedy."""


class PolicyError(AnalysisError):
    """A policy that cannot be read: `file`, `line` (from 1), the wrong `value`, the `rule` that it breaks."""

    def __init__(self, file: str, line: int, value: str, rule: str) -> None:
        self.file = file
        self.line = line
        self.value = value
        self.rule = rule
        super().__init__(f"{file}:{line}: `{value}`: {rule}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`super.users` (principals as text) and `allow.everyone.if.no.acl.found`.

    Raises `AclValueError` for a super user without a type and `AnalysisError` for `User:*`.
    """

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False

    def __post_init__(self) -> None:
        for principal in self.super_users:
            KafkaPrincipal.parse(principal)
            if principal == EVERY_PRINCIPAL:
                raise AnalysisError(f"super user `{principal}` would be everybody, name each super user")


ACLS_ALONE: Final = Rules()
"""Kafka's defaults: no super users, and everything that no ACL allows is denied."""
