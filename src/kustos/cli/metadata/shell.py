"""`kustos metadata shell`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.options import CommandConfig, IgnoreTornTail

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from kustos.metadata.inspection import ImageSource, MetadataShell

EXAMPLES = """
kustos metadata shell --directory /var/lib/kustos/metadata
kustos metadata shell --directory /var/lib/kafka tree /acl/by-principal
kustos metadata shell --bootstrap-controller controller:9093 \\
    --command-config admin.properties
kustos metadata shell \\
    --snapshot 00000000000000000057-0000000001.checkpoint cat '/acl/id/*'
"""

Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        "-d",
        metavar="DIR",
        help="The directory of a metadata log: DIR or DIR@MOMENT.",
    ),
]
Snapshot = Annotated[
    Path | None,
    typer.Option("--snapshot", "-s", metavar="FILE", help="A snapshot, or a whole log in one segment."),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME",
        help="The same as `DIR@OFFSET` or `DIR@TIME`.",
        hidden=True,
    ),
]
Controllers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller", metavar="HOST:PORT[,...]", help="The controllers of a running quorum."
    ),
]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Run this one command, then end.")
]


def shell(
    words: Words = None,
    directory: Directory = None,
    snapshot: Snapshot = None,
    at: At = None,
    bootstrap_controller: Controllers = None,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
) -> int:
    """Browse ACLs, users, tokens and features.

    Shows the state of a metadata log or snapshot, of kustos or of Kafka, or of a running quorum, as a
    tree like that of a file system. Without a command it is interactive; `help` there shows the
    commands, and Tab completes names. If standard input is not a terminal, each of its lines is a
    command. Nothing is changed, and no secret is shown. Files are read once; a quorum is queried before
    each command, and requires CLUSTER_ACTION.
    """
    import sys

    from kustos import __version__
    from kustos.cli.failures import ExitCode
    from kustos.cli.terminal import progress
    from kustos.metadata.inspection import MetadataShell, tree_of

    files = directory, snapshot, at, ignore_torn_tail
    with _source(*files, bootstrap_controller, command_config) as source:
        with progress(f"reading {source.name}"):
            walking = MetadataShell(tree_of(source.image(), __version__))

        def run_next(line: str) -> bool:
            if bootstrap_controller is not None and not _look_again(walking, source):
                return False
            return _run(walking, line)

        if words:
            return ExitCode.OK if _run(walking, words) else ExitCode.FAILED
        if sys.stdin.isatty():
            from kustos.cli.metadata.terminal import converse

            converse(walking, source.name, run_next)
            return ExitCode.OK
        is_fine = True
        for line in sys.stdin:
            is_fine = run_next(line) and is_fine
            if walking.has_ended:
                break
        return ExitCode.OK if is_fine else ExitCode.FAILED


def _source(
    directory: Path | None,
    snapshot: Path | None,
    at: str | None,
    ignore_torn_tail: bool,
    controllers: str | None,
    command_config: Path | None,
) -> "AbstractContextManager[ImageSource]":
    from contextlib import nullcontext

    from kustos.cli.failures import usage_error
    from kustos.metadata.inspection import DirectorySource, FileSource, PastSource
    from kustos.runtime import FileSystemStorage

    if [directory, snapshot, controllers].count(None) != 2:
        raise usage_error("give exactly one of `--directory`, `--snapshot` and `--bootstrap-controller`")
    if at is not None and directory is None:
        raise usage_error("`--at` looks back in a metadata log: give `--directory` too")
    if controllers is not None:
        from kustos.cli.session import QuorumSource

        return QuorumSource(controllers, command_config)
    storage = FileSystemStorage()
    if directory is not None:
        from kustos.cli.acl_source import moment_of, split_moment

        text, at = split_moment(str(directory), at)
        directory = Path(text)
    if at is not None and directory is not None:
        moment = moment_of(at)
        return nullcontext(PastSource(directory, moment, storage, ignore_torn_tail=ignore_torn_tail))
    if directory is not None:
        return nullcontext(DirectorySource(directory, storage, ignore_torn_tail=ignore_torn_tail))
    return nullcontext(FileSource(snapshot or Path(), storage, ignore_torn_tail=ignore_torn_tail))


def _look_again(walking: "MetadataShell", source: "ImageSource") -> bool:
    """Reload the tree from the source; report an error if that fails, and return whether it succeeded."""
    from kustos import __version__
    from kustos.cli.failures import failure_of
    from kustos.cli.output import OutputFormat, print_error
    from kustos.client import ClientError
    from kustos.metadata import MetadataError
    from kustos.metadata.inspection import tree_of

    try:
        walking.look_at(tree_of(source.image(), __version__))
    except (ClientError, MetadataError) as error:
        failure = failure_of(error)
        print_error("UNREACHABLE", str(error) if failure is None else failure.message, OutputFormat.TABLE)
        return False
    return True


def _run(walking: "MetadataShell", line: str | list[str]) -> bool:
    """Run a command and print its output; return whether the command was valid."""
    from kustos.cli.output import OutputFormat, print_error, print_lines
    from kustos.metadata.inspection import ShellError

    try:
        for text in walking.run_line(line) if isinstance(line, str) else walking.run(line):
            print_lines(text)
    except ShellError as error:
        print_error("NOT_FOUND", str(error), OutputFormat.TABLE)
        return False
    return True
