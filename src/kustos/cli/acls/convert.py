"""`kustos acls convert`."""

from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import Force, SourceArgument, To, with_acl_source
from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos acls convert listing.txt acls.yaml
kustos acls convert acls.yaml --to kafka-acls
kustos acls convert kafka://broker:9092 acls.csv \\
    --command-config admin.properties
kustos acls convert /var/lib/kafka/metadata --to json-lines
kustos acls convert git:main:acls.yaml --to kafka-acls
"""

Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="The file to write; `-` or nothing is standard output."),
]


@with_acl_source(before="to", argument=SourceArgument, decides=False)
def convert(
    source: "AclSource",
    target: Target = "-",
    to: To = None,
    force: Force = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Write a set of ACLs in another form.

    Reads the whole source before it writes anything, and writes each ACL once. The form `kafka-acls` is the
    output of `kafka-acls --list`, which is ambiguous for names with line breaks: such names are refused.
    `metadata` is a snapshot of Kafka's metadata log.
    """
    from kustos.cli.acl_target import AclTarget
    from kustos.cli.output import counted, print_document, print_lines

    destination = AclTarget.of(target, to, force=force)
    bindings = source.load().bindings
    destination.write(bindings)
    if destination.path is None:
        return
    written = destination.form.value
    if output.is_document:
        print_document({"target": target, "form": written, "acls": len(bindings)}, output)
    else:
        print_lines(f"wrote {counted(len(bindings), 'ACL')} to {target} as {written}")
