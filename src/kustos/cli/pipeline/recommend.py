"""`kustos pipeline recommend`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import Output
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.inputs import DryRun, Since, Until
from kustos.cli.pipeline.working import DEFAULT_CONFIG, Config

if TYPE_CHECKING:
    from kustos.pipeline.privilege import PrivilegeNumbers, PrivilegeOptions

EXAMPLES = """
kustos pipeline recommend --out least.yaml
kustos pipeline recommend --over-grant-weight 0 --out few.yaml --today
kustos pipeline recommend --literal --commands least.sh --uses-min 3
"""

Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the ACLs as YAML, each with its reason.")
]
Commands = Annotated[
    Path | None, typer.Option("--commands", metavar="FILE", help="Write them as kafka-acls commands.")
]
Weight = Annotated[
    float,
    typer.Option(
        "--over-grant-weight",
        metavar="W",
        min=0,
        help="What a known name costs that is granted in vain; an ACL costs 1. 0: the fewest ACLs.",
    ),
]
Literal = Annotated[bool, typer.Option("--literal", help="Only literal names: nothing is granted in vain.")]
Hosts = Annotated[
    str,
    typer.Option(
        "--hosts",
        metavar="any|exact|ranges",
        help="Allow from everywhere, recorded addresses, or ranges (4.4).",
    ),
]
Coverage = Annotated[
    float,
    typer.Option(
        "--coverage", metavar="SHARE", min=0, max=1, help="Leave out the rarest accesses beyond this share."
    ),
]
UsesMin = Annotated[
    int, typer.Option("--uses-min", metavar="N", min=1, help="An access used less often is no need.")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="TYPE:NAME", help="A principal that gets no ACLs."),
]
Topics = Annotated[
    Path | None,
    typer.Option(
        "--topics", metavar="FILE", help="The topics that exist, one a line: counted as known names."
    ),
]
Today = Annotated[
    bool, typer.Option("--today", help="Also say how much access today's ACLs lose by it, exactly.")
]


def recommend(
    config: Config = DEFAULT_CONFIG,
    out: Out = None,
    commands: Commands = None,
    over_grant_weight: Weight = 0.25,
    literal: Literal = False,
    hosts: Hosts = "any",
    coverage: Coverage = 1.0,
    uses_min: UsesMin = 1,
    exclude: Exclude = None,
    topics: Topics = None,
    today: Today = False,
    since: Since = None,
    until: Until = None,
    dry_run: DryRun = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Find the smallest set of ACLs for what was used.

    It allows every recorded need and nothing that was denied; prefixes are taken where they are worth it.
    A replay proves it before it is shown; the exit code is 1 if it does not hold.
    """
    import sys

    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_lines
    from kustos.cli.pipeline.inputs import filled_tables, period_of, todays_acls
    from kustos.cli.pipeline.working import configured, working

    configuration = configured(config)
    first, last = period_of(since, until)
    tables = filled_tables(configuration)
    from kustos.pipeline.privilege import Legitimate, recommendation

    options = _options(over_grant_weight, literal, hosts)
    legitimate = Legitimate(
        from_day=first,
        to_day=last,
        principals_excluded=tuple(exclude or ()),
        uses_min=uses_min,
        coverage=coverage,
    )
    acls = todays_acls(configuration, config.absolute().parent) if today else None
    if dry_run:
        print_lines(f"would recommend for {tables.folder}, weighing {options.over_grant_weight:g}")
        return ExitCode.OK
    with working("recommend", configuration.spark, delta=tables.form == "delta", steps=4) as (spark, step):
        rollup = tables.read(spark, "audit_rollup")
        names = _names(spark, rollup, topics)
        found = recommendation(spark, rollup, options, legitimate, names=names, today=acls, progress=step)
    from kustos.pipeline.privilege import recommended_commands, recommended_yaml

    if out is not None:
        out.write_text(recommended_yaml(found.acls), encoding="utf-8")
    if commands is not None:
        commands.write_text("\n".join([*recommended_commands(found.acls), ""]), encoding="utf-8")
    if output is OutputFormat.JSON:
        sys.stdout.write(found.to_json() + "\n")
    else:
        _print(found.numbers, [path for path in (out, commands) if path is not None])
    return ExitCode.OK if found.numbers.is_proven else ExitCode.FAILED


def _options(weight: float, literal: bool, hosts: str) -> "PrivilegeOptions":
    from kustos.cli.failures import usage_error
    from kustos.pipeline.privilege import HostChoice, PrivilegeOptions

    try:
        choice = HostChoice(hosts)
    except ValueError:
        raise usage_error(f"`--hosts {hosts}` is none of any, exact and ranges") from None
    return PrivilegeOptions(over_grant_weight=float("inf") if literal else weight, hosts=choice)


def _names(spark: Any, rollup: Any, topics: Path | None) -> Any:
    """Return the known names with these topics in the place of the topics that the roll-up knows."""
    from kustos.cli.pipeline.inputs import names_of
    from kustos.pipeline.privilege import known_names

    listed = names_of(topics)
    if listed is None:
        return None
    others = known_names(rollup).filter("resource_type <> 'TOPIC'")
    rows = [("TOPIC", name) for name in sorted(listed)]
    return others.unionByName(spark.createDataFrame(rows, "resource_type string, resource_name string"))


def _print(numbers: "PrivilegeNumbers", files: list[Path]) -> None:
    from kustos.cli.output import print_lines, print_table

    rows = [
        ("ACLs", f"{numbers.acls:,}"),
        ("  prefixes, wildcards", f"{numbers.prefixes:,}, {numbers.wildcards:,}"),
        ("  for principals", f"{numbers.principals:,}"),
        ("needs (distinct, requests)", f"{numbers.needed_accesses:,}, {numbers.needed_events:,}"),
        ("share of allowed requests", f"{numbers.coverage:.2%}"),
        ("names granted in vain", f"{numbers.over_grants:,}"),
        ("recorded denials kept", f"{numbers.denied_accesses - numbers.opened_accesses:,}"),
    ]
    if numbers.acls_today is not None:
        rows += [
            ("ACLs today", f"{numbers.acls_today:,}"),
            ("names granted today, then", f"{numbers.granted_names_today:,}, {numbers.granted_names:,}"),
        ]
    rows.append(("proven by replay", "yes" if numbers.is_proven else "NO"))
    print_table(("least privilege", "#"), rows)
    print_lines(*map(str, files))
