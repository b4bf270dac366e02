"""`kustos metadata export` and `kustos metadata import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.options import IgnoreTornTail

if TYPE_CHECKING:
    from kustos.metadata.image import MetadataImage

EXPORT_EXAMPLES = """
kustos metadata export /var/lib/kustos/metadata --out cluster.jsonl
kustos metadata export /var/lib/kafka/metadata --out full.jsonl \\
    --with-credentials
kustos metadata export /var/lib/kustos/metadata@2026-11-03 --out -
"""

ExportSource = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE", help="The directory of a metadata log (DIR or DIR@MOMENT), or a snapshot."
    ),
]
Out = Annotated[
    str, typer.Option("--out", metavar="FILE", help="The file to write, `-` for standard output.")
]
WithCredentials = Annotated[
    bool,
    typer.Option(
        "--with-credentials",
        help="Also write SCRAM keys and settings of brokers; only you can read the file.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME",
        help="The same as `DIR@OFFSET` or `DIR@TIME`.",
        hidden=True,
    ),
]


def export(
    source: ExportSource,
    out: Out,
    with_credentials: WithCredentials = False,
    at: At = None,
    force: Force = False,
    ignore_torn_tail: IgnoreTornTail = False,
) -> None:
    """Write all metadata that concerns security to a file.

    One JSON object per line: features, ACLs with their ids, delegation tokens (without HMAC), settings.
    Credentials are left out. With --with-credentials the file also has SCRAM credentials with their keys
    and settings of brokers, and only its owner can read it. `kustos metadata import` reads the file.
    """
    import sys

    from kustos.cli.failures import usage_error
    from kustos.cli.output import counted
    from kustos.cli.terminal import progress
    from kustos.cli.text_files import STANDARD_INPUT
    from kustos.metadata.portable import export_lines, left_out
    from kustos.runtime import DEFAULT_FILE_MODE, PRIVATE_FILE_MODE, FileSystemStorage

    if out == STANDARD_INPUT and with_credentials:
        raise usage_error("credentials go only to a file that other users cannot read, give `--out FILE`")
    if out != STANDARD_INPUT and Path(out).exists() and not force:
        raise usage_error(f"`{out}` exists already, choose another file or give `--force`")
    with progress(f"reading {source}"):
        image = _image(source, at, ignore_torn_tail=ignore_torn_tail)
        lines = list(export_lines(image, with_credentials=with_credentials))
    if out == STANDARD_INPUT:
        sys.stdout.writelines(lines)
        sys.stdout.flush()
    else:
        mode = PRIVATE_FILE_MODE if with_credentials else DEFAULT_FILE_MODE
        FileSystemStorage().write(Path(out), "".join(lines).encode(), mode)
    hidden = 0 if with_credentials else left_out(image)
    without = f"; {counted(hidden, 'secret')} left out, see `--with-credentials`" if hidden else ""
    sys.stderr.write(f"exported the state at offset {image.offset}: {summary(image)}{without}\n")


def summary(image: "MetadataImage") -> str:
    """Return the counts of what an image holds."""
    from kustos.cli.output import counted

    return ", ".join(
        (
            counted(len(image.acls), "ACL"),
            counted(len(image.scram_credentials), "SCRAM credential"),
            counted(len(image.delegation_tokens), "delegation token"),
            counted(len(image.features), "feature"),
            counted(len(image.configs), "setting"),
        )
    )


def _image(source: Path, at: str | None, *, ignore_torn_tail: bool) -> "MetadataImage":
    from kustos.cli.acl_source import split_moment, state_at
    from kustos.cli.failures import usage_error
    from kustos.metadata import METADATA_SUFFIXES
    from kustos.metadata.inspection import DirectorySource, FileSource
    from kustos.runtime import FileSystemStorage

    text, at = split_moment(str(source), at)
    source = Path(text)
    is_file = source.suffix in METADATA_SUFFIXES
    if at is None:
        kind = FileSource if is_file else DirectorySource
        return kind(source, FileSystemStorage(), ignore_torn_tail=ignore_torn_tail).image()
    if is_file:
        raise usage_error("`--at` looks back in a metadata log: name its directory")
    return state_at(source, at, ignore_torn_tail=ignore_torn_tail).image


IMPORT_EXAMPLES = """
kustos metadata import cluster.jsonl /var/lib/kustos/metadata
kustos metadata import - /var/lib/kustos/metadata < cluster.jsonl
"""

ExportedFile = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A file of `kustos metadata export`, `-` for standard input."),
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A new directory of `kustos storage format`.")]


def import_metadata(source: ExportedFile, directory: Directory) -> None:
    """Import a file of metadata into a new directory.

    `kustos storage format` created the directory, and no node has used it yet. Its users and ACLs stay;
    features get the levels of the file. The command checks every line before it writes anything: if a line
    is malformed, or Kafka would refuse it, the error names the first one, and the directory stays as it
    was.
    """
    from kustos.cli.failures import usage_error
    from kustos.cli.output import print_lines
    from kustos.cli.terminal import progress
    from kustos.cli.text_files import called_name, read_text
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
