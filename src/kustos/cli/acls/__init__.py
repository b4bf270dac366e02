"""`kustos acls`: list, add and remove ACLs of any Kafka-compatible cluster, as `kafka-acls` does; convert."""

import typer

from kustos.cli.acls import add, convert, list, remove  # noqa: A004 - modules, named as their commands
from kustos.cli.acls.lesson import lesson
from kustos.cli.options import register

app = typer.Typer(
    help="List, add and remove ACLs, as kafka-acls does; convert.", epilog=lesson(), no_args_is_help=True
)
register(app, "list", list.list_acls, list.EXAMPLES)
register(app, "add", add.add, add.EXAMPLES)
register(app, "remove", remove.remove, remove.EXAMPLES)
register(app, "convert", convert.convert, convert.EXAMPLES)
