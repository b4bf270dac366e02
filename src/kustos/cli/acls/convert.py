"""`kustos acls convert`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import AclFormName, Form
from kustos.cli.options import CommandConfig, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos acls convert listing.txt acls.yaml
kustos acls convert acls.yaml --to kafka-acls
kustos acls convert kafka://broker:9092 acls.csv \\
    --command-config admin.properties
kustos acls convert /var/lib/kafka/metadata --to json-lines
"""

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file in any form, `-`, a metadata directory, or a cluster as kafka://HOST:PORT.",
    ),
]
Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="The file to write; `-` or nothing is standard output."),
]
To = Annotated[
    AclFormName | None,
    typer.Option("--to", help="The form to write. [told from the target's name]"),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a target that exists.")]


def convert(
    source: Source,
    target: Target = "-",
    form: Form = None,
    to: To = None,
    force: Force = False,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Write a set of ACLs in another form.

    Reads a source whole, or refuses it, before anything is written; each ACL is written once. The forms:
    `kafka-acls` is what `kafka-acls --list` prints (names with line breaks cannot be told apart in it and
    are refused), `metadata` a snapshot of Kafka's metadata log, the others say what they are.
    """
    import sys
    from pathlib import Path

    from kustos.acl.forms import AclForm, form_of_name, write_acls
    from kustos.cli.acl_sources import METADATA_SUFFIXES, STANDARD_INPUT, read_location
    from kustos.cli.failures import usage_error
    from kustos.cli.output import print_json, print_lines
    from kustos.cli.progress import progress
    from kustos.runtime import FileSystemStorage

    path = None if target == STANDARD_INPUT else Path(target)
    if path is not None and path.exists() and not force:
        raise usage_error(f"`{target}` exists already, choose another target or give `--force`")
    told = None if path is None else form_of_name(target)
    if to is None:
        if path is not None and path.suffix in METADATA_SUFFIXES:
            to = AclFormName.METADATA
        elif told is not None:
            to = AclFormName(told.value)
        else:
            raise usage_error("the name of the target says no form, give `--to`")
    bindings = read_location(source, form, command_config).bindings
    with progress(f"writing {len(bindings)} ACLs"):
        if to is AclFormName.METADATA:
            from kustos.metadata.acl_files import encode_acl_snapshot

            data = encode_acl_snapshot(bindings)
        else:
            data = write_acls(bindings, AclForm(to.value)).encode()
        if path is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            return
        FileSystemStorage().write(path, data)
    if output is OutputFormat.JSON:
        print_json({"target": target, "form": to.value, "acls": len(bindings)})
    else:
        print_lines(f"wrote {len(bindings)} ACL{'' if len(bindings) == 1 else 's'} to {target} as {to.value}")
