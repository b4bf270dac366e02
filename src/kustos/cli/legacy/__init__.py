"""`kustos legacy`: grant and revoke as in KIP-11, over a file of ACLs in ZooKeeper's form."""

import typer

from kustos.cli.legacy import commands
from kustos.cli.options import register

app = typer.Typer(help="Grant and revoke in a file of legacy (KIP-11) ACLs.", no_args_is_help=True)
register(app, "list", commands.list_acls, commands.LIST_EXAMPLES)
register(app, "grant", commands.grant, commands.GRANT_EXAMPLES)
register(app, "revoke", commands.revoke, commands.REVOKE_EXAMPLES)
register(app, "convert", commands.convert, commands.CONVERT_EXAMPLES)
