"""How legacy ACLs are shown: KIP-11's sets in a table, the file's own form as JSON."""

import sys

from kustos.authorizer.legacy import Acls, merged, write_tree
from kustos.authorizer.legacy.values import order_of, singles_of
from kustos.authorizer.legacy.vocabulary import OPERATION_NAMES, PERMISSION_NAMES
from kustos.cli.output import OutputFormat, print_lines, print_table


def print_acls(acls: Acls, output: OutputFormat, *, empty: str) -> None:
    """Print ACLs by resource, in a fixed order."""
    if output is OutputFormat.JSON:
        sys.stdout.write(write_tree(acls))
        return
    rows: list[tuple[str, ...]] = []
    for resource, of in sorted(acls.items(), key=lambda item: str(item[0])):
        for number, acl in enumerate(sorted(merged(of), key=order_of)):
            operations = ", ".join(sorted(OPERATION_NAMES[operation] for operation in acl.operations))
            permission = PERMISSION_NAMES[acl.permission_type]
            shown = "" if number else str(resource)
            rows.append((shown, str(acl.principal), permission, operations, ", ".join(sorted(acl.hosts))))
    if not rows:
        print_lines(empty)
        return
    print_table(("resource", "principal", "permission", "operations", "hosts"), rows)
    count = sum(len(singles_of(of)) for of in acls.values())
    print_lines("", f"{count} statement{'' if count == 1 else 's'}")
