"""`kustos acls remove`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import (
    AllowHost,
    AllowPrincipal,
    Consumer,
    DenyHost,
    DenyPrincipal,
    Idempotent,
    Operation,
    PatternTypeName,
    PatternTypeOption,
    Producer,
)
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

Force = Annotated[bool, typer.Option("--force", help="Remove without confirmation.")]

EXAMPLES = """
kustos acls remove --bootstrap-server broker:9092 --topic orders \\
    --allow-principal User:alice --operation Read --force
kustos acls remove --bootstrap-server broker:9092 --topic orders
"""


def remove(
    bootstrap_server: BootstrapServer,
    allow_principal: AllowPrincipal = None,
    deny_principal: DenyPrincipal = None,
    allow_host: AllowHost = None,
    deny_host: DenyHost = None,
    operation: Operation = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: PatternTypeOption = PatternTypeName.LITERAL,
    force: Force = False,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove ACLs.

    Removes exactly the named ACLs, or every ACL of a resource if no principal is named, after a
    confirmation unless `--force` is given. Unlike kafka-acls it refuses a host or an operation without
    a principal: that tool then removes every ACL of the resource.
    """
    from kustos.acl import PatternType
    from kustos.cli.acls.arguments import (
        EntryArguments,
        ResourceArguments,
        filters_to_remove,
        sorted_bindings,
    )
    from kustos.cli.acls.output import filter_text, print_removed
    from kustos.cli.failures import failure_of_items
    from kustos.cli.session import query_cluster
    from kustos.cli.terminal import confirm

    filters = filters_to_remove(
        ResourceArguments(
            topics=topic or (),
            groups=group or (),
            cluster=cluster,
            transactional_ids=transactional_id or (),
            delegation_tokens=delegation_token or (),
            user_principals=user_principal or (),
            pattern_type=PatternType.from_text(resource_pattern_type.value),
        ),
        EntryArguments(
            allow_principals=allow_principal or (),
            deny_principals=deny_principal or (),
            allow_hosts=allow_host or (),
            deny_hosts=deny_host or (),
            operations=operation or (),
            producer=producer,
            consumer=consumer,
            idempotent=idempotent,
        ),
    )
    if not force:
        confirm("remove", [filter_text(item) for item in filters])
    outcomes = query_cluster(
        bootstrap_server, command_config, lambda admin: admin.delete_acls(filters), "removing ACLs"
    )
    removed = sorted_bindings(binding for outcome in outcomes for binding in outcome.deleted)
    print_removed(removed, output)
    failure = failure_of_items("removing ACLs", [outcome.error for outcome in outcomes])
    if failure is not None:
        raise failure
