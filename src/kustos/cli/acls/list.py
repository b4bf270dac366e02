"""`kustos acls list`."""

from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import PatternTypeName, PatternTypeOption, with_acl_source
from kustos.cli.options import (
    Cluster,
    DelegationToken,
    Group,
    OptionalBootstrapServer,
    Output,
    Topic,
    TransactionalId,
    UserPrincipal,
)
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource

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
kustos acls list --acls /var/lib/kustos/metadata@2026-11-03
kustos acls list --acls acls.yaml --principal User:alice -o csv
"""


@with_acl_source(before="topic", decides=False)
def list_acls(
    source: "AclSource",
    bootstrap_server: OptionalBootstrapServer = None,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: PatternTypeOption = PatternTypeName.LITERAL,
    principal: Principal = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List ACLs, all or those of some resources or principals.

    As in kafka-acls, a name selects the literal ACLs of that name; `--resource-pattern-type match` selects
    all ACLs that apply to it, wildcards and prefixes too. `--bootstrap-server HOST:PORT` is the same as
    `--acls kafka://HOST:PORT`.
    """
    from kustos.acl import EVERY_BINDING, KafkaPrincipal, PatternType
    from kustos.cli.acls.arguments import ResourceArguments, filters_to_list, sorted_bindings
    from kustos.cli.acls.output import print_bindings

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
    source = source.or_cluster(bootstrap_server)
    found = source.load(filters[0] if len(filters) == 1 else EVERY_BINDING).bindings
    chosen = [each for each in found if any(one.matches(each) for one in filters)]
    bindings = sorted_bindings(b for b in chosen if not principals or b.entry.principal in principals)
    print_bindings(bindings, output)
