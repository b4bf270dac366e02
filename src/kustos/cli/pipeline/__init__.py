"""`kustos pipeline`: study months of access with Spark. Spark is not loaded before a command runs."""

import typer

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

app = typer.Typer(help="Study months of access with Spark.", no_args_is_help=True)
register(app, "run", run.run, run.EXAMPLES)
register(app, "replay", replay.replay, replay.EXAMPLES)
register(app, "review", review.review, review.EXAMPLES)
app.add_typer(signoff.app, name="signoff")
register(app, "judge", judge.judge, judge.EXAMPLES)
register(app, "recommend", recommend.recommend, recommend.EXAMPLES)
app.add_typer(anomalies.app, name="anomalies")
register(app, "flows", flows.flows, flows.EXAMPLES)
register(app, "report", report.report, report.EXAMPLES)
register(app, "check", check.check, check.EXAMPLES)
