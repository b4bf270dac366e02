"""Output of `minimize`."""

from operator import itemgetter
from typing import Final

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.analysis import Minimized
from kustos.cli.acl_sources import LoadedAcls
from kustos.cli.acls.rendering import acl_columns
from kustos.cli.output import Column, Columns, OutputFormat, counted, print_rows

_Edit = tuple[str, AclBinding]

EDITS: Final[Columns[_Edit]] = Columns(
    (Column("edit", itemgetter(0)), *acl_columns(lambda edit: edit[1])),
    lambda edit: (edit[1].entry.principal,),
    "the principals whose ACLs would be others, as `what-can` takes them",
)


def print_minimized(found: Minimized, loaded: LoadedAcls, target: str | None, output: OutputFormat) -> None:
    """Print the removed and added ACLs for a person, or as one document for a program."""
    count = len(loaded.bindings)
    rows = [
        *(("remove", binding) for binding in found.removed),
        *(("add", binding) for binding in found.added),
    ]
    written = f", written to {target}" if target is not None else ""
    print_rows(
        EDITS,
        rows,
        output,
        document=lambda: {
            "given": count,
            "left": len(found.bindings),
            "removed": [texts_of(binding) for binding in found.removed],
            "added": [texts_of(binding) for binding in found.added],
            "target": target,
            "settings": loaded.settings.to_json(),
        },
        tail=(
            f"{counted(count, 'ACL')}, {len(found.bindings)} would mean the same{written}"
            if rows
            else f"found no smaller set than the {counted(count, 'ACL')} given{written}",
        ),
    )
