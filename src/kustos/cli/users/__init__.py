"""`kustos users`: SCRAM users of any Kafka-compatible cluster, like `kafka-configs --entity-type users`."""

import typer

from kustos.cli.commands import register
from kustos.cli.users import add, describe, list, remove  # noqa: A004 - modules, named as their commands

app = typer.Typer(help="List, describe, add and remove SCRAM users.", no_args_is_help=True)
register(app, "list", list.list_users, list.EXAMPLES)
register(app, "describe", describe.describe, describe.EXAMPLES)
register(app, "add", add.add, add.EXAMPLES)
register(app, "remove", remove.remove, remove.EXAMPLES)
