"""The options that select a running cluster, a running node, or a stopped node's directory."""

from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.failures import usage_error

BootstrapController = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT[,...]",
        help="Controllers of Kafka, or the admin listener of a node.",
        show_default=False,
    ),
]


def servers_of(
    bootstrap_server: str | None, bootstrap_controller: str | None, files: list[Path | None]
) -> str:
    """Return the server addresses, empty for files; raise a usage error unless one target was named."""
    targets = [each for each in (bootstrap_server, bootstrap_controller, *files) if each is not None]
    if len(targets) != 1:
        raise usage_error(
            "say whose features: `--bootstrap-server` of a Kafka cluster, `--bootstrap-controller` of a "
            "running node, or `--config` or `--directory` of a stopped one"
        )
    return bootstrap_server or bootstrap_controller or ""
