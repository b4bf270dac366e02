"""The target of a command: a running cluster or node, or a directory, given or found in a properties file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.failures import usage_error

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The node's properties: `metadata.log.dir` (else `log.dirs`) and `node.id` are read.",
    ),
]
Directory = Annotated[
    Path | None,
    typer.Option("--directory", "-d", metavar="DIR", help="The directory, instead of a properties file."),
]
BootstrapController = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT[,...]",
        help="Controllers of Kafka, or the admin listener of a node.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class StorageTarget:
    """A directory, and the node's id if the properties file has it."""

    directory: Path
    node_id: int | None = None


def find_target(config: Path | None, directory: Path | None) -> StorageTarget:
    """Return the directory of the arguments; raise a usage error unless they name exactly one."""
    if (config is None) == (directory is None):
        raise usage_error("give exactly one of `--config` and `--directory`")
    if directory is not None:
        return StorageTarget(directory)
    if config is None:
        raise usage_error("give `--config`")
    from kustos.client import read_properties

    properties = read_properties(config)
    read = ("metadata.log.dir", "log.dirs", "log.dir", "node.id")
    properties = {key: _resolved(key, properties[key], config) for key in read if key in properties}
    text = properties.get("metadata.log.dir", "").strip() or _first_log_directory(properties)
    if not text:
        raise usage_error(f"`{config}` has neither `metadata.log.dir` nor `log.dirs`, set one")
    node_id = properties.get("node.id", "").strip()
    if node_id and not (node_id.isascii() and node_id.isdigit()):
        raise usage_error(f"`node.id` in `{config}` is `{node_id}`, use a whole number from 0")
    return StorageTarget(Path(text), int(node_id) if node_id else None)


def _resolved(key: str, text: str, config: Path) -> str:
    """Return a value with its references replaced, as the node reads it; raise `SettingsError`."""
    if "${" not in text:
        # what reads references takes most of a second to import
        return text
    from kustos.client import SettingsError
    from kustos.server.settings import References

    try:
        return References(os.environ).resolve(text)
    except SettingsError as error:
        raise SettingsError(f"`{key}` in `{config}`: {error}") from None


def _first_log_directory(properties: dict[str, str]) -> str:
    listed = properties.get("log.dirs") or properties.get("log.dir") or ""
    return listed.split(",")[0].strip()


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
