"""`kustos features`: show and change feature levels, as `kafka-features` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kustos.cli.options import CommandConfig, DocumentOutput, OptionalBootstrapServer, Output, register
from kustos.cli.output import Column, Columns, OutputFormat, print_rows
from kustos.cli.storage.options import BootstrapController, Config, Directory

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
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.session import query_cluster
    from kustos.cli.storage.bootstrap import metadata_level
    from kustos.cli.storage.options import servers_of
    from kustos.metadata import METADATA_VERSION_FEATURE, metadata_version_name

    files = [target.config, target.directory]
    servers = servers_of(target.bootstrap_server, target.bootstrap_controller, files)
    if not feature and release_version is None:
        raise usage_error(
            "the level is missing, give `--release-version` or `--feature metadata.version=LEVEL`"
        )
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
        error = _change_directory(target, level, upgrade_type, dry_run=dry_run)
        if error is not None:
            raise CommandError(ExitCode.FAILED, "INVALID_UPDATE_VERSION", error)
    name = metadata_version_name(level)
    if output.is_document:
        document = {"feature": METADATA_VERSION_FEATURE, "level": name, "done": not dry_run}
        print_document(document, output)
    else:
        print_lines(f"{METADATA_VERSION_FEATURE} {'can be' if dry_run else 'is now'} {name}")


def _change_directory(
    target: FeatureTarget, level: int, upgrade_type: "UpgradeType", *, dry_run: bool
) -> str | None:
    """Change the level in a directory; return why it is refused, None if it was done."""
    from kustos.cli.session import opened_store
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


DESCRIBE_EXAMPLES = """
kustos features describe --bootstrap-server broker:9092
kustos features describe --bootstrap-controller node:9091 \\
    --command-config admin.properties
kustos features describe -c kustos.properties
"""


def describe(
    bootstrap_server: OptionalBootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    config: Config = None,
    directory: Directory = None,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the levels of features.

    Of a Kafka cluster, of a node by its admin listener, or of a directory, which may be in use. The client
    listeners of a node show the levels of the upstream cluster.
    """
    from kustos.cli.session import query_cluster
    from kustos.cli.storage.options import servers_of

    servers = servers_of(bootstrap_server, bootstrap_controller, [config, directory])
    if servers:
        found = query_cluster(
            servers, command_config, lambda admin: admin.describe_features(), "reading features"
        )
    else:
        found = _levels_of_directory(config, directory)
    print_levels(found, output)


def _levels_of_directory(config: Path | None, directory: Path | None) -> dict[str, tuple[int, int, int]]:
    from kustos.cli.storage.options import find_target
    from kustos.metadata.control import SUPPORTED_FEATURES
    from kustos.metadata.directory import describe_directory

    levels = describe_directory(find_target(config, directory).directory).image.features
    return {
        name: (lowest, highest, levels.get(name, 0)) for name, (lowest, highest) in SUPPORTED_FEATURES.items()
    }


DOWNGRADE_EXAMPLES = """
kustos features downgrade -c kustos.properties --dry-run \\
    --release-version 4.3
kustos features downgrade --bootstrap-controller node:9091 \\
    --command-config admin.properties --feature metadata.version=30
"""

Unsafe = Annotated[
    bool, typer.Option("--unsafe", help="Request it even if records may be lost; Kafka refuses that.")
]


def downgrade(
    bootstrap_server: OptionalBootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    config: Config = None,
    directory: Directory = None,
    feature: Feature = None,
    release_version: ReleaseVersion = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    command_config: CommandConfig = None,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Lower metadata.version, if no record can be lost.

    A level that added records, or fields of records, has no way back: a lower level cannot read them.
    Kafka refuses this downgrade even with --unsafe, and a node of kustos refuses it with the same text.
    """
    from kustos.metadata.control import UpgradeType

    target = FeatureTarget(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        config=config,
        directory=directory,
        command_config=command_config,
    )
    way = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    change_level(target, feature, release_version, way, output, dry_run=dry_run)


UPGRADE_EXAMPLES = """
kustos features upgrade -c kustos.properties --release-version 4.4-IV2
kustos features upgrade --bootstrap-controller node:9091 \\
    --command-config admin.properties --feature metadata.version=33
"""


def upgrade(
    bootstrap_server: OptionalBootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    config: Config = None,
    directory: Directory = None,
    feature: Feature = None,
    release_version: ReleaseVersion = None,
    dry_run: DryRun = False,
    command_config: CommandConfig = None,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Raise metadata.version.

    Of a Kafka cluster, of a running node by its admin listener, or of the directory of a stopped one. Most
    levels have no way back, see `features downgrade`. From 4.4-IV1 on ACLs may have ranges of addresses;
    Kafka's tools of 4.3 do not read such a directory.
    """
    from kustos.metadata.control import UpgradeType

    target = FeatureTarget(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        config=config,
        directory=directory,
        command_config=command_config,
    )
    change_level(target, feature, release_version, UpgradeType.UPGRADE, output, dry_run=dry_run)


Levels = Mapping[str, tuple[int, int, int]]
"""The lowest and highest supported levels and the current one, by feature."""

_Row = dict[str, str]

FEATURES: Final[Columns[_Row]] = Columns(
    (
        Column("feature", itemgetter("feature")),
        Column("supported_min_version", itemgetter("supported_min_version"), title="supported from"),
        Column("supported_max_version", itemgetter("supported_max_version"), title="supported to"),
        Column("finalized_version_level", itemgetter("finalized_version_level"), title="finalized"),
    ),
    lambda row: (row["feature"],),
    "the features",
)


def print_levels(levels: Levels, output: OutputFormat) -> None:
    """Print the features by name; levels of metadata.version have their own names."""
    rows = [
        {
            "feature": name,
            "supported_min_version": _level(name, lowest),
            "supported_max_version": _level(name, highest),
            "finalized_version_level": _level(name, level),
        }
        for name, (lowest, highest, level) in sorted(levels.items())
    ]
    print_rows(FEATURES, rows, output, document=lambda: {"features": rows})


def _level(name: str, level: int) -> str:
    from kustos.metadata import METADATA_VERSION_FEATURE, metadata_version_name

    return metadata_version_name(level) if name == METADATA_VERSION_FEATURE else str(level)


app = typer.Typer(help="Show and change levels of features, as kafka-features.", no_args_is_help=True)
register(app, "describe", describe, DESCRIBE_EXAMPLES)
register(app, "downgrade", downgrade, DOWNGRADE_EXAMPLES)
register(app, "upgrade", upgrade, UPGRADE_EXAMPLES)
