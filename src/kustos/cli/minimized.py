"""How the result of `minimize` looks."""

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.analysis import Minimized
from kustos.cli.acls.rendering import resource_text
from kustos.cli.output import OutputFormat, counted, print_json, print_lines, print_table


def print_minimized(found: Minimized, given: int, target: str | None, output: OutputFormat) -> None:
    """Print what goes and what comes, for a person, or as one document for a program."""
    if output is OutputFormat.JSON:
        print_json(
            {
                "given": given,
                "left": len(found.bindings),
                "removed": [texts_of(binding) for binding in found.removed],
                "added": [texts_of(binding) for binding in found.added],
                "target": target,
            }
        )
        return
    rows = [_row("remove", binding) for binding in found.removed] + [
        _row("add", binding) for binding in found.added
    ]
    if rows:
        print_table(("edit", "permission", "principal", "host", "operation", "resource"), rows)
        print_lines("")
    written = f", written to {target}" if target is not None else ""
    if not rows:
        print_lines(f"found no smaller set than the {counted(given, 'ACL')} given{written}")
    else:
        print_lines(f"{counted(given, 'ACL')}, {len(found.bindings)} would mean the same{written}")


def _row(edit: str, binding: AclBinding) -> tuple[str, ...]:
    entry = binding.entry
    permission, operation = entry.permission_type.name, entry.operation.name
    return edit, permission, entry.principal, entry.host, operation, resource_text(binding)
