"""`kustos acls add`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from kustos.acl import AclBinding
    from kustos.client import KafkaError
    from kustos.client.admin import AdminClient

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

    Each named principal gets each operation from each host on each named resource. An ACL that exists
    already stays as it is. The same arguments create the same ACLs as with kafka-acls.
    """
    from kustos.acl import PatternType
    from kustos.cli.acls.arguments import EntryArguments, ResourceArguments, bindings_to_add
    from kustos.cli.acls.output import print_added, warn_oddities
    from kustos.cli.failures import failure_of_items
    from kustos.cli.session import query_cluster

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
    _refuse_unreadable_ranges(bindings)
    warn_oddities(bindings)

    async def create(admin: "AdminClient") -> "tuple[set[AclBinding] | None, list[KafkaError | None]]":
        return await _those_there(admin, bindings), await admin.create_acls(bindings)

    there, outcomes = query_cluster(bootstrap_server, command_config, create, "adding ACLs")
    in_force = [binding for binding, error in zip(bindings, outcomes, strict=True) if error is None]
    print_added(in_force, there, output)
    failure = failure_of_items("adding ACLs", outcomes)
    if failure is not None:
        raise failure


def _refuse_unreadable_ranges(bindings: "Iterable[AclBinding]") -> None:
    """Raise a usage error for a host that is meant as a range and matches no client: a DENY would be void."""
    from kustos.acl import AclValueError, HostRange
    from kustos.cli.failures import usage_error

    for host in dict.fromkeys(binding.entry.host for binding in bindings):
        if "/" in host:
            try:
                HostRange.parse(host)
            except AclValueError as error:
                raise usage_error(str(error)) from None


async def _those_there(admin: "AdminClient", bindings: "Iterable[AclBinding]") -> "set[AclBinding] | None":
    """Return the existing ACLs on the resources; None if we are not allowed to describe them."""
    from kustos.acl import AclBindingFilter, ResourcePatternFilter
    from kustos.client import KafkaError

    found: set[AclBinding] = set()
    for pattern in dict.fromkeys(binding.pattern for binding in bindings):
        pattern_filter = ResourcePatternFilter(pattern.resource_type, pattern.name, pattern.pattern_type)
        try:
            found.update(await admin.describe_acls(AclBindingFilter(pattern_filter)))
        except KafkaError as error:
            if not error.is_authorization_failure:
                raise
            return None
    return found
