"""`kustos features downgrade`."""

from typing import Annotated

import typer

from kustos.cli.features.changing import DryRun, Feature, ReleaseVersion
from kustos.cli.features.options import BootstrapController
from kustos.cli.options import CommandConfig, DocumentOutput, OptionalBootstrapServer
from kustos.cli.output import OutputFormat
from kustos.cli.storage.options import Config, Directory

EXAMPLES = """
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
    from kustos.cli.features.changing import FeatureTarget, change_level
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
