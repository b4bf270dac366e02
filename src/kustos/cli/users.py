"""`kustos users`: SCRAM users of any Kafka-compatible cluster, like `kafka-configs --entity-type users`."""

from collections.abc import Sequence
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.options import BootstrapServer, CommandConfig, DocumentOutput, Output, register
from kustos.cli.output import Column, Columns, OutputFormat, print_rows

if TYPE_CHECKING:
    from kustos.client.admin import DescribedScramUser
    from kustos.metadata import ScramMechanism


class MechanismName(StrEnum):
    """The SCRAM mechanisms of Kafka."""

    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"

    @property
    def mechanism(self) -> "ScramMechanism":
        """The corresponding mechanism."""
        from kustos.metadata import ScramMechanism

        return ScramMechanism[self.name]


UserName = Annotated[str, typer.Argument(metavar="NAME", help="The user's name, without `User:`.")]
Mechanism = Annotated[MechanismName, typer.Option("--mechanism", help="The SASL mechanism.")]

LIST_EXAMPLES = """
kustos users list --bootstrap-server broker:9092 \\
    --command-config admin.properties
kustos users list alice bob --bootstrap-server broker:9092
"""

UserNames = Annotated[
    list[str] | None, typer.Argument(metavar="NAME...", help="Names, without `User:`. [all]")
]


def list_users(
    bootstrap_server: BootstrapServer,
    names: UserNames = None,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List SCRAM users with their mechanisms.

    Fails if one of the named users does not exist.
    """
    from kustos.cli.failures import CommandError, ExitCode, failure_of_items, usage_error
    from kustos.cli.session import query_cluster
    from kustos.client import RESOURCE_NOT_FOUND

    if len(set(names or ())) < len(names or ()):
        raise usage_error("each user can be named once")
    users = query_cluster(
        bootstrap_server,
        command_config,
        lambda admin: admin.describe_user_scram_credentials(names or ()),
        "listing users",
    )
    found = [user for user in users if user.error is None]
    if found or not names:
        print_users(found, output)
    missing = [u.name for u in users if u.error is not None and u.error.code == RESOURCE_NOT_FOUND]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise CommandError(
            ExitCode.FAILED,
            "RESOURCE_NOT_FOUND",
            f"no SCRAM user {listed}; `kustos users list` shows those that exist",
        )
    failure = failure_of_items("listing users", [user.error for user in users])
    if failure is not None:
        raise failure


ADD_EXAMPLES = """
kustos users add alice --bootstrap-server broker:9092
kustos users add alice --bootstrap-server broker:9092 \\
    --mechanism SCRAM-SHA-512 --iterations 8192 --password-file alice.txt
ALICE=... kustos users add alice --bootstrap-server broker:9092 \\
    --password-env ALICE
"""

Iterations = Annotated[
    int,
    typer.Option(
        "--iterations",
        metavar="N",
        min=4096,
        max=16384,
        help="Rounds of hashing; Kafka accepts this range.",
    ),
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
    from kustos.auth import scram_login_obstacle
    from kustos.cli.failures import failure_of_items
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.passwords import read_password, require_user_name
    from kustos.cli.session import query_cluster
    from kustos.client.admin import PasswordUpsertion

    require_user_name(name)
    obstacle = scram_login_obstacle(name)
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
        outcome = "can log in with" if obstacle is None else "is added, but cannot log in, with"
        why = "" if obstacle is None else f": {obstacle}"
        print_lines(f"user {name} {outcome} {mechanism.value} ({iterations} iterations){why}")


REMOVE_EXAMPLES = """
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
    from kustos.cli.failures import failure_of_items
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.session import query_cluster
    from kustos.cli.terminal import confirm
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


_Credential = tuple[str, str, int]
"""User, mechanism, iterations."""

USERS: Final[Columns[_Credential]] = Columns(
    (
        Column("name", itemgetter(0), title="user"),
        Column("mechanism", itemgetter(1)),
        Column("iterations", itemgetter(2)),
    ),
    lambda row: (row[0],),
    "the users, as `users list` takes them",
)


def user_document(user: "DescribedScramUser") -> dict[str, Any]:
    """Return a user as a document; no part of a credential ever leaves a cluster."""
    credentials = [{"mechanism": name, "iterations": count} for name, count in user.credentials]
    return {"name": user.name, "credentials": credentials}


def print_users(users: "Sequence[DescribedScramUser]", output: OutputFormat) -> None:
    """Print users with their mechanisms, one per line."""
    rows = [(user.name, name, count) for user in users for name, count in user.credentials]
    print_rows(
        USERS,
        rows,
        output,
        document=lambda: {"users": [user_document(user) for user in users]},
        tail=() if users else ("no SCRAM user",),
    )


app = typer.Typer(help="List, add and remove SCRAM users.", no_args_is_help=True)
register(app, "list", list_users, LIST_EXAMPLES)
register(app, "describe", list_users, LIST_EXAMPLES, hidden=True)
register(app, "add", add, ADD_EXAMPLES)
register(app, "remove", remove, REMOVE_EXAMPLES)
