"""`kustos metadata shell`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kustos.metadata.inspection.shell import MetadataShell
    from kustos.metadata.inspection.sources import ImageSource

EXAMPLES = """
kustos metadata shell --directory /var/lib/kustos/metadata
kustos metadata shell --directory /var/lib/kafka tree /acl/by-principal
kustos metadata shell \\
    --snapshot 00000000000000000057-0000000001.checkpoint cat '/acl/id/*'
"""

Directory = Annotated[
    Path | None, typer.Option("--directory", "-d", metavar="DIR", help="The directory of a metadata log.")
]
Snapshot = Annotated[
    Path | None,
    typer.Option("--snapshot", "-s", metavar="FILE", help="A snapshot, or a whole log in one segment."),
]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Run this one command, then end.")
]


def shell(words: Words = None, directory: Directory = None, snapshot: Snapshot = None) -> int:
    """Walk through ACLs, users, tokens and features.

    Shows what a metadata log or snapshot, of kustos or of Kafka, adds up to, as a tree like that of a
    file system. Without a command it is interactive; `help` there shows the commands, and Tab completes
    names. If standard input is no terminal, each of its lines is a command. Nothing is changed, and no
    secret is shown. The state is that of the beginning of the shell.
    """
    import sys

    from kustos import __version__
    from kustos.cli.failures import ExitCode
    from kustos.cli.progress import progress
    from kustos.metadata.inspection.shell import MetadataShell
    from kustos.metadata.inspection.tree import tree_of

    source = _source(directory, snapshot)
    with progress(f"reading {source.name}"):
        image = source.image()
    walking = MetadataShell(tree_of(image, __version__))
    if words:
        return ExitCode.OK if _run(walking, words) else ExitCode.FAILED
    if not sys.stdin.isatty():
        is_fine = True
        for line in sys.stdin:
            is_fine = _run(walking, line) and is_fine
            if walking.has_ended:
                break
        return ExitCode.OK if is_fine else ExitCode.FAILED
    from kustos.cli.metadata.terminal import converse

    converse(walking, source.name, lambda line: _run(walking, line))
    return ExitCode.OK


def _source(directory: Path | None, snapshot: Path | None) -> "ImageSource":
    from kustos.cli.failures import usage_error
    from kustos.metadata.inspection.sources import DirectorySource, FileSource
    from kustos.runtime import FileSystemStorage

    if directory is not None and snapshot is None:
        return DirectorySource(directory, FileSystemStorage())
    if snapshot is not None and directory is None:
        return FileSource(snapshot, FileSystemStorage())
    raise usage_error("say what to look at: `--directory` or `--snapshot`, one of them")


def _run(walking: "MetadataShell", line: str | list[str]) -> bool:
    """Run a command and print what it says; return whether it meant something."""
    from kustos.cli.output import OutputFormat, print_error, print_lines
    from kustos.metadata.inspection.shell import ShellError

    try:
        for text in walking.run_line(line) if isinstance(line, str) else walking.run(line):
            print_lines(text)
    except ShellError as error:
        print_error("NOT_FOUND", str(error), OutputFormat.TABLE)
        return False
    return True
