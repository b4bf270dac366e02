"""`kustos features upgrade`."""

from kustos.cli.features.changing import DryRun, Feature, ReleaseVersion
from kustos.cli.features.options import BootstrapController
from kustos.cli.options import CommandConfig, DocumentOutput, OptionalBootstrapServer
from kustos.cli.output import OutputFormat
from kustos.cli.storage.options import Config, Directory

EXAMPLES = """
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
    from kustos.cli.features.changing import FeatureTarget, change_level
    from kustos.metadata.control import UpgradeType

    target = FeatureTarget(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        config=config,
        directory=directory,
        command_config=command_config,
    )
    change_level(target, feature, release_version, UpgradeType.UPGRADE, output, dry_run=dry_run)
