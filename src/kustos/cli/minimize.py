"""`kustos minimize`."""

from operator import itemgetter
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import Force, SourceArgument, To, with_acl_source
from kustos.cli.options import Output
from kustos.cli.output import Column, Columns, OutputFormat, counted, print_rows

if TYPE_CHECKING:
    from kustos.acl import AclBinding
    from kustos.analysis import Minimized
    from kustos.cli.acl_source import AclSource, LoadedAcls

EXAMPLES = """
kustos minimize acls.yaml
kustos minimize acls.yaml smaller.yaml
kustos minimize kafka://broker:9092 - --to kafka-acls \\
    --command-config admin.properties
"""

Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="Write the smaller set to this file, `-` to standard output."),
]


@with_acl_source(before="to", argument=SourceArgument)
def minimize(
    source: "AclSource",
    target: Target = None,
    to: To = None,
    force: Force = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Find a smaller set of ACLs with the same meaning.

    The result decides every request for a named resource as the original set does; this is proven before
    it is shown. Without a target the command only shows which ACLs could be removed, and which would
    replace them. Super users and the default of the source are part of the meaning.
    """
    from kustos.analysis import minimize as minimized
    from kustos.analysis import with_groups
    from kustos.cli.acl_target import AclTarget
    from kustos.cli.broker_settings import report_unknown
    from kustos.cli.failures import usage_error
    from kustos.cli.terminal import progress

    if target is None and to is not None:
        raise usage_error("`--to` is the form of a target, name one (`-` for standard output)")
    destination = None if target is None else AclTarget.of(target, to, force=force)
    loaded = source.load()
    bindings = loaded.bindings
    rules = with_groups(loaded.settings.rules(), bindings)
    with progress(f"looking for fewer than {len(bindings)} ACLs"):
        found = minimized(bindings, rules)
    report_unknown(output, loaded.settings)
    if destination is not None:
        destination.write(found.bindings)
        if destination.path is None:
            return
    _print(found, loaded, target, output)


def edit_columns() -> "Columns[tuple[str, AclBinding]]":
    """Return the columns: what to do with an ACL, and the ACL."""
    from kustos.cli.acls.output import acl_columns

    return Columns(
        (Column("edit", itemgetter(0)), *acl_columns(lambda edit: edit[1])),
        lambda edit: (edit[1].entry.principal,),
        "the principals whose ACLs would change, as `what-can` takes them",
    )


def _print(found: "Minimized", loaded: "LoadedAcls", target: str | None, output: OutputFormat) -> None:
    """Print the removed and added ACLs for a person, or as one document for a program."""
    from kustos.acl.forms import texts_of

    count = len(loaded.bindings)
    rows = [
        *(("remove", binding) for binding in found.removed),
        *(("add", binding) for binding in found.added),
    ]
    written = f", written to {target}" if target is not None else ""
    print_rows(
        edit_columns(),
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
