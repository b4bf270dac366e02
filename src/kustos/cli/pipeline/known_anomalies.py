"""`kustos pipeline anomalies`: list what searches found, and acknowledge it. Needs no Spark."""

from datetime import UTC, datetime
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.failures import ExitCode, usage_error
from kustos.cli.options import Output, exit_code_if
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import DEFAULT_CONFIG, ClusterOption, Config, Limit, configured

if TYPE_CHECKING:
    from kustos.cli.output import Columns

LIST_EXAMPLES = """
kustos pipeline anomalies list
kustos pipeline anomalies list --state suppressed
kustos pipeline anomalies list --state all --limit 1000 --output json
"""
ACKNOWLEDGE_EXAMPLES = """
kustos pipeline anomalies acknowledge 3fb0a1c9 --by alice \\
    --reason "the new VPN, see INC-4711"
kustos pipeline anomalies acknowledge 3fb0a1c9 --undo
"""

SHORT_ID: Final = 8
"""Characters of an id that are shown: enough for ten thousand anomalies."""

_OVER: Final = {True: "yes", False: "no", None: "too early to say"}


class AnomalyState(StrEnum):
    """Which anomalies to list."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    SUPPRESSED = "suppressed"
    RESOLVED = "resolved"
    ALL = "all"


Ids = Annotated[
    list[str], typer.Argument(metavar="ID", help="Ids of anomalies, or at least their first 6 characters.")
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="The name of the person who acknowledges. [required]"),
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why they need no more attention. [required]"),
]
Undo = Annotated[bool, typer.Option("--undo", help="Reopen anomalies that were acknowledged or resolved.")]
State = Annotated[AnomalyState, typer.Option("--state", help="Which anomalies to list.")]
ExitCodeFlag = Annotated[bool, exit_code_if("an anomaly is open")]


def anomaly_columns() -> "Columns[dict[str, Any]]":
    """Return the columns of anomalies."""
    from kustos.cli.output import Column, ColumnFormats, Columns, Words
    from kustos.cli.pipeline.shown import seen

    return Columns(
        (
            Column("anomaly_id", lambda row: row["anomaly_id"][:SHORT_ID], ColumnFormats.NARROW, title="id"),
            Column("anomaly_id", itemgetter("anomaly_id"), ColumnFormats.WIDE),
            Column("cluster", itemgetter("cluster"), ColumnFormats.WIDE),
            Column("state", itemgetter("state")),
            Column("severity", itemgetter("severity")),
            Column("score", lambda row: f"{row['score']:.2f}"),
            Column("kind", itemgetter("kind")),
            Column("principal", itemgetter("principal")),
            Column("first_time", lambda row: seen(row["first_time"]), title="first"),
            Column("last_time", lambda row: seen(row["last_time"]), title="last"),
            Column("day_count", itemgetter("day_count"), title="days"),
            Column("event_count", itemgetter("event_count"), ColumnFormats.WIDE, title="events"),
            Column("is_over", lambda row: _OVER[row["is_over"]], ColumnFormats.WIDE, title="over"),
            Column("acknowledged_by", itemgetter("acknowledged_by"), ColumnFormats.WIDE),
            Column("suppressed_by", itemgetter("suppressed_by"), ColumnFormats.WIDE),
            Column("reason", lambda row: Words(row["reason"])),
        ),
        lambda row: [row["anomaly_id"]],
        "the ids, as `pipeline anomalies acknowledge` takes them",
    )


def list_anomalies(
    config: Config = DEFAULT_CONFIG,
    state: State = AnomalyState.OPEN,
    cluster: ClusterOption = None,
    limit: Limit = 20,
    exit_code: ExitCodeFlag = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """List what searches found, the most severe first.

    Lists the anomalies of all clusters, or of the cluster that `--cluster` or the configuration names. An
    anomaly is OPEN until it is ACKNOWLEDGED, SUPPRESSED by the configuration, or RESOLVED: not seen for a
    week that the record covers. Without that record it is too early to say, and the state does not change. A
    HIGH anomaly must be acknowledged before it can be resolved.
    """
    from collections import Counter

    from kustos.cli.output import print_rows
    from kustos.cli.pipeline.inputs import filled_tables, of_cluster
    from kustos.cli.pipeline.shown import plain

    configuration = configured(config)
    is_of_one = cluster is not None or configuration.cluster is not None
    tables = of_cluster(configuration, cluster)[1] if is_of_one else filled_tables(configuration)
    from kustos.pipeline.anomalies import stored_states

    found = stored_states(tables)
    counts = dict(sorted(Counter(row["state"] for row in found).items()))
    chosen = [row for row in found if state is AnomalyState.ALL or row["state"] == state.name]
    rows = chosen[:limit]
    lead = _headline(counts)
    print_rows(
        anomaly_columns(),
        rows,
        output,
        document=lambda: plain({"states": counts, "anomalies": rows}),
        lead=(lead,),
        people=lambda: _print(lead, rows, len(chosen)),
    )
    return ExitCode.NO if exit_code and counts.get("OPEN") else ExitCode.OK


def acknowledge(
    ids: Ids,
    by: By = None,
    reason: Reason = None,
    undo: Undo = False,
    config: Config = DEFAULT_CONFIG,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Record who acknowledges anomalies, and why.

    A HIGH anomaly is open again when it is seen on another day, any other when it comes back after it was
    resolved. The table `anomaly_states` keeps who acknowledged an anomaly, when and why.
    """
    from kustos.cli.pipeline.inputs import filled_tables

    if undo and (by is not None or reason is not None):
        raise usage_error("`--undo` takes neither `--by` nor `--reason`, remove them")
    if not undo and (by is None or reason is None):
        raise usage_error("use `--by` and `--reason` to acknowledge, or `--undo` to reopen")
    tables = filled_tables(configured(config))
    from kustos.pipeline.anomalies import acknowledge as acknowledged
    from kustos.pipeline.anomalies import reopen

    changed = (
        reopen(tables, ids)
        if by is None or reason is None
        else acknowledged(tables, ids, by=by, reason=reason, at=datetime.now(UTC))
    )
    _print_changed(changed, output)


def print_anomalies(rows: list[dict[str, Any]]) -> None:
    """Print anomalies for people, each with its reason below it."""
    from kustos.cli.output import print_lines, print_paragraph, printable
    from kustos.cli.pipeline.shown import day, seen

    for row in rows:
        principal = printable(row["principal"] or "(no principal)")
        state = "" if row["state"] == "OPEN" else f"  {row['state']}"
        times = f"{row['day_count']:,} days, " if row["day_count"] > 1 else ""
        print_lines(
            "",
            f"{row['anomaly_id'][:SHORT_ID]}  {row['severity']} {row['score']:.2f}  {row['kind']}{state}",
            f"  {principal}",
            f"  {times}first {seen(row['first_time'])}, last {seen(row['last_time'])}",
        )
        print_paragraph(row["reason"], indent="  ")
        if row["unseen_days"] and row["state"] in ("OPEN", "ACKNOWLEDGED"):
            unclear = ", so it is too early to say that it is over" if row["is_over"] is None else ""
            unseen = f"not seen for {row['unseen_days']:,} judged days, {row['recorded_days']:,} of them "
            print_paragraph(f"{unseen}have a record{unclear}", indent="  ")
        if row["acknowledged_by"] is not None:
            said = f"{row['acknowledged_by']}, {day(row['acknowledged_at'])}: {row['acknowledged_reason']}"
            print_paragraph(f"acknowledged by {printable(said)}", indent="  ")
        if row["suppressed_by"] is not None:
            print_paragraph(f"suppressed: {printable(row['suppressed_by'])}", indent="  ")


def _headline(counts: dict[str, int]) -> str:
    if not counts:
        return "no anomalies"
    return ", ".join(f"{count:,} {state.lower()}" for state, count in counts.items())


def _print(lead: str, rows: list[dict[str, Any]], count: int) -> None:
    from kustos.cli.output import print_lines

    print_lines(lead)
    print_anomalies(rows)
    if count > len(rows):
        print_lines("", f"and {count - len(rows):,} more, see `--limit`")


def _print_changed(rows: list[dict[str, Any]], output: OutputFormat) -> None:
    from kustos.cli.output import print_rows
    from kustos.cli.pipeline.shown import plain

    print_rows(
        anomaly_columns(),
        rows,
        output,
        document=lambda: plain({"anomalies": rows}),
        people=lambda: print_anomalies(rows),
    )
