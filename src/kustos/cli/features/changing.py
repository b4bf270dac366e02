"""Changes the metadata.version of a cluster, a running node, or a stopped node's directory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.metadata.control import UpgradeType

Feature = Annotated[
    list[str] | None,
    typer.Option("--feature", metavar="NAME=LEVEL", help="Only metadata.version: 4.4-IV2, or 33."),
]
ReleaseVersion = Annotated[
    str | None,
    typer.Option("--release-version", metavar="VERSION", help="Short for the feature: 4.3, 4.4-IV2."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check whether the change is possible.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureTarget:
    """The options that select the target of the change: one of four."""

    bootstrap_server: str | None
    bootstrap_controller: str | None
    config: Path | None
    directory: Path | None
    command_config: Path | None


def change_level(
    target: FeatureTarget,
    feature: Sequence[str] | None,
    release_version: str | None,
    upgrade_type: "UpgradeType",
    output: OutputFormat,
    *,
    dry_run: bool,
) -> None:
    """Change metadata.version to the requested level and print it.

    Raises a usage error for arguments that name no level or not exactly one target, and the refusal of the
    cluster or the log, in Kafka's words.
    """
    from kustos.cli.failures import CommandError, ExitCode, usage_error
    from kustos.cli.features.options import servers_of
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.session import query_cluster
    from kustos.cli.storage.bootstrap import metadata_level
    from kustos.metadata import METADATA_VERSION_FEATURE, metadata_version_name

    files = [target.config, target.directory]
    servers = servers_of(target.bootstrap_server, target.bootstrap_controller, files)
    if not feature and release_version is None:
        raise usage_error("say to which level: `--release-version` or `--feature metadata.version=LEVEL`")
    level = metadata_level(feature or (), release_version)
    if servers:
        levels = {METADATA_VERSION_FEATURE: level}
        refused = query_cluster(
            servers,
            target.command_config,
            lambda admin: admin.update_features(levels, upgrade_type, validate_only=dry_run),
            "changing metadata.version",
        )
        if refused is not None:
            raise refused
    else:
        error = _of_directory(target, level, upgrade_type, dry_run=dry_run)
        if error is not None:
            raise CommandError(ExitCode.FAILED, "INVALID_UPDATE_VERSION", error)
    name = metadata_version_name(level)
    if output.is_document:
        document = {"feature": METADATA_VERSION_FEATURE, "level": name, "done": not dry_run}
        print_document(document, output)
    else:
        print_lines(f"{METADATA_VERSION_FEATURE} {'can be' if dry_run else 'is now'} {name}")


def _of_directory(
    target: FeatureTarget, level: int, upgrade_type: "UpgradeType", *, dry_run: bool
) -> str | None:
    """Change the level in a directory; return why it is refused, None if it was done."""
    from kustos.cli.opened_store import opened_store
    from kustos.cli.storage.options import find_target
    from kustos.metadata import METADATA_VERSION_FEATURE
    from kustos.metadata.control import FeatureUpdate, FeatureUpdates, update_features
    from kustos.metadata.directory import describe_directory

    directory = find_target(target.config, target.directory).directory
    found = describe_directory(directory)
    update = FeatureUpdate(METADATA_VERSION_FEATURE, level, upgrade_type)
    updates = FeatureUpdates(found.properties.node_id, (update,), validate_only=dry_run)
    if dry_run:
        (result,) = update_features(found.image, updates).results
    else:
        if_locked = "change the level of the running node by `--bootstrap-controller`"
        with opened_store(directory, if_locked) as store:
            [(result,)] = store.append_many([updates])
    return None if result.error is None else result.error.message
