"""`kustos legacy grant`."""

from typing import Annotated

import typer

from kustos.cli.legacy.options import (
    AclFile,
    Consumer,
    DenyHosts,
    DenyPrincipals,
    Operations,
    Producer,
)
from kustos.cli.options import Cluster, Group, Output, Topic
from kustos.cli.output import OutputFormat

AllowPrincipals = Annotated[
    list[str] | None,
    typer.Option(
        "--allowprincipals",
        "--grantprincipal",
        metavar="P,Q",
        help="The allowed principals: user:alice, or *:* for all.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option("--allowhosts", "--granthost", metavar="H,I", help="The hosts of these principals. [all]"),
]

EXAMPLES = """
kustos legacy grant acls.json --topic orders \\
    --grantprincipal user:alice,user:bob --granthost 10.0.0.1 --action READ
kustos legacy grant acls.json --topic orders --group billing --consumer \\
    --allowprincipals user:billing
"""


def grant(
    file: AclFile,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    allow_principals: AllowPrincipals = None,
    allow_hosts: AllowHosts = None,
    deny_principals: DenyPrincipals = None,
    deny_hosts: DenyHosts = None,
    operations: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add ACLs to a file of legacy ACLs.

    Each principal gets each operation from each host on each resource. A bare name is a user. A Deny
    overrules every Allow. Creates the file if it does not exist. A node reads the file when it starts.
    """
    from kustos.authorizer.legacy import FileAclStore, Statements, statements
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
    acls = statements(arguments.acls())
    if not arguments.names_anybody:
        raise usage_error("name the principals: give `--allowprincipals` or `--denyprincipals`")

    def granted(kept: Statements) -> Statements:
        return kept | {resource: kept.get(resource, frozenset()) | of for resource, of in acls.items()}

    FileAclStore(file).update(granted)
    print_acls(acls, output, empty="nothing to grant")
