"""`kustos features describe`."""

from pathlib import Path

from kustos.cli.features.options import BootstrapController
from kustos.cli.options import CommandConfig, OptionalBootstrapServer, Output
from kustos.cli.output import OutputFormat
from kustos.cli.storage.options import Config, Directory

EXAMPLES = """
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
    from kustos.cli.features.options import servers_of
    from kustos.cli.features.rendering import print_levels
    from kustos.cli.session import query_cluster

    servers = servers_of(bootstrap_server, bootstrap_controller, [config, directory])
    if servers:
        found = query_cluster(
            servers, command_config, lambda admin: admin.describe_features(), "reading features"
        )
    else:
        found = _of_directory(config, directory)
    print_levels(found, output)


def _of_directory(config: Path | None, directory: Path | None) -> dict[str, tuple[int, int, int]]:
    from kustos.cli.storage.options import find_target
    from kustos.metadata.control import SUPPORTED_FEATURES
    from kustos.metadata.directory import describe_directory

    levels = describe_directory(find_target(config, directory).directory).image.features
    return {
        name: (lowest, highest, levels.get(name, 0)) for name, (lowest, highest) in SUPPORTED_FEATURES.items()
    }
