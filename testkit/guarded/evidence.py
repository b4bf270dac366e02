"""What the audit trail of a node says of the rights of a user: what was refused, and what nobody used."""

from collections.abc import Iterable

from kustos.acl import AclBinding
from testkit.kustos import KustosNode


def denied(node: KustosNode, user: str) -> list[str]:
    """Return the refusals of a user, without probes and checks that only filter a list."""
    return sorted(
        {
            f"{each['api_name']}: {each['operation']} {each['resource_type']} {each['resource_name']}"
            for each in node.audit_events()
            if each["principal_name"] == user
            and each["decision"] != "ALLOWED"
            and each["access"] == "ACCESS"
            and (each["log_if_denied"] or each["resource_name"] is None)
        }
    )


def unused(node: KustosNode, acls: Iterable[AclBinding]) -> list[str]:
    """Return the ACLs that no decision was based on."""
    used = {
        (
            rule["principal"],
            rule["operation"],
            rule["resource_type"],
            rule["resource_name"],
            rule["pattern_type"],
        )
        for each in node.audit_events()
        if (rule := each["rule"])["kind"] == "MatchingAcl" and each["decision"] == "ALLOWED"
    }
    given = {
        (
            binding.entry.principal,
            binding.entry.operation.name,
            binding.pattern.resource_type.name,
            binding.pattern.name,
            binding.pattern.pattern_type.name,
        )
        for binding in acls
    }
    return sorted(map(str, given - used))
