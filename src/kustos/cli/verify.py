"""`kustos verify`."""

from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import with_acl_source
from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.analysis import Policy
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos verify policy.yaml --acls acls.yaml
kustos verify policy.yaml --acls acls.yaml -c server.properties -o json
kustos verify policy.yaml --acls kafka://broker:9092 \\
    --command-config admin.properties
kustos verify policy.yaml --acls /var/lib/kustos/metadata@2026-11-03
"""

PolicyFile = Annotated[
    str, typer.Argument(metavar="POLICY", help="A policy file: statements in YAML.", show_default=False)
]
StatementIds = Annotated[
    list[str] | None,
    typer.Option("--statement", metavar="ID", help="Check only this statement."),
]
CounterExamplesMax = Annotated[
    int,
    typer.Option(
        "--counter-examples-max", metavar="N", min=1, max=1000, help="Counter-examples for a statement."
    ),
]


@with_acl_source(before="counter_examples_max")
def verify(
    policy: PolicyFile,
    source: "AclSource",
    statement: StatementIds = None,
    counter_examples_max: CounterExamplesMax = 3,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Check ACLs against a policy: never this, always that.

    A statement such as `never: anyone but User:pay-* WRITE topics under payments.` is decided for every
    possible principal, host and name. For a broken statement the command shows counter-examples and the
    responsible ACL. Exits with 5 if any statement is broken; `-o name` prints their ids for `--statement`.
    """
    from kustos.analysis import parse_policy
    from kustos.analysis import verify as verdicts_on
    from kustos.cli.broker_settings import report_unknown
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.terminal import progress
    from kustos.cli.text_files import STANDARD_INPUT, called_name, read_text
    from kustos.cli.verdicts import print_verdicts

    if policy == STANDARD_INPUT and source.is_standard_input:
        raise usage_error("only one of policy and ACLs can come from standard input")
    statements = _chosen(parse_policy(read_text(policy), called_name(policy)), statement)
    loaded = source.load()
    bindings, rules = loaded.bindings, loaded.settings.rules()
    with progress(f"checking {len(bindings)} ACLs"):
        verdicts = verdicts_on(bindings, statements, rules, counter_examples_max=counter_examples_max)
    report_unknown(output, loaded.settings)
    print_verdicts(verdicts, loaded.settings, output)
    return ExitCode.OK if all(verdict.holds for verdict in verdicts) else ExitCode.NO


def _chosen(policy: "Policy", ids: list[str] | None) -> "Policy":
    """Return the statements with these ids, or all if None; raise a usage error for an unknown id."""
    from dataclasses import replace

    from kustos.cli.failures import usage_error

    if not ids:
        return policy
    known = [each.statement_id for each in policy.statements]
    for statement_id in ids:
        if statement_id not in known:
            raise usage_error(
                f"`--statement {statement_id}` is not an id of the policy, the first is `{known[0]}`"
            )
    return replace(policy, statements=tuple(each for each in policy.statements if each.statement_id in ids))
