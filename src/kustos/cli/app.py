"""The tree of commands; each command imports what it needs when it runs."""

from typing import Final

import typer

from kustos.cli import (
    acls,
    decide,
    diff,
    explain,
    features,
    legacy,
    lint,
    metadata,
    migrate,
    minimize,
    pipeline,
    serve,
    storage,
    users,
    verify,
    version,
    what_can,
    who_can,
)
from kustos.cli.commands import register
from kustos.cli.failures import EXIT_CODE_MEANINGS

# the mark `\b` keeps the help from rewrapping these lines
_EXIT_CODES: Final = "\n".join(
    ("\b", "Exit codes:", *(f"{code:5d}  {meaning}" for code, meaning in EXIT_CODE_MEANINGS.items()))
)

app = typer.Typer(
    name="kustos",
    help="The security plane of Apache Kafka: guard, administer, explain, study.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options_of_all(version: version.VersionFlag = False) -> None:
    """Take the options before a command."""


app.add_typer(acls.app, name="acls")
app.add_typer(users.app, name="users")
register(app, "explain", explain.explain, explain.EXAMPLES)
register(app, "decide", decide.decide, decide.EXAMPLES)
register(app, "who-can", who_can.who_can, who_can.EXAMPLES)
register(app, "what-can", what_can.what_can, what_can.EXAMPLES)
register(app, "diff", diff.diff, diff.EXAMPLES)
register(app, "lint", lint.lint, lint.EXAMPLES)
register(app, "verify", verify.verify, verify.EXAMPLES)
register(app, "minimize", minimize.minimize, minimize.EXAMPLES)
app.add_typer(storage.app, name="storage")
app.add_typer(metadata.app, name="metadata")
app.add_typer(features.app, name="features")
app.add_typer(legacy.app, name="legacy")
app.add_typer(migrate.app, name="migrate")
app.add_typer(pipeline.app, name="pipeline")
register(app, "serve", serve.serve, serve.EXAMPLES)
register(app, "version", version.version, version.EXAMPLES)
