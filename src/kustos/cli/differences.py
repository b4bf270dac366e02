"""How a difference of two ACL sets looks."""

from collections.abc import Sequence

from kustos.acl import AclBinding
from kustos.analysis import Difference, Direction, Region
from kustos.authorizer.cells import EVERY_ALLOW
from kustos.cli.output import OutputFormat, counted, print_json, print_lines, print_table


def print_difference(
    difference: Difference, before: Sequence[AclBinding], after: Sequence[AclBinding], output: OutputFormat
) -> None:
    """Print it for a person, or as one document for a program."""
    old, new = set(before), set(after)
    added, removed = len(new - old), len(old - new)
    if output is OutputFormat.JSON:
        counts = {"added": added, "removed": removed, "kept": len(old & new)}
        print_json({**difference.to_json(), "acls": counts})
        return
    written = f"{counted(added, 'ACL')} added, {removed} removed, {len(old & new)} kept"
    if difference.is_empty:
        print_lines("no decision changes: both sets mean the same", f"({written})")
        return
    print_table(
        ("change", "who", "from", "operations", "on"),
        [(change.direction.value.lower(), *region_cells(change.region)) for change in difference.changes],
    )
    gained = sum(change.direction is Direction.GAINED for change in difference.changes)
    more = " and more, see `--regions-max`" if difference.is_cut else ""
    lost = len(difference.changes) - gained
    print_lines("", f"{counted(gained, 'region')} gained, {lost} lost{more} ({written})")


def region_cells(region: Region) -> tuple[str, str, str, str]:
    """Return who, from where, what, on which names: the cells of a row."""
    is_every = len(region.operations) == EVERY_ALLOW.bit_count()
    return (
        region.principals.text(),
        region.hosts.text(),
        "all" if is_every else ", ".join([operation.name for operation in region.operations]),
        region.names.text(region.resource_type),
    )
