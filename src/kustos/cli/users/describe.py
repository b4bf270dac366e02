"""`kustos users describe`."""

from typing import Annotated

import typer

from kustos.cli.options import BootstrapServer, CommandConfig, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos users describe alice bob --bootstrap-server broker:9092
"""

UserNames = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names, without `User:`.")]


def describe(
    names: UserNames,
    bootstrap_server: BootstrapServer,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the SCRAM mechanisms of some users.

    Fails if one of them does not exist.
    """
    from kustos.cli.failures import CommandError, ExitCode, failure_of_items, usage_error
    from kustos.cli.session import query_cluster
    from kustos.cli.users.rendering import print_users
    from kustos.client import RESOURCE_NOT_FOUND

    if len(set(names)) < len(names):
        raise usage_error("each user can be named once")
    users = query_cluster(
        bootstrap_server,
        command_config,
        lambda admin: admin.describe_user_scram_credentials(names),
        "describing users",
    )
    found = [user for user in users if user.error is None]
    if found:
        print_users(found, output)
    missing = [u.name for u in users if u.error is not None and u.error.code == RESOURCE_NOT_FOUND]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise CommandError(
            ExitCode.FAILED,
            "RESOURCE_NOT_FOUND",
            f"no SCRAM user {listed}; `kustos users list` shows those that exist",
        )
    failure = failure_of_items("describing users", [user.error for user in users])
    if failure is not None:
        raise failure
