"""`kustos users remove`."""

from typing import Annotated

import typer

from kustos.cli.options import BootstrapServer, CommandConfig, DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.users.options import Mechanism, MechanismName, UserName

EXAMPLES = """
kustos users remove alice --bootstrap-server broker:9092
kustos users remove alice --bootstrap-server broker:9092 \\
    --mechanism SCRAM-SHA-512 --force
"""

Force = Annotated[bool, typer.Option("--force", help="Remove without confirmation.")]


def remove(
    name: UserName,
    bootstrap_server: BootstrapServer,
    mechanism: Mechanism = MechanismName.SCRAM_SHA_256,
    force: Force = False,
    command_config: CommandConfig = None,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Remove a user's credential of one SCRAM mechanism.

    Asks for confirmation unless `--force` is given. ACLs of the user stay, and so do connections that are
    already logged in.
    """
    from kustos.cli.confirm import confirm
    from kustos.cli.failures import failure_of_items
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.session import query_cluster
    from kustos.client.admin import CredentialDeletion

    if not force:
        confirm("remove", [f"the {mechanism.value} credential of user {name}"])
    outcomes = query_cluster(
        bootstrap_server,
        command_config,
        lambda admin: admin.alter_user_scram_credentials(
            deletions=[CredentialDeletion(name, mechanism.mechanism)]
        ),
        "removing a user",
    )
    failure = failure_of_items("removing a user", list(outcomes.values()))
    if failure is not None:
        raise failure
    if output.is_document:
        print_document({"removed": {"name": name, "mechanism": mechanism.value}}, output)
    else:
        print_lines(f"user {name} can no longer log in with {mechanism.value}")
