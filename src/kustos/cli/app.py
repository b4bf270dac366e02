"""The tree of commands; each command imports what it needs when it runs."""

from typing import Annotated, Final

import typer

from kustos.cli import (
    acls,
    blast_radius,
    decide,
    diff,
    explain,
    features,
    legacy,
    lint,
    metadata,
    minimize,
    pipeline,
    serve,
    storage,
    trial,
    users,
    verify,
    what_can,
    who_can,
)
from kustos.cli.chooser import TaskGroup, chooser_lines
from kustos.cli.failures import EXIT_CODE_MEANINGS
from kustos.cli.migrate import commands as migrate_command
from kustos.cli.options import DocumentOutput, register
from kustos.cli.output import OutputFormat

# the mark `\b` keeps the help from rewrapping these lines
_EPILOG: Final = "\n".join(
    (
        *chooser_lines(),
        "\b",
        "Exit codes:",
        *(f"{code:5d}  {meaning}" for code, meaning in EXIT_CODE_MEANINGS.items()),
    )
)

app = typer.Typer(
    name="kustos",
    help="The security plane of Apache Kafka: guard, administer, explain, study.",
    epilog=_EPILOG,
    cls=TaskGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def version(output: DocumentOutput = OutputFormat.TABLE) -> None:
    """Print the version of kustos."""
    from kustos import __version__
    from kustos.cli.output import print_document, print_lines

    if output.is_document:
        print_document({"version": __version__}, output)
    else:
        print_lines(f"kustos {__version__}")


def _print_and_exit(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


VersionFlag = Annotated[
    bool,
    typer.Option("--version", callback=_print_and_exit, is_eager=True, help="Print the version and exit."),
]


@app.callback()
def _options_of_all(version: VersionFlag = False) -> None:
    """Take the options before a command."""


app.add_typer(acls.app, name="acls")
app.add_typer(users.app, name="users")
register(app, "explain", explain.explain, explain.EXAMPLES)
register(app, "decide", decide.decide, decide.EXAMPLES)
register(app, "who-can", who_can.who_can, who_can.EXAMPLES)
register(app, "what-can", what_can.what_can, what_can.EXAMPLES)
register(app, "blast-radius", blast_radius.blast_radius, blast_radius.EXAMPLES)
register(app, "diff", diff.diff, diff.EXAMPLES)
register(app, "lint", lint.lint, lint.EXAMPLES)
register(app, "verify", verify.verify, verify.EXAMPLES)
register(app, "trial", trial.trial, trial.EXAMPLES)
register(app, "minimize", minimize.minimize, minimize.EXAMPLES)
app.add_typer(storage.app, name="storage")
app.add_typer(metadata.app, name="metadata")
register(app, "features", features.features, features.EXAMPLES)
register(app, "legacy", legacy.legacy, legacy.EXAMPLES)
register(app, "migrate", migrate_command.migrate, migrate_command.EXAMPLES)
app.add_typer(pipeline.app, name="pipeline")
register(app, "serve", serve.serve, serve.EXAMPLES)
register(app, "version", version, "kustos version", hidden=True)
