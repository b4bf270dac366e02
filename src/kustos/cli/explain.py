"""`kustos explain`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import AclsFile, AllowEveryone, At, Form, MetadataDirectory, SuperUsers
from kustos.cli.one_resource import (
    OneCluster,
    OneDelegationToken,
    OneGroup,
    OneTopic,
    OneTransactionalId,
    OneUserPrincipal,
    the_resource,
)
from kustos.cli.options import CommandConfig, OptionalBootstrapServer, Output, exit_code_if
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos explain --bootstrap-server broker:9092 \\
    --principal User:alice --operation Read --topic orders
kustos explain --acls acls.yaml --principal User:alice \\
    --operation Write --topic orders --exit-code
kustos explain --metadata-dir /var/lib/kustos/metadata \\
    --principal User:alice --host 10.0.0.7 --operation Write --topic orders
kustos explain --metadata-dir /var/lib/kustos/metadata --at 2026-11-03 \\
    --principal User:alice --operation Write --topic orders
"""

Principal = Annotated[
    str, typer.Option("--principal", metavar="TYPE:NAME", help="Who asks.", show_default=False)
]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="From which address.")]
Operation = Annotated[
    str, typer.Option("--operation", metavar="NAME", help="What: Read, Write, ...", show_default=False)
]
ExitCodeFlag = Annotated[bool, exit_code_if("the action is denied")]


def explain(
    principal: Principal,
    operation: Operation,
    host: Host = "127.0.0.1",
    topic: OneTopic = None,
    group: OneGroup = None,
    cluster: OneCluster = False,
    transactional_id: OneTransactionalId = None,
    delegation_token: OneDelegationToken = None,
    user_principal: OneUserPrincipal = None,
    acls: AclsFile = None,
    form: Form = None,
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    at: At = None,
    super_users: SuperUsers = "",
    allow_everyone_if_no_acl_found: AllowEveryone = False,
    exit_code: ExitCodeFlag = False,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Tell whether an action is allowed, and why.

    Shows the deciding rule, every matching ACL, those overruled, and for a denial the smallest change
    that would allow it. The ACLs are those of a file, of a running cluster, or of a metadata directory;
    they are judged here, by the rules of Kafka's StandardAuthorizer. Super users and the default are
    settings of the brokers, which no API tells: give them here.
    """
    from kustos.acl import AclBindingFilter, KafkaPrincipal, PatternType, ResourcePatternFilter
    from kustos.analysis.explain import explain as explain_probe
    from kustos.analysis.regions import Probe
    from kustos.authorizer import InvalidActionError
    from kustos.cli.acl_sources import AclSource, rules_of
    from kustos.cli.acls.mapping import parse_operation
    from kustos.cli.explanation import print_explanation
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.hosts import java_host

    resource_type, name = the_resource(
        topic=topic,
        group=group,
        cluster=cluster,
        transactional_id=transactional_id,
        delegation_token=delegation_token,
        user_principal=user_principal,
    )
    probe = Probe(
        str(KafkaPrincipal.parse(principal.strip())),
        java_host(host),
        parse_operation(operation),
        resource_type,
        name,
    )
    rules = rules_of(super_users, allow_everyone_if_no_acl_found)
    source = AclSource(
        acls=acls,
        form=form,
        metadata_dir=metadata_dir,
        at=at,
        bootstrap_server=bootstrap_server,
        command_config=command_config,
    )
    asked = AclBindingFilter(ResourcePatternFilter(resource_type, name, PatternType.MATCH))
    try:
        explanation = explain_probe(source.load(asked).bindings, probe, rules)
    except InvalidActionError as error:
        raise usage_error(str(error)) from error
    print_explanation(explanation, output)
    return ExitCode.NO if exit_code and not explanation.decision.allowed else ExitCode.OK
