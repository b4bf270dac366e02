"""`kustos pipeline replay`."""

from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.acl_options import SourceArgument, with_acl_source
from kustos.cli.options import Output, exit_code_if
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    ClusterOption,
    Config,
    DryRun,
    Limit,
    Rules,
    Since,
    Until,
    configured,
    working,
)

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource
    from kustos.cli.output import Columns

EXAMPLES = """
kustos pipeline replay new-acls.yaml --exit-code
kustos pipeline replay git:feature/payments:acls.yaml --today \\
    --since 2026-08-01
kustos pipeline replay /var/lib/kustos/metadata@2026-11-03
"""

Today = Annotated[
    bool,
    typer.Option(
        "--today", help="Compare with the decisions of the configured ACLs, not with the recorded ones."
    ),
]
ExitCodeFlag = Annotated[bool, exit_code_if("any use is lost, or it is too early to say")]


@with_acl_source(before="config", argument=SourceArgument, decides=False)
def replay(
    source: "AclSource",
    config: Config = DEFAULT_CONFIG,
    today: Today = False,
    rules: Rules = False,
    since: Since = None,
    until: Until = None,
    cluster: ClusterOption = None,
    limit: Limit = 20,
    exit_code: ExitCodeFlag = False,
    dry_run: DryRun = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Show who loses or gains access under other ACLs.

    Decides all recorded requests again by these ACLs. Shows which principals lose or gain which resources,
    how many requests that were, and an example. All rows go to the table `replay_flips`, which the report
    shows too. Names that only filtered a list are counted separately: no client fails without them.

    The answer rests on the record from `--since` to `--until`, or of `review.dormant_days` up to now.
    """
    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_rows
    from kustos.cli.pipeline.inputs import acl_set, of_cluster, period_of, todays_acls
    from kustos.cli.pipeline.shown import plain, print_plan

    configuration = configured(config)
    first, last = period_of(since, until)
    configuration, tables = of_cluster(configuration, cluster)
    candidate = acl_set(source, configuration.acls)
    acls = candidate.name
    baseline = todays_acls(configuration, config.absolute().parent) if today else None
    compared = "what was recorded" if baseline is None else f"{len(baseline.bindings)} ACLs of today"
    if dry_run:
        print_plan([f"would compare {len(candidate.bindings)} ACLs of `{acls}` with {compared}"], output)
        return ExitCode.OK
    from kustos.pipeline.queries.record import RECORD_COLUMNS, end_of, record_of, window_of
    from kustos.pipeline.replay.job import replay_of_tables

    end = end_of(last)
    days = window_of(first, end, configuration.review.dormant_days)
    with working("replay", configuration.spark, tables.recorded_rows(), steps=3) as (spark, step):
        step("deciding")
        tables = tables.rolled_up(spark)
        rollup = tables.read(spark, "audit_rollup", columns=RECORD_COLUMNS, first_day=first, last_day=last)
        record = record_of(rollup, end, days)
        found = replay_of_tables(
            spark, tables, candidate, baseline, first_day=first, last_day=last, rule_changes=rules
        )
        tables = tables.replace("replay_flips", found.flips.withColumns(record.columns()))
        step("summing up")
        saved = type(found)(tables.read(spark, "replay_flips"))
        kinds = [row.asDict() for row in saved.by_kind.collect()]
        step("looking for the largest")
        top = [row.asDict() for row in saved.top(limit).collect()]
    lost = sum(kind["event_count"] for kind in kinds if (kind["kind"], kind["access"]) == ("LOST", "ACCESS"))
    asked = {"cluster": tables.chosen_cluster.name, "acls": acls, "compared_with": compared}
    document = {**asked, "lost": lost, "record": record.as_dict(), "kinds": kinds, "flips": top}
    lead = (_headline(acls, compared, kinds), record.text("that no use is lost"))
    print_rows(
        flip_columns(),
        top,
        output,
        document=lambda: plain(document),
        lead=lead,
        people=lambda: _print(lead, kinds, top),
    )
    return ExitCode.NO if exit_code and (lost or not record.is_enough) else ExitCode.OK


_WORDS: Final = {"LOST": "lost", "GAINED": "gained", "RULE_CHANGED": "other rule"}
_WAYS: Final = {"ACCESS": "uses", "PROBE": "probes", "LISTING": "lists"}


def flip_columns() -> "Columns[dict[str, Any]]":
    """Return the columns of accesses whose decision flips."""
    from kustos.cli.output import Column, ColumnFormats, Columns
    from kustos.cli.pipeline.shown import resource_columns

    return Columns(
        (
            Column("kind", lambda row: _WORDS[row["kind"]], title="what"),
            Column("access", lambda row: row["access"].lower()),
            Column("principal", itemgetter("principal")),
            Column("host", itemgetter("host")),
            Column("operation", itemgetter("operation")),
            *resource_columns(),
            Column("event_count", itemgetter("event_count"), title="requests"),
            Column("from_rule", itemgetter("from_rule"), ColumnFormats.WIDE, title="before by"),
            Column("to_rule", itemgetter("to_rule"), title="now by"),
        ),
        lambda row: (row["principal"],),
        "the principals that lose or gain access",
    )


def _headline(acls: str, compared: str, kinds: list[dict[str, Any]]) -> str:
    if not kinds:
        return f"{acls} decides all recorded access as before ({compared})"
    return f"{acls} against {compared}"


def _print(lead: tuple[str, str], kinds: list[dict[str, Any]], top: list[dict[str, Any]]) -> None:
    from kustos.cli.output import print_lines, print_paragraph, print_table
    from kustos.cli.pipeline.shown import day, resource

    print_lines(lead[0])
    print_paragraph(lead[1])
    if not kinds:
        return
    print_table(
        ("what", "of", "requests", "principals", "resources", "first", "last"),
        [
            (
                _WORDS[row["kind"]],
                _WAYS.get(row["access"], "lists"),
                row["event_count"],
                row["principal_count"],
                row["resource_count"],
                day(row["first_time"]),
                day(row["last_time"]),
            )
            for row in sorted(kinds, key=lambda row: (row["access"], row["kind"] != "LOST", row["kind"]))
        ],
    )
    print_table(
        ("what", "of", "principal", "host", "operation", "resource", "requests", "now by"),
        [
            (
                _WORDS[row["kind"]],
                _WAYS.get(row["access"], "lists"),
                row["principal"],
                row["host"],
                row["operation"],
                resource(row),
                row["event_count"],
                row["to_rule"],
            )
            for row in top
        ],
        title="the largest (all are in `replay_flips`)",
    )
