"""`kustos legacy`: grant and revoke as in KIP-11, over a file of ACLs in ZooKeeper's form."""

import typer

from kustos.cli.commands import register
from kustos.cli.legacy import convert, grant, list, revoke  # noqa: A004 - modules, named as their commands

app = typer.Typer(help="Grant and revoke in a file of legacy (KIP-11) ACLs.", no_args_is_help=True)
register(app, "list", list.list_acls, list.EXAMPLES)
register(app, "grant", grant.grant, grant.EXAMPLES)
register(app, "revoke", revoke.revoke, revoke.EXAMPLES)
register(app, "convert", convert.convert, convert.EXAMPLES)
