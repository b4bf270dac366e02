"""Reads what Kafka's tool and ours list, so that the two can be compared."""

import json
import re
from typing import Final

from demo.programs import Said

ACL_COUNT: Final = 1 + 3 + 3 + 1
"""alice's one, carol's and bob's consumer, carol's DENY."""

_RESOURCE: Final = re.compile(r"resourceType=(\w+), name=(\S+), patternType=(\w+)")
_ENTRY: Final = re.compile(r"principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)")

Acl = tuple[str, ...]
"""Resource type, name, pattern type, principal, host, operation, permission type."""


def kafka_acls_lines(text: str) -> set[Acl]:
    """Return the ACLs that `kafka-acls --list` printed."""
    found: set[Acl] = set()
    resource: tuple[str, ...] = ()
    for line in text.splitlines():
        if match := _RESOURCE.search(line):
            resource = match.groups()
        elif match := _ENTRY.search(line):
            found.add((*resource, *match.groups()))
    return found


def compare_lists(kafkas: set[Acl], ours_json: str) -> str:
    """Return how the ACLs of Kafka's tool stand to those of `kustos acls list --output json`."""
    keys = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation")
    ours = {tuple(acl[key] for key in (*keys, "permission_type")) for acl in json.loads(ours_json)["acls"]}
    if kafkas == ours:
        return f"the same {len(ours)} ACLs"
    return f"only kafka-acls: {sorted(kafkas - ours)}; only kustos: {sorted(ours - kafkas)}"


def names_of_users(said: Said) -> str:
    """Return the users that `kustos users list --output json` printed."""
    if said.exit_code:
        return said.outcome
    return ", ".join(sorted({user["name"] for user in json.loads(said.stdout)["users"]}))
