"""`kustos lint`."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import SourceArgument, with_acl_source
from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos lint acls.yaml
kustos lint acls.yaml --sarif lint.sarif --fail-on warning
kustos lint /var/lib/kustos/metadata -c server.properties
kustos lint kafka://broker:9092 --command-config admin.properties \\
    --super-users User:admin --existing-topics topics.txt
"""


class FailOn(StrEnum):
    """`--fail-on`: the lowest severity that makes the command fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"


FailOnOption = Annotated[
    FailOn, typer.Option("--fail-on", help="Exit with 5 if a finding has this severity or a higher one.")
]
Sarif = Annotated[
    str | None,
    typer.Option(
        "--sarif", metavar="FILE", help="Also write the findings as SARIF 2.1.0; `-` prints only that."
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="CODE", help="Ignore a code, such as KUS005."),
]
ExistingTopics = Annotated[
    str | None,
    typer.Option(
        "--existing-topics",
        metavar="FILE",
        help="A file of topic names, one per line: report ACLs for others.",
    ),
]
ExistingGroups = Annotated[
    str | None, typer.Option("--existing-groups", metavar="FILE", help="The same for groups.")
]


@with_acl_source(before="existing_topics", argument=SourceArgument)
def lint(
    source: "AclSource",
    existing_topics: ExistingTopics = None,
    existing_groups: ExistingGroups = None,
    ignore: Ignore = None,
    fail_on: FailOnOption = FailOn.ERROR,
    sarif: Sarif = None,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Find ACLs that are useless, too broad, or wrong.

    Each finding has a stable code, a severity, an explanation and a fix; the reference page of lint lists
    them all. Redundancy is exact: without a redundant ACL no decision changes. Exits with 5 if a finding
    has the severity of `--fail-on` or a higher one.
    """
    from kustos.analysis import with_groups
    from kustos.analysis.lint import LINT_CODES, Severity
    from kustos.analysis.lint import lint as lint_acls
    from kustos.cli.broker_settings import report_unknown
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.findings import existing_names, print_findings, write_sarif
    from kustos.cli.terminal import progress

    unknown = sorted(set(ignore or ()) - LINT_CODES.keys())
    if unknown:
        raise usage_error(
            f"`--ignore {unknown[0]}` is not a code of lint, the first is {next(iter(LINT_CODES))}"
        )
    existing = existing_names(existing_topics, existing_groups)
    loaded = source.load()
    rules = with_groups(loaded.settings.rules(), loaded.bindings)
    bindings = [each.binding for each in loaded.located]
    with progress(f"looking at {len(bindings)} ACLs"):
        found = [each for each in lint_acls(bindings, rules, existing) if each.code not in (ignore or ())]
    report_unknown(output, loaded.settings)
    if sarif is not None:
        write_sarif(sarif, found, loaded)
    if sarif != "-":
        print_findings(found, loaded, output)
    if fail_on is FailOn.NEVER:
        return ExitCode.OK
    worst = min((finding.severity.rank for finding in found), default=len(Severity))
    return ExitCode.NO if worst <= Severity(fail_on.value).rank else ExitCode.OK
