"""`kustos acls list`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import At, MetadataDirectory, PatternTypeName, PatternTypeOption
from kustos.cli.options import (
    Cluster,
    CommandConfig,
    DelegationToken,
    Group,
    IgnoreTornTail,
    OptionalBootstrapServer,
    Output,
    Topic,
    TransactionalId,
    UserPrincipal,
)
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.acl import AclBinding, AclBindingFilter

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
kustos acls list --metadata-dir /var/lib/kustos/metadata --at 2026-11-03
"""


def list_acls(
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    at: At = None,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: PatternTypeOption = PatternTypeName.LITERAL,
    principal: Principal = None,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List ACLs, all or those of some resources or principals.

    As in kafka-acls, a name selects the literal ACLs of that name; `--resource-pattern-type match` selects
    all ACLs that apply to it, wildcards and prefixes too. Reads a running cluster or a metadata directory,
    with `--at` its state at an earlier moment.
    """
    from kustos.acl import KafkaPrincipal, PatternType
    from kustos.cli.acl_locations import AclSource
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
    if metadata_dir is None and at is None:
        found = _of_cluster(bootstrap_server, command_config, filters)
    else:
        source = AclSource(
            metadata_dir=metadata_dir,
            at=at,
            bootstrap_server=bootstrap_server,
            ignore_torn_tail=ignore_torn_tail,
        )
        found = [
            b for b in source.load().bindings if any(binding_filter.matches(b) for binding_filter in filters)
        ]
    bindings = sorted_bindings(b for b in found if not principals or b.entry.principal in principals)
    print_bindings(bindings, output)


def _of_cluster(
    bootstrap_server: str | None, command_config: Path | None, filters: "list[AclBindingFilter]"
) -> "list[AclBinding]":
    from kustos.cli.failures import usage_error
    from kustos.cli.session import query_cluster
    from kustos.client.admin import AdminClient

    if bootstrap_server is None:
        raise usage_error(
            "say where the ACLs are: `--bootstrap-server` or `--metadata-dir`; see `kustos acls list --help`"
        )

    async def describe(admin: AdminClient) -> "list[AclBinding]":
        return [
            binding for binding_filter in filters for binding in await admin.describe_acls(binding_filter)
        ]

    return query_cluster(bootstrap_server, command_config, describe, "listing ACLs")
