"""How the answers of `who-can` and `what-can` look."""

from collections.abc import Sequence

from kustos.acl import (
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import Access, Region
from kustos.cli.output import OutputFormat, print_json, print_lines, print_table


def print_access(
    access: Access, operation: AclOperation, pattern: ResourcePattern, output: OutputFormat
) -> None:
    """Print who may do an operation on the names of a pattern."""
    if output is OutputFormat.JSON:
        print_json(
            {
                "operation": operation.name,
                "resource_type": pattern.resource_type.name,
                "resource_name": pattern.name,
                "pattern_type": pattern.pattern_type.name,
                **access.to_json(),
            }
        )
        return
    what, is_one = _asked(pattern)
    if not access.grants:
        print_lines(f"nobody may {operation.name} {'' if is_one else 'any '}{what}")
        return
    whole = [grant.region for grant in access.grants if grant.is_every_name]
    some = [grant.region for grant in access.grants if not grant.is_every_name]
    if whole:
        print_lines(f"{operation.name} {'' if is_one else 'all '}{what}:", "")
        rows = [(region.principals.text(), region.hosts.text()) for region in whole]
        print_table(("who", "from"), rows)
    if some:
        if whole:
            print_lines("")
        print_lines(f"{operation.name} some {what}:", "")
        print_table(
            ("who", "from", "which"),
            [
                (region.principals.text(), region.hosts.text(), region.names.text(region.resource_type))
                for region in some
            ],
        )
    if access.is_cut:
        print_lines("", "there is more, see `--regions-max`")


def _asked(pattern: ResourcePattern) -> tuple[str, bool]:
    """Return the names that are asked about in words, and whether it is one."""
    kind = pattern.resource_type.name.lower().replace("_", " ")
    if pattern.resource_type is ResourceType.CLUSTER:
        return "the cluster", True
    if pattern.pattern_type is not PatternType.LITERAL:
        return f"{kind}s that begin with `{pattern.name}`", False
    return (f"{kind}s", False) if pattern.name == WILDCARD else (f"{kind} {pattern.name}", True)


def print_regions(principal: str, regions: Sequence[Region], output: OutputFormat) -> None:
    """Print what a principal may do."""
    if output is OutputFormat.JSON:
        print_json({"principal": principal, "grants": [region.to_json() for region in regions]})
        return
    rows = [
        (_operations(region), region.names.text(region.resource_type), region.hosts.text())
        for region in regions
        if _operations(region)
    ]
    who = "everyone whom nothing names" if principal == "User:*" else principal
    if not rows:
        print_lines(f"{who} may do nothing")
        return
    print_lines(f"{who} may:", "")
    print_table(("do", "on", "from"), rows)


def _operations(region: Region) -> str:
    """Return those operations that mean something on the type, said in the fewest words."""
    supported = SUPPORTED_OPERATIONS[region.resource_type]
    meant = [operation.name for operation in region.operations if operation in supported]
    missing = [operation.name for operation in supported if operation not in region.operations]
    if not missing:
        return "all"
    return f"all but {', '.join(missing)}" if len(missing) * 2 < len(meant) else ", ".join(meant)
