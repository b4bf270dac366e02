"""`kustos pipeline anomalies`."""

from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import Output, exit_code_if
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.working import DEFAULT_CONFIG, Config, DryRun, Limit, Until, configured, working

if TYPE_CHECKING:
    from kustos.cli.output import Columns

EXAMPLES = """
kustos pipeline anomalies
kustos pipeline anomalies --until 2026-10-31 --days 31
kustos pipeline anomalies --days 1 --exit-code
"""

Days = Annotated[
    int,
    typer.Option("--days", metavar="N", min=1, max=3660, help="How many days to judge; habits come before."),
]
ExitCodeFlag = Annotated[bool, exit_code_if("anything was found")]


def anomalies(
    config: Config = DEFAULT_CONFIG,
    until: Until = None,
    days: Days = 30,
    limit: Limit = 20,
    exit_code: ExitCodeFlag = False,
    dry_run: DryRun = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Find what does not fit the habits of the days before.

    First uses of foreign resources, new hosts, bursts of denials, unusual hours, enumeration of topics,
    use of super users, credentials that wake after a long time; passwords that are guessed or tried on
    many names, and logins that succeed after many failures. Each finding has a score, the reason in
    words, and its evidence; all go to the table `anomalies`.
    """
    from datetime import UTC, datetime, timedelta

    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_rows
    from kustos.cli.pipeline.inputs import day_of, filled_tables
    from kustos.cli.pipeline.shown import plain, print_plan

    configuration = configured(config)
    last = day_of("--until", until) or datetime.now(UTC).date() - timedelta(days=1)
    tables = filled_tables(configuration)
    from kustos.pipeline.anomalies import Window, find_anomalies, keeping

    window = Window.before(last + timedelta(days=1), days)
    period = f"{window.start} to {last}"
    if dry_run:
        print_plan([f"would judge {period} by the days before"], output)
        return ExitCode.OK
    with working("anomalies", configuration.spark, steps=2) as (spark, step):
        step("looking for anomalies")
        rollup = tables.read(spark, "audit_rollup")
        with keeping() as keep:
            found = find_anomalies(
                spark,
                window=window,
                rollup=rollup,
                security_events=tables.read(spark, "security_events"),
                keep=keep,
            )
            tables.replace("anomalies", found)
        step("summing up")
        saved = tables.read(spark, "anomalies")
        kinds = {row["kind"]: int(row["count"]) for row in saved.groupBy("kind").count().collect()}
        gravest = saved.orderBy(saved["score"].desc(), "first_time", "finding_id").limit(limit)
        rows = [row.asDict(recursive=True) for row in gravest.collect()]
    document = {"period": period, "kinds": dict(sorted(kinds.items())), "anomalies": rows}
    print_rows(
        anomaly_columns(),
        rows,
        output,
        document=lambda: plain(document),
        lead=(_headline(period, kinds),),
        people=lambda: _print(period, kinds, rows),
    )
    return ExitCode.NO if exit_code and kinds else ExitCode.OK


def anomaly_columns() -> "Columns[dict[str, Any]]":
    """Return the columns of anomalies."""
    from kustos.cli.output import Column, ColumnFormats, Columns, Words
    from kustos.cli.pipeline.shown import seen

    return Columns(
        (
            Column("severity", itemgetter("severity")),
            Column("score", lambda row: f"{row['score']:.2f}"),
            Column("kind", itemgetter("kind")),
            Column("principal", itemgetter("principal")),
            Column("first_time", lambda row: seen(row["first_time"]), title="first"),
            Column("last_time", lambda row: seen(row["last_time"]), ColumnFormats.WIDE, title="last"),
            Column("finding_id", itemgetter("finding_id"), ColumnFormats.WIDE),
            Column("reason", lambda row: Words(row["reason"])),
        ),
        lambda row: [row["principal"]] if row["principal"] else [],
        "the principals, as `pipeline reach` takes them",
    )


def _headline(period: str, kinds: dict[str, int]) -> str:
    if not kinds:
        return f"nothing unusual from {period}"
    return f"{sum(kinds.values())} anomalies from {period}:"


def _print(period: str, kinds: dict[str, int], rows: list[dict[str, Any]]) -> None:
    from kustos.cli.output import print_lines, print_paragraph
    from kustos.cli.pipeline.shown import seen

    print_lines(_headline(period, kinds))
    if not kinds:
        return
    for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
        print_lines(f"{count:6,}  {kind.replace('_', ' ').lower()}")
    for row in rows:
        principal = row["principal"] or "nobody"
        print_lines(
            "",
            f"{row['severity']} {row['score']:.2f}  {principal}  {seen(row['first_time'])}",
        )
        print_paragraph(row["reason"], indent="  ")
    print_lines("", "all are in the table `anomalies`")
