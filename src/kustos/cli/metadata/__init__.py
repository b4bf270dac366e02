"""`kustos metadata`: inspect metadata logs of kustos or Kafka, also their past states."""

import typer

from kustos.cli.metadata import dump, history, portable, repair, shell, verify
from kustos.cli.options import register

app = typer.Typer(help="Inspect metadata logs, at earlier moments too.", no_args_is_help=True)
register(app, "dump", dump.dump, dump.EXAMPLES)
register(app, "verify", verify.verify, verify.EXAMPLES)
register(app, "repair", repair.repair, repair.EXAMPLES)
register(app, "shell", shell.shell, shell.EXAMPLES, context_settings={"allow_interspersed_args": False})
register(app, "history", history.history, history.EXAMPLES)
register(app, "export", portable.export, portable.EXPORT_EXAMPLES)
register(app, "import", portable.import_metadata, portable.IMPORT_EXAMPLES)
