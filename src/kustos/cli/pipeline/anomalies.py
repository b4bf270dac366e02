"""`kustos pipeline anomalies find`."""

from typing import Annotated, Any

import typer

from kustos.cli.options import Output, exit_code_if, register
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    ClusterOption,
    Config,
    DryRun,
    Limit,
    Until,
    configured,
    working,
)
from kustos.cli.pipeline.known_anomalies import (
    ACKNOWLEDGE_EXAMPLES,
    LIST_EXAMPLES,
    acknowledge,
    anomaly_columns,
    list_anomalies,
    print_anomalies,
)

EXAMPLES = """
kustos pipeline anomalies find
kustos pipeline anomalies find --until 2026-10-31 --days 31
kustos pipeline anomalies find --days 1 --exit-code
"""

Days = Annotated[
    int,
    typer.Option(
        "--days", metavar="N", min=1, max=3660, help="The number of days to judge, by the days before them."
    ),
]
ExitCodeFlag = Annotated[bool, exit_code_if("an anomaly is open, or days have no record")]


def find(
    config: Config = DEFAULT_CONFIG,
    until: Until = None,
    days: Days = 30,
    cluster: ClusterOption = None,
    limit: Limit = 20,
    exit_code: ExitCodeFlag = False,
    dry_run: DryRun = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Find access that does not fit earlier behavior.

    Finds first uses of resources of other teams, new hosts, bursts of denials, sweeps over many names,
    missing rights, unusual hours, enumeration of topics, use of super users, credentials that are used after
    a long silence, guessed and sprayed passwords, and logins that succeed after many failures. Each anomaly
    has a score, a reason and its evidence.

    The tables `anomalies` and `anomaly_states` keep what earlier runs found; `kustos pipeline anomalies list`
    shows it. `anomalies.suppressions` of the configuration hides known anomalies.
    """
    from datetime import UTC, datetime, timedelta

    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_rows
    from kustos.cli.pipeline.inputs import day_of, of_cluster, super_users_of
    from kustos.cli.pipeline.shown import plain, print_plan

    configuration = configured(config)
    last = day_of("--until", until) or datetime.now(UTC).date() - timedelta(days=1)
    suppressions = [rule.suppression() for rule in configuration.anomalies.suppressions]
    configuration, tables = of_cluster(configuration, cluster)
    super_users = super_users_of(configuration)
    from kustos.pipeline.anomalies import Window
    from kustos.pipeline.anomalies.job import ANOMALY_STEPS, run_anomalies

    window = Window.before(last + timedelta(days=1), days)
    period = f"{window.start} to {last}"
    if dry_run:
        print_plan([f"would judge {period} by the days before them"], output)
        return ExitCode.OK
    with working("anomalies", configuration.spark, tables.recorded_rows(), steps=len(ANOMALY_STEPS)) as (
        spark,
        step,
    ):
        sums = run_anomalies(
            spark,
            tables,
            window,
            suppressions=suppressions,
            super_users=super_users,
            limit=limit,
            progress=step,
        )
    rows, record = sums.pop("anomalies"), sums.pop("record")
    head = {"cluster": tables.chosen_cluster.name, "period": period, "record": record.as_dict()}
    document = {**head, **sums, "anomalies": rows}
    lead = (headline(period, sums), record.text("what else there was"))
    print_rows(
        anomaly_columns(),
        rows,
        output,
        document=lambda: plain(document),
        lead=lead,
        people=lambda: _print(lead, sums, rows),
    )
    is_clear = not sums["states"].get("OPEN") and record.is_enough
    return ExitCode.NO if exit_code and not is_clear else ExitCode.OK


def headline(period: str, sums: dict[str, Any]) -> str:
    """Return what was found in one sentence."""
    states = sums["states"]
    if not states:
        return f"nothing unusual from {period}"
    counts = ", ".join(f"{count} {state.lower()}" for state, count in states.items())
    return f"{sum(states.values())} anomalies from {period}, {sums['new']} of them new: {counts}"


def _print(lead: tuple[str, str], sums: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    from kustos.cli.output import print_lines, print_paragraph

    print_lines(lead[0])
    print_paragraph(lead[1])
    for kind, count in sorted(sums["kinds"].items(), key=lambda item: (-item[1], item[0])):
        print_lines(f"{count:6,}  {kind.replace('_', ' ').lower()}")
    print_anomalies(rows)
    if rows:
        print_lines("", "`kustos pipeline anomalies list` shows those of all runs")


app = typer.Typer(help="Find, list and acknowledge unusual access.", no_args_is_help=True)
register(app, "find", find, EXAMPLES)
register(app, "list", list_anomalies, LIST_EXAMPLES)
register(app, "acknowledge", acknowledge, ACKNOWLEDGE_EXAMPLES)
