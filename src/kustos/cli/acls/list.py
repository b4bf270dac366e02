"""`kustos acls list`."""

from typing import Annotated

import typer

from kustos.cli.acls.options import PatternTypeName, PatternTypeOption
from kustos.cli.options import (
    BootstrapServer,
    Cluster,
    CommandConfig,
    DelegationToken,
    Group,
    Output,
    Topic,
    TransactionalId,
    UserPrincipal,
)
from kustos.cli.output import OutputFormat

Principal = Annotated[
    list[str] | None,
    typer.Option("--principal", metavar="TYPE:NAME", help="Only the ACLs of this principal."),
]

EXAMPLES = """
kustos acls list --bootstrap-server broker:9092
kustos acls list --bootstrap-server broker:9092 --topic orders \\
    --resource-pattern-type match
kustos acls list --bootstrap-server broker:9092 \\
    --principal User:alice -o json
"""


def list_acls(
    bootstrap_server: BootstrapServer,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: PatternTypeOption = PatternTypeName.LITERAL,
    principal: Principal = None,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List ACLs, all or those of some resources or principals.

    As in kafka-acls, a name asks for the literal ACLs of that name; ask with
    `--resource-pattern-type match` for all that govern it, wildcards and prefixes too.
    """
    from kustos.acl import AclBinding, KafkaPrincipal, PatternType
    from kustos.acl.forms import texts_of
    from kustos.cli.acls.mapping import ResourceArguments, filters_to_list, sorted_bindings
    from kustos.cli.acls.rendering import print_bindings
    from kustos.cli.output import print_json
    from kustos.cli.session import ask_cluster
    from kustos.client.admin import AdminClient

    resources = ResourceArguments(
        topics=topic or (),
        groups=group or (),
        cluster=cluster,
        transactional_ids=transactional_id or (),
        delegation_tokens=delegation_token or (),
        user_principals=user_principal or (),
        pattern_type=PatternType.from_text(resource_pattern_type.value),
    )
    principals = {str(KafkaPrincipal.parse(text.strip())) for text in principal or ()}
    filters = filters_to_list(resources)

    async def describe(admin: AdminClient) -> list[AclBinding]:
        return [binding for asked in filters for binding in await admin.describe_acls(asked)]

    found = ask_cluster(bootstrap_server, command_config, describe, "listing ACLs")
    bindings = sorted_bindings(b for b in found if not principals or b.entry.principal in principals)
    if output is OutputFormat.JSON:
        print_json({"acls": [texts_of(binding) for binding in bindings]})
    else:
        print_bindings(bindings)
