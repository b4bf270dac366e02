"""What commands share: how they join the tree, and the options that several have, each defined once."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.models import ParameterInfo

from kustos.cli.output import OutputFormat


class AclFormName(StrEnum):
    """`--form`: how a file of ACLs is written."""

    KAFKA_ACLS = "kafka-acls"
    JSON = "json"
    JSON_LINES = "json-lines"
    YAML = "yaml"
    CSV = "csv"
    METADATA = "metadata"


BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help="Nodes of Kafka or kustos to connect to, tried in turn.",
        show_default=False,
    ),
]

OptionalBootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help="Nodes of Kafka or kustos to connect to, tried in turn.",
        show_default=False,
    ),
]

CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Client properties as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        show_default=False,
    ),
]

Output = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", help="The output format; `wide` has more columns."),
]
"""`--output` of every command that prints rows."""


def require_document_output(output: OutputFormat) -> OutputFormat:
    """Refuse formats that need rows, before any work; raise a usage error."""
    if output.needs_rows:
        raise typer.BadParameter(
            f"this command prints one document and has no rows for `{output.value}`, "
            "use `table`, `json` or `yaml`"
        )
    return output


DocumentOutput = Annotated[
    OutputFormat,
    typer.Option(
        "--output",
        "-o",
        metavar="table|json|yaml",
        help="The output format; the answer has no rows for others.",
        callback=require_document_output,
    ),
]
"""`--output` of every command whose answer is one document without rows."""

Topic = Annotated[list[str] | None, typer.Option("--topic", metavar="NAME", help="A topic, or * for all.")]
Group = Annotated[list[str] | None, typer.Option("--group", metavar="NAME", help="A group, or * for all.")]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
TransactionalId = Annotated[
    list[str] | None, typer.Option("--transactional-id", metavar="ID", help="A transactional id, or *.")
]
DelegationToken = Annotated[
    list[str] | None, typer.Option("--delegation-token", metavar="ID", help="A delegation token id, or *.")
]
UserPrincipal = Annotated[
    list[str] | None,
    typer.Option("--user-principal", metavar="TYPE:NAME", help="A user as a resource, for token APIs."),
]


IgnoreTornTail = Annotated[
    bool,
    typer.Option(
        "--ignore-torn-tail",
        help="Ignore an unfinished write at the end of a metadata log; an incomplete copy has one too.",
        # the error about such an end names the option
        hidden=True,
    ),
]


def exit_code_if(case: str) -> Any:
    """Return the option `--exit-code` of a command whose answer is "no" in that case."""
    return typer.Option("--exit-code", help=f"Exit with 5 if {case}, for scripts.")


class _Command(TyperCommand):
    """A command whose usage line leaves out hidden arguments."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line after the command."""
        return [piece for piece in super().collect_usage_pieces(ctx) if piece != "[]"]


def register(app: typer.Typer, name: str, command: Callable[..., Any], examples: str, **options: Any) -> None:
    """Add a command under this name; its docstring is the help, followed by the examples.

    The choices of an option ignore case, as in Kafka's tools.
    """
    for hint in inspect.get_annotations(command).values():
        for info in getattr(hint, "__metadata__", ()):
            if isinstance(info, ParameterInfo):
                info.case_sensitive = False
    options.setdefault("cls", _Command)
    lines = [f"  {line}" for line in examples.strip().splitlines()]
    # the mark `\b` keeps the help from rewrapping these lines
    app.command(name, epilog="\n".join(("\b", "Examples:", *lines)), **options)(command)
