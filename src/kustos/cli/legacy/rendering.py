"""Output of legacy ACLs: KIP-11's sets in rows, the file's own form as a document."""

import json
from typing import Final

from kustos.authorizer.legacy import (
    OPERATION_NAMES,
    PERMISSION_NAMES,
    Acl,
    Acls,
    Resource,
    merged,
    order_of,
    singles_of,
    write_tree,
)
from kustos.cli.output import Column, Columns, OutputFormat, counted, print_rows

_Statement = tuple[Resource, Acl]

STATEMENTS: Final[Columns[_Statement]] = Columns(
    (
        Column("resource", lambda row: str(row[0]), groups=True),
        Column("principal", lambda row: str(row[1].principal)),
        Column("permission", lambda row: PERMISSION_NAMES[row[1].permission_type]),
        Column("operations", lambda row: tuple(sorted(OPERATION_NAMES[each] for each in row[1].operations))),
        Column("hosts", lambda row: tuple(sorted(row[1].hosts))),
    ),
    lambda row: (str(row[1].principal),),
    "the principals, as `--allowprincipals` takes them",
)


def print_acls(acls: Acls, output: OutputFormat, *, empty: str) -> None:
    """Print ACLs by resource, in a fixed order."""
    rows = [
        (resource, acl)
        for resource, of in sorted(acls.items(), key=lambda item: str(item[0]))
        for acl in sorted(merged(of), key=order_of)
    ]
    count = sum(len(singles_of(of)) for of in acls.values())
    print_rows(
        STATEMENTS,
        rows,
        output,
        document=lambda: json.loads(write_tree(acls)),
        tail=(counted(count, "statement") if rows else empty,),
    )
