"""`kustos acls add`."""

from kustos.cli.acls.options import (
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

EXAMPLES = """
kustos acls add --bootstrap-server broker:9092 --topic orders \\
    --allow-principal User:alice --operation Read --operation Describe
kustos acls add --bootstrap-server broker:9092 --producer --topic shop- \\
    --resource-pattern-type prefixed --allow-principal User:shop
"""


def add(
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
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add ACLs.

    Each named principal gets each operation from each host on each named resource.
    An ACL that exists already is left as it is. The same arguments as kafka-acls make the same ACLs.
    """
    from kustos.acl import PatternType
    from kustos.acl.forms import texts_of
    from kustos.cli.acls.mapping import EntryArguments, ResourceArguments, bindings_to_add
    from kustos.cli.acls.rendering import print_bindings
    from kustos.cli.failures import failure_of_items
    from kustos.cli.output import print_json
    from kustos.cli.session import ask_cluster

    bindings = bindings_to_add(
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
    outcomes = ask_cluster(
        bootstrap_server, command_config, lambda admin: admin.create_acls(bindings), "adding ACLs"
    )
    added = [binding for binding, error in zip(bindings, outcomes, strict=True) if error is None]
    if output is OutputFormat.JSON:
        print_json({"added": [texts_of(binding) for binding in added]})
    elif added:
        print_bindings(added)
    failure = failure_of_items("adding ACLs", outcomes)
    if failure is not None:
        raise failure
