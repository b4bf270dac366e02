"""`kustos users add`."""

from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.options import BootstrapServer, CommandConfig, DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.users.options import Mechanism, MechanismName, UserName

EXAMPLES = """
kustos users add alice --bootstrap-server broker:9092
kustos users add alice --bootstrap-server broker:9092 \\
    --mechanism SCRAM-SHA-512 --iterations 8192 --password-file alice.txt
ALICE=... kustos users add alice --bootstrap-server broker:9092 \\
    --password-env ALICE
"""

Iterations = Annotated[
    int,
    typer.Option("--iterations", min=4096, max=16384, help="Rounds of hashing; Kafka accepts this range."),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file", metavar="FILE", help="Read the password from here; one final newline is dropped."
    ),
]
PasswordEnv = Annotated[
    str | None,
    typer.Option("--password-env", metavar="NAME", help="Read the password from this environment variable."),
]


def add(
    name: UserName,
    bootstrap_server: BootstrapServer,
    mechanism: Mechanism = MechanismName.SCRAM_SHA_256,
    iterations: Iterations = 4096,
    password_file: PasswordFile = None,
    password_env: PasswordEnv = None,
    command_config: CommandConfig = None,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Add a SCRAM user, or set a new password for an existing one.

    The password comes from a prompt, a file or an environment variable, never from an argument, which
    every process of the machine could see. Only its salted hash is sent.
    """
    from kustos.cli.failures import failure_of_items
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.passwords import read_password, require_user_name
    from kustos.cli.session import query_cluster
    from kustos.client.admin import PasswordUpsertion

    require_user_name(name)
    password = read_password(f"password of `{name}`", password_file, password_env)
    upsertion = PasswordUpsertion(name, mechanism.mechanism, password.encode(), iterations)
    outcomes = query_cluster(
        bootstrap_server,
        command_config,
        lambda admin: admin.alter_user_scram_credentials([upsertion]),
        "adding a user",
    )
    failure = failure_of_items("adding a user", list(outcomes.values()))
    if failure is not None:
        raise failure
    if output.is_document:
        print_document(
            {"added": {"name": name, "mechanism": mechanism.value, "iterations": iterations}}, output
        )
    else:
        print_lines(f"user {name} can log in with {mechanism.value} ({iterations} iterations)")
