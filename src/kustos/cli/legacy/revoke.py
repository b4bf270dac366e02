"""`kustos legacy revoke`."""

from typing import Annotated

import typer

from kustos.cli.legacy.options import (
    AclFile,
    Consumer,
    DenyHosts,
    DenyPrincipals,
    Operations,
    Producer,
    existing,
)
from kustos.cli.options import Cluster, Group, Output, Topic
from kustos.cli.output import OutputFormat

RevokePrincipals = Annotated[
    list[str] | None,
    typer.Option(
        "--allowprincipals",
        "--revokeprincipal",
        metavar="P,Q",
        help="The principals of the Allow: user:alice.",
    ),
]
RevokeHosts = Annotated[
    list[str] | None,
    typer.Option("--allowhosts", "--revokehost", metavar="H,I", help="The hosts of the Allow. [all]"),
]
Force = Annotated[bool, typer.Option("--force", help="Remove all ACLs of a resource without confirmation.")]

EXAMPLES = """
kustos legacy revoke acls.json --topic orders \\
    --revokeprincipal user:bob --revokehost 10.0.0.1 --action READ
kustos legacy revoke acls.json --topic orders --force
"""


def revoke(
    file: AclFile,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    allow_principals: RevokePrincipals = None,
    allow_hosts: RevokeHosts = None,
    deny_principals: DenyPrincipals = None,
    deny_hosts: DenyHosts = None,
    operations: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    force: Force = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove ACLs from a file of legacy ACLs.

    Removes exactly the named statements, or all of a resource if no principal is named, after a
    confirmation. An ACL for all hosts or operations is not split: revoke it whole, then grant the rest.
    """
    from kustos.authorizer.legacy import FileAclStore, Statements, statements
    from kustos.cli.confirm import confirm
    from kustos.cli.failures import usage_error
    from kustos.cli.legacy.arguments import LegacyArguments
    from kustos.cli.legacy.rendering import print_acls

    arguments = LegacyArguments(
        topics=topic or (),
        groups=group or (),
        cluster=cluster,
        allow_principals=allow_principals or (),
        allow_hosts=allow_hosts or (),
        deny_principals=deny_principals or (),
        deny_hosts=deny_hosts or (),
        operations=operations or (),
        producer=producer,
        consumer=consumer,
    )
    wanted = statements(arguments.acls())
    if not arguments.names_anybody:
        if arguments.operations or arguments.producer or arguments.consumer:
            raise usage_error("operations without a principal would remove every ACL, name principals too")
        if not force:
            confirm("remove", [f"every ACL of {resource}" for resource in arguments.resources()])
    gone: Statements = {}

    def revoked(kept: Statements) -> Statements:
        for resource in wanted or arguments.resources():
            found = kept.get(resource, frozenset())
            gone[resource] = found & wanted[resource] if wanted else found
        return {resource: of - gone.get(resource, frozenset()) for resource, of in kept.items()}

    FileAclStore(existing(file)).update(revoked)
    print_acls(statements(gone), output, empty="no ACL matched, nothing was removed")
