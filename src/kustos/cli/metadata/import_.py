"""`kustos metadata import`."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
kustos metadata import cluster.jsonl /var/lib/kustos/metadata
kustos metadata import - /var/lib/kustos/metadata < cluster.jsonl
"""

Source = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A file of `kustos metadata export`, `-` for standard input."),
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A new directory of `kustos storage format`.")]


def import_metadata(source: Source, directory: Directory) -> None:
    """Import a file of metadata into a new directory.

    `kustos storage format` created the directory, and no node has used it yet. Its users and ACLs stay;
    features get the levels of the file. The command checks every line before it writes anything: if a line
    is malformed, or Kafka would refuse it, the error names the first one, and the directory stays as it
    was.
    """
    from kustos.cli.acl_sources import called_name, read_text
    from kustos.cli.failures import usage_error
    from kustos.cli.metadata.export import summary
    from kustos.cli.output import print_lines
    from kustos.cli.progress import progress
    from kustos.metadata.portable import PortableError, apply_export, read_export
    from kustos.runtime import FileSystemStorage, SystemClock

    called = called_name(source)
    with progress(f"reading {called}"):
        try:
            text = read_text(source).removesuffix("\n")
            found = read_export(text.split("\n") if text else (), called)
            image = apply_export(directory, found, FileSystemStorage(), SystemClock())
        except PortableError as error:
            raise usage_error(str(error)) from error
    print_lines(f"`{directory}` now holds {summary(image)}")
