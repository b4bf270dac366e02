"""`kustos features`: show and change feature levels, as `kafka-features` does."""

import typer

from kustos.cli.commands import register
from kustos.cli.features import describe, downgrade, upgrade

app = typer.Typer(help="Show and change levels of features, as kafka-features.", no_args_is_help=True)
register(app, "describe", describe.describe, describe.EXAMPLES)
register(app, "downgrade", downgrade.downgrade, downgrade.EXAMPLES)
register(app, "upgrade", upgrade.upgrade, upgrade.EXAMPLES)
