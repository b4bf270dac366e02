"""How ACLs look: to people as a table by resource, to programs as flat objects."""

from collections.abc import Sequence

from kustos.acl import CLUSTER_NAME, AclBinding, AclBindingFilter, ResourceType
from kustos.cli.output import print_lines, print_table


def resource_text(binding: AclBinding) -> str:
    """Return a resource as people name it: `topic orders`, `topic app- (prefix)`, `cluster`."""
    pattern = binding.pattern
    kind = pattern.resource_type.name.lower().replace("_", " ")
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name == CLUSTER_NAME:
        return kind
    suffix = " (prefix)" if pattern.pattern_type.name == "PREFIXED" else ""
    return f"{kind} {pattern.name}{suffix}"


def filter_text(binding_filter: AclBindingFilter) -> str:
    """Return a filter in words, as the question before a removal shows it."""
    pattern, entry = binding_filter.pattern_filter, binding_filter.entry_filter
    kind = pattern.resource_type.name.lower().replace("_", " ")
    resource = f"{pattern.pattern_type.name.lower()} {kind} `{pattern.name or '(any)'}`"
    if entry.principal is None:
        return f"every ACL of {resource}"
    return (
        f"{entry.permission_type.name} {entry.principal} {entry.operation.name} from host {entry.host} "
        f"on {resource}"
    )


def print_bindings(bindings: Sequence[AclBinding], *, empty: str = "no ACL matches") -> None:
    """Print sorted bindings: a resource is named once, an entry's operations stand in one row."""
    if not bindings:
        print_lines(empty)
        return
    operations: dict[tuple[str, str, str, str], list[str]] = {}
    for binding in bindings:
        entry = binding.entry
        key = (resource_text(binding), entry.principal, entry.host, entry.permission_type.name)
        operations.setdefault(key, []).append(entry.operation.name)
    rows: list[tuple[str, ...]] = []
    last = ""
    for key, names in operations.items():
        rows.append(("" if key[0] == last else key[0], *key[1:], ", ".join(names)))
        last = key[0]
    print_table(("resource", "principal", "host", "permission", "operations"), rows)
    print_lines("", f"{len(bindings)} ACL{'' if len(bindings) == 1 else 's'}")
