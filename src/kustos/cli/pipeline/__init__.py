"""`kustos pipeline`: study months of access with Spark. Spark is not loaded before a command runs."""

from typing import Final

import typer

from kustos.cli.chooser import TaskGroup
from kustos.cli.options import register
from kustos.cli.pipeline import (
    anomalies,
    check,
    flows,
    judge,
    recommend,
    replay,
    report,
    review,
    run,
    signoff,
)

TASKS: Final = {
    "Take in": ("run",),
    "Answer": ("report", "review", "anomalies", "flows"),
    "Decide": ("recommend", "replay", "signoff"),
    "Check": ("judge", "check"),
}
"""Task → commands, in the order of the help."""


class PipelineGroup(TaskGroup):
    """The commands of `kustos pipeline`."""

    tasks = TASKS


app = typer.Typer(
    help="Study months of access with Spark.\n\nStart with `run`, then `report`.",
    no_args_is_help=True,
    cls=PipelineGroup,
)
register(app, "run", run.run, run.EXAMPLES)
register(app, "report", report.report, report.EXAMPLES)
register(app, "review", review.review, review.EXAMPLES)
app.add_typer(anomalies.app, name="anomalies")
register(app, "flows", flows.flows, flows.EXAMPLES)
register(app, "recommend", recommend.recommend, recommend.EXAMPLES)
register(app, "replay", replay.replay, replay.EXAMPLES)
app.add_typer(signoff.app, name="signoff")
register(app, "judge", judge.judge, judge.EXAMPLES)
register(app, "check", check.check, check.EXAMPLES)
