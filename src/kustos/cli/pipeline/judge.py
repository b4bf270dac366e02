"""`kustos pipeline judge`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import DocumentOutput, exit_code_if
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
    from datetime import datetime

    from kustos.pipeline.configuration import PipelineConfiguration

EXAMPLES = """
kustos pipeline judge
kustos pipeline judge --since 2026-11-01 --exit-code
kustos pipeline judge --metadata /backup/metadata --end-offset 4711
"""

Metadata = Annotated[
    Path | None,
    typer.Option(
        "--metadata",
        metavar="DIR",
        help="Use this metadata log, not the one of the configuration.",
        show_default=False,
    ),
]
EndOffset = Annotated[
    int | None,
    typer.Option(
        "--end-offset",
        metavar="N",
        min=0,
        help="Read the log up to this offset, excluded: the high watermark of a quorum.",
    ),
]
ByRollup = Annotated[
    bool,
    typer.Option("--by-rollup", help="Judge the roll-up, not each event: faster, and by time alone."),
]
ExitCodeFlag = Annotated[bool, exit_code_if("any decision differs")]


def judge(
    config: Config = DEFAULT_CONFIG,
    metadata: Metadata = None,
    end_offset: EndOffset = None,
    by_rollup: ByRollup = False,
    rules: Rules = False,
    since: Since = None,
    until: Until = None,
    cluster: ClusterOption = None,
    limit: Limit = 20,
    exit_code: ExitCodeFlag = False,
    dry_run: DryRun = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Compare recorded decisions with the ACLs of the time.

    The ACLs of each moment come from the metadata log. Finds events that were allowed although no ACL allowed
    them at the time, and events that were denied without a reason. Possible causes: clock skew, a node behind
    its log, another authorizer, or a record that was tampered with. All rows go to the tables `judged` and
    `discrepancies`, which the report shows too.
    """
    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.pipeline.inputs import of_cluster, period_of
    from kustos.cli.pipeline.shown import plain, print_plan

    configuration = configured(config)
    first, last = period_of(since, until)
    configuration, tables = of_cluster(configuration, cluster)
    from kustos.pipeline.history import gravest_discrepancies, history_range
    from kustos.pipeline.history.job import JUDGE_STEPS, JudgeQuestion, run_judgement

    question = JudgeQuestion(
        metadata=_metadata(configuration, metadata),
        end_offset=end_offset,
        from_day=first,
        to_day=last,
        by_rollup=by_rollup,
        **_settings(configuration),
    )
    if dry_run:
        log_range = _range_text(history_range(question.metadata, end_offset))
        print_plan([f"would judge by {question.metadata}", log_range], output)
        return ExitCode.OK
    steps = len(JUDGE_STEPS) + 1
    with working("judge", configuration.spark, tables.recorded_rows(), steps=steps) as (spark, step):
        tables, judged = run_judgement(spark, tables, question, step)
        step("looking for the gravest")
        found = gravest_discrepancies(tables.read(spark, "discrepancies"), limit, with_rules=rules)
        rows = [row.asDict(recursive=True) for row in found.collect()]
    differ = sum(one["events"] for one in judged["verdicts"] if one["verdict"] == "DIFFERS")
    if output.is_document:
        document = {
            "cluster": tables.chosen_cluster.name,
            "metadata": str(question.metadata),
            **judged,
            "differ": differ,
            "examples": _opened(rows),
        }
        print_document(plain(document), output)
    else:
        print_lines(f"judged by {question.metadata}", _range_text(judged["history"]))
        _print(judged, rows, rules)
        if question.super_users is None and any(one["verdict"] == "UNCERTAIN" for one in judged["verdicts"]):
            print_lines(
                "",
                "some lines name no rule: set `acls.super_users` in the configuration to judge them",
            )
    return ExitCode.NO if exit_code and differ else ExitCode.OK


def _metadata(configuration: "PipelineConfiguration", override: Path | None) -> Path:
    """Return the path of the metadata log; raise `NoMetadataError` if it does not exist."""
    from kustos.cli.failures import usage_error

    chosen = configuration.metadata if override is None else override.absolute()
    if chosen is None:
        raise usage_error("the configuration has no metadata log: set `metadata`, or use `--metadata`")
    if configuration.spark.remote is None:
        from kustos.metadata.inspection import files_of
        from kustos.runtime import FileSystemStorage

        files_of(chosen, FileSystemStorage())
    return chosen


def _settings(configuration: "PipelineConfiguration") -> dict[str, Any]:
    """Return the broker settings; without configured super users, trust the recorded ones."""
    acls = configuration.acls
    if acls is None:
        return {}
    return {
        "super_users": acls.super_users if "super_users" in acls.model_fields_set else None,
        "allow_everyone_if_no_acl_found": acls.allow_everyone_if_no_acl_found,
    }


def _opened(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    import json

    return [{**row, "evidence": json.loads(row["evidence"])} for row in rows]


def _range_text(log_range: dict[str, Any]) -> str:
    # the offset before the first record of a log is -1
    first = max(0, log_range["from_offset"])
    span = _span(log_range["from_time"], log_range["to_time"])
    return f"its offsets {first} to {log_range['to_offset']}, {span} UTC"


def _span(first: "datetime", last: "datetime") -> str:
    from kustos.cli.pipeline.shown import seen

    return seen(first) if seen(first) == seen(last) else f"{seen(first)} to {seen(last)}"


def _print(judged: dict[str, Any], rows: list[dict[str, Any]], rules: bool) -> None:
    from kustos.cli.output import print_lines, print_paragraph, print_table
    from kustos.cli.pipeline.shown import resource

    meanings = {
        "AGREES": "agrees",
        "DIFFERS": "differs",
        "UNCERTAIN": "uncertain",
        "OUT_OF_RANGE": "not in the log's time",
        "NOT_JUDGED": "not by ACLs",
    }
    verdicts = [(meanings[one["verdict"]], one["events"], one["accesses"]) for one in judged["verdicts"]]
    others = sum(one["events"] for one in judged["discrepancies"] if one["kind"] == "RULE_DIFFERS")
    if others:
        verdicts.insert(1, ("  by another rule", others, None))
    print_table(("recorded decision", "events", "accesses"), verdicts)
    for row in _opened(rows):
        evidence = row["evidence"]
        access = f"{row['principal']}  {evidence['operation']}  {resource(row)}"
        print_lines("", f"{row['severity']}  {access}  {row['event_count']:,} x")
        print_paragraph(row["reason"], indent="  ")
        print_lines(
            f"  {_span(row['first_time'], row['last_time'])} UTC, from {evidence['host']}",
            f"  for example {evidence['sample_event_id']}",
        )
    hidden = sum(one["count"] for one in judged["discrepancies"] if rules or one["kind"] != "RULE_DIFFERS")
    if hidden > len(rows):
        print_lines("", f"and {hidden - len(rows):,} more")
    print_lines("", "all are in the tables `judged` and `discrepancies`")
