"""`kustos pipeline review`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.working import DEFAULT_CONFIG, Config, DryRun, configured, working

if TYPE_CHECKING:
    from kustos.pipeline.configuration import PipelineConfiguration
    from kustos.pipeline.findings import Existing

EXAMPLES = """
kustos pipeline review
kustos pipeline review --as-of 2026-09-30 --csv q3.csv --sign-off q3.json
kustos pipeline review --topics topics.txt --groups groups.txt
"""

AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="TIME", help="A past day or UTC time; the ACLs are those of the metadata then."
    ),
]
Csv = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Write the rows for a spreadsheet (UTF-8, BOM).")
]
SignOff = Annotated[
    Path | None,
    typer.Option("--sign-off", metavar="FILE", help="Write the document that reviewers decide and sign off."),
]
Topics = Annotated[
    Path | None,
    typer.Option("--topics", metavar="FILE", help="The topics that exist, one a line: finds orphaned ACLs."),
]
Groups = Annotated[
    Path | None, typer.Option("--groups", metavar="FILE", help="The groups that exist, likewise.")
]
ScramUsers = Annotated[
    Path | None, typer.Option("--scram-users", metavar="FILE", help="The users that can log in, likewise.")
]


def review(
    config: Config = DEFAULT_CONFIG,
    as_of: AsOf = None,
    csv: Csv = None,
    sign_off: SignOff = None,
    topics: Topics = None,
    groups: Groups = None,
    scram_users: ScramUsers = None,
    dry_run: DryRun = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Say who may do what, by which ACLs, and who used it.

    Fills the tables `access_review` (each access and each unused grant, with its last use) and `findings`
    (unused, redundant, shadowed and orphaned ACLs, each with its evidence and whether a replay shows that
    it can go; who breaks the `duties` and the `policy` of the configuration). With `metadata` in the
    configuration each ACL has its time of creation, and any past moment can be reviewed.
    """
    from kustos.cli.output import print_document
    from kustos.cli.pipeline.inputs import acls_then, check_writable, filled_tables, moment_of
    from kustos.cli.pipeline.shown import print_plan

    configuration = configured(config)
    moment = moment_of("--as-of", as_of)
    tables = filled_tables(configuration)
    check_writable(csv, sign_off)
    acls = acls_then(configuration, config.absolute().parent, as_of, moment)
    if dry_run:
        plan = f"would review {len(acls.bindings)} ACLs of `{acls.name}` as of {moment:%Y-%m-%d %H:%M} UTC"
        print_plan([plan], output)
        return
    from kustos.pipeline.jobs import REVIEW_STEPS, ReviewQuestion, run_review

    question = ReviewQuestion(
        acls=acls,
        as_of=moment,
        dormant_days=configuration.review.dormant_days,
        teams=configuration.review.teams,
        metadata=configuration.metadata,
        existing=_existing(topics, groups, scram_users),
        **_rules(configuration),
    )
    steps = len(REVIEW_STEPS) + 1
    with working("review", configuration.spark, steps=steps) as (spark, step):
        counts = run_review(spark, tables, question, step)
        step("writing files")
        rows = tables.read(spark, "access_review")
        if csv is not None:
            _write_csv(csv, rows)
        if sign_off is not None:
            _write_document(sign_off, rows, acls, moment, question.dormant_days)
    if output.is_document:
        print_document({"as_of": moment.isoformat(), "acls": acls.name, **counts}, output)
    else:
        _print(counts, f"{acls.name} as of {moment:%Y-%m-%d %H:%M} UTC")


def _existing(topics: Path | None, groups: Path | None, users: Path | None) -> "Existing":
    from kustos.cli.pipeline.inputs import names_of
    from kustos.pipeline.findings import Existing

    return Existing.of(topics=names_of(topics), groups=names_of(groups), scram_users=names_of(users))


def _rules(configuration: "PipelineConfiguration") -> dict[str, Any]:
    """Return the declared rules of the configuration; raise `PolicyError`."""
    from kustos.analysis import parse_policy
    from kustos.cli.acl_locations import read_text
    from kustos.pipeline.reach import parse_duties

    duties, policy = configuration.duties, configuration.policy
    return {
        "duties": () if duties is None else parse_duties(read_text(str(duties)), str(duties)),
        "policy": None if policy is None else parse_policy(read_text(str(policy)), str(policy)),
    }


def _write_csv(path: Path, rows: Any) -> None:
    from kustos.pipeline.review import review_csv

    ordered = rows.orderBy("team", "principal", "resource_type", "resource_name", "operation")
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in review_csv(row.asDict(recursive=True) for row in ordered.toLocalIterator()):
            file.write(line)


def _write_document(path: Path, rows: Any, acls: Any, moment: Any, days: int) -> None:
    from datetime import UTC, datetime

    from kustos.pipeline.review import review_document, write_review

    document = review_document(
        (row.asDict(recursive=True) for row in rows.toLocalIterator()),
        acls,
        as_of=moment,
        dormant_days=days,
        created_at=datetime.now(UTC),
    )
    path.write_text(write_review(document), encoding="utf-8")


def _print(counts: dict[str, Any], title: str) -> None:
    from kustos.cli.output import print_lines, print_table

    print_lines(title)
    print_table(
        ("access", "rows"),
        [
            ("used", counts["used"]),
            ("never used", counts["rows"] - counts["used"]),
            ("dormant", counts["dormant"]),
            ("principals", counts["principals"]),
        ],
    )
    if counts["findings"]:
        print_table(
            ("found", "count", "safe to remove"),
            [
                (one["kind"].replace("_", " ").lower(), one["count"], one["safe_to_remove"])
                for one in counts["findings"]
            ],
        )
    print_lines("all rows are in the tables `access_review` and `findings`")
