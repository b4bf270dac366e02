"""`kustos verify`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import AclsFile, AllowEveryone, Form, MetadataDirectory, SuperUsers
from kustos.cli.options import CommandConfig, OptionalBootstrapServer, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos verify policy.yaml --acls acls.yaml
kustos verify policy.yaml --acls acls.yaml --super-users User:admin -o json
kustos verify policy.yaml --bootstrap-server broker:9092 \\
    --command-config admin.properties
"""

PolicyFile = Annotated[
    str, typer.Argument(metavar="POLICY", help="A policy file: statements in YAML.", show_default=False)
]
CounterExamplesMax = Annotated[
    int,
    typer.Option(
        "--counter-examples-max", metavar="N", min=1, max=1000, help="Counter-examples for a statement."
    ),
]


def verify(
    policy: PolicyFile,
    acls: AclsFile = None,
    form: Form = None,
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    super_users: SuperUsers = "",
    allow_everyone_if_no_acl_found: AllowEveryone = False,
    counter_examples_max: CounterExamplesMax = 3,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Check ACLs against a policy: never this, always that.

    A statement such as `never: anyone but User:pay-* WRITE topics under payments.` is decided for every
    principal, host and name there could be. A broken one comes with counter-examples and the ACL that is
    responsible. Exits with 5 if any statement is broken.
    """
    from kustos.analysis import parse_policy
    from kustos.analysis import verify as verdicts_on
    from kustos.cli.acl_sources import STANDARD_INPUT, AclSource, called_name, read_text, rules_of
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.progress import progress
    from kustos.cli.verdicts import print_verdicts

    if policy == acls == STANDARD_INPUT:
        raise usage_error("only one of policy and ACLs can come from standard input")
    statements = parse_policy(read_text(policy), called_name(policy))
    rules = rules_of(super_users, allow_everyone_if_no_acl_found)
    source = AclSource(
        acls=acls,
        form=form,
        metadata_dir=metadata_dir,
        bootstrap_server=bootstrap_server,
        command_config=command_config,
    )
    bindings = source.load().bindings
    with progress(f"checking {len(bindings)} ACLs"):
        verdicts = verdicts_on(bindings, statements, rules, counter_examples_max=counter_examples_max)
    print_verdicts(verdicts, output)
    return ExitCode.OK if all(verdict.holds for verdict in verdicts) else ExitCode.NO
