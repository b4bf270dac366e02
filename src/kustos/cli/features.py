"""`kustos features`: show and change feature levels, as `kafka-features` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kustos.cli.failures import usage_error
from kustos.cli.options import CommandConfig, OptionalBootstrapServer, Output, require_document_output
from kustos.cli.output import Column, Columns, OutputFormat, print_rows
from kustos.cli.storage.options import BootstrapController, Config, Directory

if TYPE_CHECKING:
    from kustos.metadata.control import UpgradeType

EXAMPLES = """
kustos features describe --bootstrap-server broker:9092
kustos features upgrade -c kustos.properties --release-version 4.4-IV2
kustos features upgrade --bootstrap-controller node:9091 \\
    --command-config admin.properties --feature metadata.version=33
kustos features downgrade -c kustos.properties --dry-run \\
    --release-version 4.3
"""


class FeatureAction(StrEnum):
    """What to do with the levels."""

    DESCRIBE = "describe"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"


Action = Annotated[FeatureAction, typer.Argument(help="Show the levels, raise one or lower one.")]
Feature = Annotated[
    list[str] | None,
    typer.Option("--feature", metavar="NAME=LEVEL", help="Only metadata.version: 4.4-IV2, or 33."),
]
ReleaseVersion = Annotated[
    str | None,
    typer.Option("--release-version", metavar="VERSION", help="Short for the feature: 4.3, 4.4-IV2."),
]
Unsafe = Annotated[
    bool,
    typer.Option("--unsafe", help="With downgrade: request it even if records may be lost; Kafka refuses."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check whether the change is possible.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureTarget:
    """The options that select whose features: one of four."""

    bootstrap_server: str | None
    bootstrap_controller: str | None
    config: Path | None
    directory: Path | None
    command_config: Path | None

    def servers(self) -> str:
        """Return the server addresses, empty for a directory; raise a usage error unless one was named."""
        from kustos.cli.storage.options import servers_of

        return servers_of(self.bootstrap_server, self.bootstrap_controller, [self.config, self.directory])


def features(
    action: Action,
    bootstrap_server: OptionalBootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    config: Config = None,
    directory: Directory = None,
    feature: Feature = None,
    release_version: ReleaseVersion = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show and change levels of features, as kafka-features.

    The target is a Kafka cluster, a running node by its admin listener, or a directory, which a node may
    use while you only `describe` it. The client listeners of a node show the levels of the upstream
    cluster.

    `upgrade` raises metadata.version. From 4.4-IV1 on, ACLs may have ranges of addresses; Kafka's tools of
    4.3 do not read such a directory. `downgrade` lowers it if no record can be lost: a lower level cannot
    read the records, or fields of records, that a higher one added. Kafka refuses such a downgrade even with
    --unsafe, and a node of kustos refuses it with the same text.
    """
    target = FeatureTarget(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        config=config,
        directory=directory,
        command_config=command_config,
    )
    if unsafe and action is not FeatureAction.DOWNGRADE:
        raise usage_error(f"`--unsafe` applies to `downgrade`, not to `{action.value}`; remove it")
    if action is FeatureAction.DESCRIBE:
        if feature or release_version is not None or dry_run:
            raise usage_error(
                "`--feature`, `--release-version` and `--dry-run` do not apply to `describe`, remove them"
            )
        _describe(target, output)
    else:
        from kustos.metadata.control import UpgradeType

        way = UpgradeType.UPGRADE
        if action is FeatureAction.DOWNGRADE:
            way = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
        _change_level(target, feature, release_version, way, output, dry_run=dry_run)


def _change_level(
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
    from kustos.cli.failures import CommandError, ExitCode
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.session import query_cluster
    from kustos.cli.storage.bootstrap import metadata_level
    from kustos.metadata import METADATA_VERSION_FEATURE, metadata_version_name

    require_document_output(output)
    servers = target.servers()
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


def _describe(target: FeatureTarget, output: OutputFormat) -> None:
    from kustos.cli.session import query_cluster

    servers = target.servers()
    if servers:
        found = query_cluster(
            servers, target.command_config, lambda admin: admin.describe_features(), "reading features"
        )
    else:
        found = _levels_of_directory(target)
    print_levels(found, output)


def _levels_of_directory(target: FeatureTarget) -> dict[str, tuple[int, int, int]]:
    from kustos.cli.storage.options import find_target
    from kustos.metadata.control import SUPPORTED_FEATURES
    from kustos.metadata.directory import describe_directory

    directory = find_target(target.config, target.directory).directory
    levels = describe_directory(directory).image.features
    return {
        name: (lowest, highest, levels.get(name, 0)) for name, (lowest, highest) in SUPPORTED_FEATURES.items()
    }


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
