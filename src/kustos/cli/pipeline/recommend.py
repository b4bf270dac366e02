"""`kustos pipeline recommend`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    ClusterOption,
    Config,
    DryRun,
    Since,
    Until,
    configured,
    working,
)

if TYPE_CHECKING:
    from kustos.pipeline.configuration import PipelineConfiguration
    from kustos.pipeline.deciding import AclsInForce
    from kustos.pipeline.privilege import Legitimate, PrivilegeOptions, Recommendation

WIDENING_SHOWN_MAX: Final = 20
"""Grants beyond today's ACLs on a terminal; `kustos diff` shows all of them."""

EXAMPLES = """
kustos pipeline recommend --out least.yaml
kustos pipeline recommend --commands least.sh --since 2026-09-01
kustos pipeline recommend --beyond-today --dry-run
"""

Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the ACLs to this YAML file.")]
Commands = Annotated[
    Path | None, typer.Option("--commands", metavar="FILE", help="Write them as kafka-acls commands.")
]
BeyondToday = Annotated[
    bool, typer.Option("--beyond-today", help="Also grant what today's ACLs do not, and show it.")
]


def recommend(
    config: Config = DEFAULT_CONFIG,
    out: Out = None,
    commands: Commands = None,
    beyond_today: BeyondToday = False,
    since: Since = None,
    until: Until = None,
    cluster: ClusterOption = None,
    dry_run: DryRun = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Find the smallest set of ACLs for what was used.

    The ACLs allow all recorded use and nothing that was denied. Where it costs less, one prefix replaces
    several names. Without `--beyond-today` they grant nothing that today's ACLs do not.

    A replay proves the ACLs before they are written. If the proof fails, the command writes no file, shows
    the requests for which it fails, and exits with 1. The section `recommend` of the configuration sets how
    broad ACLs may become, which principals and resources to exclude, and how rare a use may be.
    """
    from kustos.cli.failures import CommandError, ExitCode
    from kustos.cli.pipeline.inputs import check_writable, names_of, of_cluster, period_of, super_users_of
    from kustos.cli.pipeline.shown import print_plan

    configuration = configured(config)
    first, last = period_of(since, until)
    configuration, tables = of_cluster(configuration, cluster)
    check_writable(out, commands)
    from kustos.pipeline.privilege import RECOMMEND_STEPS
    from kustos.pipeline.privilege.job import PrivilegeQuestion, run_recommendation
    from kustos.pipeline.queries.record import end_of

    options, legitimate = configuration.recommend.options(
        from_day=first, to_day=last, super_users=super_users_of(configuration)
    )
    is_within = configuration.recommend.within_today and not beyond_today
    existing = configuration.existing
    question = PrivilegeQuestion(
        options=options,
        legitimate=legitimate,
        today=_todays_acls(configuration, config, is_within=is_within),
        within_today=is_within,
        topics=None if existing is None else names_of(existing.topics),
        as_of=end_of(last),
        window_days=configuration.review.dormant_days,
    )
    if dry_run:
        print_plan(_plan(str(tables.folder), options, legitimate, is_within), output)
        return ExitCode.OK
    steps = len(RECOMMEND_STEPS)
    with working("recommend", configuration.spark, tables.recorded_rows(), steps=steps) as (spark, step):
        found = run_recommendation(spark, tables, question, step)
    files = _write(found, out, commands) if found.numbers.is_proven else []
    _show(found, files, tables.chosen_cluster.name, output)
    if not found.numbers.is_proven:
        raise CommandError(ExitCode.FAILED, "NOT_PROVEN", "the proof fails, so no file was written")
    return ExitCode.OK


def _todays_acls(
    configuration: "PipelineConfiguration", config: Path, *, is_within: bool
) -> "AclsInForce | None":
    """Return the ACLs of the configuration, None if it needs none; raise a usage error."""
    from kustos.cli.failures import usage_error
    from kustos.cli.pipeline.inputs import todays_acls

    if configuration.acls is not None:
        return todays_acls(configuration, config.absolute().parent)
    if is_within:
        raise usage_error(
            "the configuration does not say where today's ACLs are: set `acls.source`, or use "
            "`--beyond-today`"
        )
    return None


def _show(found: "Recommendation", files: list[Path], cluster: str, output: OutputFormat) -> None:
    import json

    from kustos.cli.output import print_document

    if output.is_document:
        written = {"files": [str(path) for path in files]}
        print_document({"cluster": cluster, **json.loads(found.to_json()), **written}, output)
    else:
        _print(found, files)


def _write(found: "Recommendation", out: Path | None, commands: Path | None) -> list[Path]:
    """Write the requested files; return their paths."""
    from kustos.pipeline.privilege import recommended_commands, recommended_yaml

    if out is not None:
        out.write_text(recommended_yaml(found.acls, found.record), encoding="utf-8")
    if commands is not None:
        lines = recommended_commands(found.acls, found.record)
        commands.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return [path for path in (out, commands) if path is not None]


def _plan(
    folder: str, options: "PrivilegeOptions", legitimate: "Legitimate", is_within_today: bool
) -> list[str]:
    """Return lines with the scope of the recommendation and every option that is not the default."""
    from dataclasses import fields

    from kustos.pipeline.privilege import DEFAULT_OPTIONS, EVERY_USE

    lines = [f"would recommend ACLs for {folder} with over_grant_weight {options.over_grant_weight:g}"]
    for chosen, default in ((options, DEFAULT_OPTIONS), (legitimate, EVERY_USE)):
        for field in fields(chosen):
            value = getattr(chosen, field.name)
            if value != getattr(default, field.name) and field.name != "over_grant_weight":
                lines.append(f"  {field.name}: {_value_text(value)}")
    if not is_within_today:
        lines.append("  within_today: false")
    return lines


def _value_text(value: Any) -> str:
    from kustos.acl import ResourcePattern

    if isinstance(value, tuple):
        return ", ".join(_value_text(one) for one in value)
    if isinstance(value, ResourcePattern):
        return f"{value.resource_type.name}:{value.pattern_type.name}:{value.name}"
    return "never" if value is None else str(getattr(value, "value", value))


def _print(found: "Recommendation", files: list[Path]) -> None:
    from kustos.cli.output import print_lines, print_paragraph, print_table

    numbers = found.numbers
    rows = [
        ("ACLs", f"{numbers.acls:,}"),
        ("  prefixes, wildcards", f"{numbers.prefixes:,}, {numbers.wildcards:,}"),
        ("  for principals", f"{numbers.principals:,}"),
        ("needs (distinct, requests)", f"{numbers.needed_accesses:,}, {numbers.needed_events:,}"),
        ("share of allowed requests", f"{numbers.coverage:.2%}"),
        ("names granted unnecessarily", f"{numbers.over_grants:,}"),
        ("hosts granted unnecessarily", f"{numbers.over_granted_hosts:,}"),
        ("recorded denials kept", f"{numbers.denied_accesses - numbers.opened_accesses:,}"),
    ]
    if numbers.acls_today is not None:
        rows += [
            ("ACLs today", f"{numbers.acls_today:,}"),
            ("names granted today, then", f"{numbers.granted_names_today:,}, {numbers.granted_names:,}"),
        ]
    if numbers.unserved:
        rows.append(("needs that no ACL can serve", f"{numbers.unserved:,}"))
    beyond = "unknown, no ACLs are configured"
    if numbers.regions_gained is not None:
        beyond = f"{numbers.regions_gained:,}{' or more' if numbers.is_difference_cut else ''}"
    rows.append(("parts beyond today's ACLs", beyond))
    period = f", {numbers.recorded_from} to {numbers.recorded_to}" if numbers.recorded_days else ""
    rows += [
        ("days with a record", f"{numbers.recorded_days:,}{period}"),
        ("longest gap in it (days)", f"{numbers.recorded_gap_days:,}"),
        ("proven by a replay", "yes" if numbers.is_proven else "NO"),
    ]
    print_table(("least privilege", ""), rows)
    print_paragraph(found.record.text())
    _print_unproven(found)
    _print_widening(found)
    print_lines(*map(str, files))


def _print_unproven(found: "Recommendation") -> None:
    from kustos.cli.output import print_table
    from kustos.cli.pipeline.shown import resource

    if found.unproven:
        print_table(
            ("not proven", "principal", "host", "operation", "resource"),
            [
                (row["outcome"].lower(), row["principal"], row["host"], row["operation"], resource(row))
                for row in found.unproven
            ],
        )


def _print_widening(found: "Recommendation") -> None:
    """Print what the ACLs grant beyond today's."""
    from kustos.analysis import Direction
    from kustos.cli.output import print_lines, printable

    changes = [] if found.difference is None else found.difference.changes
    gained = [each for each in changes if each.direction is Direction.GAINED]
    if not gained:
        return
    print_lines("beyond today's ACLs (`kustos diff` shows all):")
    for change in gained[:WIDENING_SHOWN_MAX]:
        print_lines(f"  {printable(change.region.text())}")
    if len(gained) > WIDENING_SHOWN_MAX:
        print_lines(f"  and {len(gained) - WIDENING_SHOWN_MAX:,} more")
