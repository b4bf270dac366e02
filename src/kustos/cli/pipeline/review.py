"""`kustos pipeline review`."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    ClusterOption,
    Config,
    DryRun,
    RowsOfOperation,
    RowsOfPrincipal,
    RowsOfResource,
    RowsOfTeam,
    UnusedRows,
    configured,
    working,
)

if TYPE_CHECKING:
    from kustos.cli.pipeline.entitlements import EntitlementFiles
    from kustos.pipeline.configuration import PipelineConfiguration
    from kustos.pipeline.deciding import AclsInForce
    from kustos.pipeline.review.existing_names import Existing
    from kustos.pipeline.review.job import ReviewQuestion
    from kustos.signoff import Document, RowChoice

EXAMPLES = """
kustos pipeline review
kustos pipeline review --as-of 2026-09-30 --csv q3.csv --sign-off q3.json
kustos pipeline review --operation DELETE --resource TOPIC:payments
kustos pipeline review --sign-off q4.json --csv q4.csv --former q3.json
"""

AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="TIME", help="Review a past day or UTC time, by the ACLs of the metadata log."
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write the entitlements to this file, for a spreadsheet."),
]
Details = Annotated[
    Path | None,
    typer.Option("--details", metavar="FILE", help="Write each access behind them to this file."),
]
Former = Annotated[
    Path | None,
    typer.Option(
        "--former", metavar="FILE", help="Compare with this document of a former review: new, gone, changed."
    ),
]
FormerKey = Annotated[
    Path | None,
    typer.Option(
        "--former-key", metavar="FILE", help="Verify the signature of the former review by this public key."
    ),
]
SignOff = Annotated[
    Path | None,
    typer.Option("--sign-off", metavar="FILE", help="Write the document that reviewers decide and sign off."),
]


def review(
    config: Config = DEFAULT_CONFIG,
    as_of: AsOf = None,
    csv: Csv = None,
    sign_off: SignOff = None,
    cluster: ClusterOption = None,
    details: Details = None,
    former: Former = None,
    former_key: FormerKey = None,
    principal: RowsOfPrincipal = None,
    operation: RowsOfOperation = None,
    resource: RowsOfResource = None,
    team: RowsOfTeam = None,
    unused: UnusedRows = False,
    dry_run: DryRun = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """List who may do what, by which ACLs, and who used it.

    Writes the tables `entitlements` (each operation that an ACL allows, with its uses and the DENYs that
    limit it), `access_review` (each access behind them) and `findings`: unused, redundant, shadowed and
    orphaned ACLs, each with its evidence and whether it is safe to remove, and principals that break the
    `duties` and the `policy` of the configuration. With `metadata` in the configuration, each ACL has its
    time of creation, and any past moment can be reviewed.

    `--principal`, `--operation`, `--resource`, `--team` and `--unused` select rows to show and write: a
    principal with the rows of `User:*`, a name with every pattern that matches it. A sign-off has all rows.
    JSON and YAML have all selected rows as `rows`.
    """
    from kustos.cli.output import stream_document
    from kustos.cli.pipeline.entitlements import EntitlementFiles, print_entitlements
    from kustos.cli.pipeline.inputs import acls_then, check_writable, moment_of, of_cluster, resource_choice
    from kustos.cli.pipeline.shown import plain, print_plan

    choice = _choice(
        sign_off,
        principal=principal,
        operation=operation,
        **resource_choice(resource),
        team=team,
        is_unused=unused,
    )
    configuration = configured(config)
    moment = moment_of("--as-of", as_of)
    configuration, tables = of_cluster(configuration, cluster)
    before = _former(former, former_key, tables.chosen_cluster.name)
    check_writable(csv, sign_off, details)
    acls = acls_then(configuration, config.absolute().parent, as_of, moment)
    title = f"{acls.name} as of {moment:%Y-%m-%d %H:%M} UTC"
    if dry_run:
        print_plan([f"would review the {len(acls.bindings)} ACLs of {title}"], output)
        return
    question = _question(configuration, acls, moment)
    written = EntitlementFiles(tables, acls, choice, before, as_of=moment, metadata=configuration.metadata)
    counts = _review(configuration, question, written, csv=csv, sign_off=sign_off, details=details)
    if output.is_document:
        head = {"cluster": tables.chosen_cluster.name, "as_of": moment.isoformat(), "acls": acls.name}
        stream_document({**head, **plain(counts)}, "rows", written.documents(), output)
    else:
        print_entitlements(counts, written.shown, title, is_chosen=not choice.is_everything)


def _question(
    configuration: "PipelineConfiguration", acls: "AclsInForce", moment: datetime
) -> "ReviewQuestion":
    from kustos.pipeline.review.job import ReviewQuestion

    return ReviewQuestion(
        acls=acls,
        as_of=moment,
        dormant_days=configuration.review.dormant_days,
        teams=configuration.review.teams,
        metadata=configuration.metadata,
        existing=_existing(configuration),
        **_rules(configuration),
    )


def _review(
    configuration: "PipelineConfiguration",
    question: "ReviewQuestion",
    written: "EntitlementFiles",
    *,
    csv: Path | None,
    sign_off: Path | None,
    details: Path | None,
) -> dict[str, Any]:
    """Fill the tables and write the files; return the sums of the review and what a comparison found."""
    from kustos.pipeline.review.job import REVIEW_STEPS, run_review

    steps = len(REVIEW_STEPS) + 1
    with working("review", configuration.spark, written.tables.recorded_rows(), steps=steps) as (spark, step):
        written.tables, counts = run_review(spark, written.tables, question, step)
        step("writing files")
        if details is not None:
            written.write_details(spark, details)
        return counts | written.write(spark, csv, sign_off, counts["record"])


def _choice(sign_off: Path | None, **texts: Any) -> "RowChoice":
    """Return the selection; raise `SignoffError`, and a usage error for a sign-off of a part."""
    from kustos.cli.failures import usage_error
    from kustos.signoff import RowChoice

    choice = RowChoice.of(**texts)
    if sign_off is not None and not choice.is_everything:
        raise usage_error("a sign-off has all rows, remove the options that select rows")
    return choice


def _former(path: Path | None, key: Path | None, cluster: str) -> "Document | None":
    """Return the former review, checked; raise `SignoffError` and usage errors before Spark starts."""
    from kustos.cli.failures import usage_error
    from kustos.cli.text_files import read_text
    from kustos.signoff import former_of, read_review, verify_signed_review

    if path is None:
        if key is not None:
            raise usage_error("`--former-key` verifies a former review, add `--former`")
        return None
    text = read_text(str(path))
    document = read_review(text) if key is None else verify_signed_review(text, key.read_bytes())
    former_of(document)
    other = document["review"].get("cluster", "")
    if other != cluster:
        raise usage_error(f"the former review is of cluster `{other}`, this one is of cluster `{cluster}`")
    return document


def _existing(configuration: "PipelineConfiguration") -> "Existing":
    """Return the names in the files of the configuration; raise a usage error for an unreadable file."""
    from kustos.cli.pipeline.inputs import names_of
    from kustos.pipeline.configuration import ExistingSettings
    from kustos.pipeline.review.existing_names import Existing

    files = configuration.existing or ExistingSettings()
    return Existing.of(
        topics=names_of(files.topics),
        groups=names_of(files.groups),
        scram_users=names_of(files.scram_users),
    )


def _rules(configuration: "PipelineConfiguration") -> dict[str, Any]:
    """Return the declared rules of the configuration; raise `PolicyError`."""
    from kustos.analysis import parse_duties, parse_policy
    from kustos.cli.text_files import read_text

    duties, policy = configuration.duties, configuration.policy
    return {
        "duties": () if duties is None else parse_duties(read_text(str(duties)), str(duties)),
        "policy": None if policy is None else parse_policy(read_text(str(policy)), str(policy)),
    }
