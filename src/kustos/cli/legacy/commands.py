"""The commands of `kustos legacy`; their options have the names from the two drafts of KIP-11."""

from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.failures import usage_error
from kustos.cli.options import Cluster, Group, Output, Topic
from kustos.cli.output import OutputFormat

AclFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="JSON by ZooKeeper's paths, as `kustos.legacy.acl.file` names it.",
        show_default=False,
    ),
]
Operations = Annotated[
    list[str] | None,
    typer.Option("--operations", "--action", metavar="A,B", help="READ, WRITE, EDIT, DESCRIBE, ... [ALL]"),
]
Producer = Annotated[
    bool, typer.Option("--producer", help="WRITE and DESCRIBE on the topics, CREATE on the cluster.")
]
Consumer = Annotated[
    bool, typer.Option("--consumer", help="READ and DESCRIBE on the topics, READ on the groups.")
]
DenyPrincipals = Annotated[
    list[str] | None,
    typer.Option("--denyprincipals", metavar="P,Q", help="The principals of the Deny."),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option("--denyhosts", metavar="H,I", help="The hosts of the Deny. [all]"),
]


def existing(file: Path) -> Path:
    """Return the path; raise a usage error if it does not exist: a wrong name is no empty set of ACLs."""
    if not file.exists():
        raise usage_error(f"there is no file `{file}`; `kustos legacy grant` creates one")
    return file


LIST_EXAMPLES = """
kustos legacy list acls.json
kustos legacy list acls.json --topic orders -o json
"""


def list_acls(
    file: AclFile,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the ACLs of a file, all or those of some resources.

    A table shows them with sets, as KIP-11 does; JSON is the file's own form, as Kafka 0.9 to 3.9
    kept it in ZooKeeper.
    """
    from kustos.cli.legacy.statements import LegacyArguments, of_resources, print_acls
    from kustos.legacy import FileAclStore

    named = LegacyArguments(topics=topic or (), groups=group or (), cluster=cluster).resources()
    print_acls(of_resources(FileAclStore(existing(file)).load(), named), output, empty="no ACL")


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

GRANT_EXAMPLES = """
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
    from kustos.cli.legacy.statements import LegacyArguments, print_acls
    from kustos.legacy import FileAclStore, Statements, statements

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
        return kept | {resource: kept.get(resource, frozenset()) | own for resource, own in acls.items()}

    FileAclStore(file).update(granted)
    print_acls(acls, output, empty="nothing to grant")


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

REVOKE_EXAMPLES = """
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
    from kustos.cli.legacy.statements import LegacyArguments, print_acls
    from kustos.cli.terminal import confirm
    from kustos.legacy import FileAclStore, Statements, statements

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
        return {resource: own - gone.get(resource, frozenset()) for resource, own in kept.items()}

    FileAclStore(existing(file)).update(revoked)
    print_acls(statements(gone), output, empty="no ACL matched, nothing was removed")


CONVERT_EXAMPLES = """
kustos legacy convert acls.json > acls-of-today.json
kustos legacy convert acls.json -o yaml > acls-of-today.yaml
"""


def convert(file: AclFile, output: Output = OutputFormat.JSON) -> None:
    """Print a file's ACLs as today's, in JSON.

    `kustos storage format --acls` reads the output in JSON, YAML and CSV. If the meaning of an ACL would
    change, for example with a slash in its host, the command names the ACL and prints nothing.
    """
    from kustos.cli.acls.arguments import sorted_bindings
    from kustos.cli.acls.output import print_bindings
    from kustos.legacy import FileAclStore, all_bindings_of

    bindings = sorted_bindings(all_bindings_of(FileAclStore(existing(file)).load()))
    print_bindings(bindings, output, empty="no ACL")
