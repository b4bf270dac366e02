"""`kustos users list`."""

from kustos.cli.options import BootstrapServer, CommandConfig, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos users list --bootstrap-server broker:9092 \\
    --command-config admin.properties
"""


def list_users(
    bootstrap_server: BootstrapServer,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List all SCRAM users with their mechanisms."""
    from kustos.cli.session import query_cluster
    from kustos.cli.users.rendering import print_users

    users = query_cluster(
        bootstrap_server,
        command_config,
        lambda admin: admin.describe_user_scram_credentials(),
        "listing users",
    )
    print_users(users, output)
