"""`kustos legacy`: the ACL tool of KIP-11, for a file of ACLs in ZooKeeper's form.

Sources: KIP-11, whose two drafts name the options, and `AclCommand` of Kafka 0.9.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.failures import usage_error
from kustos.cli.options import Cluster, Group, Output, Topic
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.legacy_acls import LegacyArguments
    from kustos.legacy import Acls, Statements

EXAMPLES = """
kustos legacy list acls.json --topic orders
kustos legacy grant acls.json --topic orders \\
    --grantprincipal user:alice,user:bob --granthost 10.0.0.1 --action READ
kustos legacy grant acls.json --topic orders --group billing --consumer \\
    --allowprincipals user:billing
kustos legacy revoke acls.json --topic orders --force
kustos legacy convert acls.json -o yaml > acls.yaml
"""


class LegacyAction(StrEnum):
    """What to do with the file."""

    LIST = "list"
    GRANT = "grant"
    REVOKE = "revoke"
    CONVERT = "convert"


Action = Annotated[LegacyAction, typer.Argument(help="What to do with the ACLs of the file.")]
AclFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="JSON by ZooKeeper's paths, as `kustos.legacy.acl.file` names it.",
        show_default=False,
    ),
]
AllowPrincipals = Annotated[
    list[str] | None,
    typer.Option(
        "--allowprincipals",
        "--grantprincipal",
        "--revokeprincipal",
        metavar="P,Q",
        help="The principals of the Allow: user:alice, or *:* for all.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowhosts",
        "--granthost",
        "--revokehost",
        metavar="H,I",
        help="The hosts of these principals. [all]",
    ),
]
DenyPrincipals = Annotated[
    list[str] | None,
    typer.Option("--denyprincipals", metavar="P,Q", help="The principals of the Deny."),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option("--denyhosts", metavar="H,I", help="The hosts of the Deny. [all]"),
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
Force = Annotated[
    bool, typer.Option("--force", help="With revoke: remove all ACLs of a resource without confirmation.")
]


def legacy(
    action: Action,
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
    force: Force = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List and change a file of legacy (KIP-11) ACLs.

    `list` shows all ACLs of the file, or those of some resources. `grant` gives each principal each operation
    from each host on each resource, and creates the file if it does not exist. `revoke` removes exactly these
    ACLs; without a principal it removes all ACLs of the resources, after confirmation. An ACL for all hosts
    or all operations is not split: revoke it, then grant the rest. A name without a type is a user. A Deny
    overrules every Allow. A node reads the file when it starts.

    `convert` prints the ACLs in Kafka's current form, as JSON unless `-o` is another format;
    `kustos storage format --acls` reads it. If an ACL would change its meaning, for example with a slash in
    its host, the command names the ACL and prints nothing.
    """
    from kustos.cli.legacy_acls import LegacyArguments, of_resources, print_acls
    from kustos.legacy import FileAclStore

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
    if action is LegacyAction.GRANT:
        print_acls(_granted(file, arguments), output, empty="nothing to grant")
        return
    if not file.exists():  # a wrong name is no empty set of ACLs
        raise usage_error(f"file `{file}` does not exist; `kustos legacy grant` creates it")
    if action is LegacyAction.REVOKE:
        gone = _revoked(file, arguments, force=force)
        print_acls(gone, output, empty="no ACL matched, nothing was removed")
        return
    arguments.check_only_resources(action)
    acls = of_resources(FileAclStore(file).load(), arguments.resources())
    if action is LegacyAction.LIST:
        print_acls(acls, output, empty="no ACL")
    else:
        _print_converted(acls, output)


def _granted(file: Path, arguments: "LegacyArguments") -> "Statements":
    """Add the ACLs to the file, and return them."""
    from kustos.legacy import FileAclStore, statements

    acls = statements(arguments.acls())
    if not arguments.names_principals:
        raise usage_error("name the principals: use `--allowprincipals` or `--denyprincipals`")
    FileAclStore(file).update(
        lambda kept: (
            kept | {resource: kept.get(resource, frozenset()) | own for resource, own in acls.items()}
        )
    )
    return acls


def _revoked(file: Path, arguments: "LegacyArguments", *, force: bool) -> "Statements":
    """Remove the ACLs, or all ACLs of the resources; return those that the file had."""
    from kustos.cli.terminal import confirm
    from kustos.legacy import FileAclStore, statements

    wanted = statements(arguments.acls())
    if not arguments.names_principals:
        if arguments.operations or arguments.producer or arguments.consumer:
            raise usage_error("operations without a principal would remove every ACL, name principals too")
        if not force:
            confirm("remove", [f"every ACL of {resource}" for resource in arguments.resources()])
    gone: Statements = {}

    def revoked(kept: "Statements") -> "Statements":
        for resource in wanted or arguments.resources():
            found = kept.get(resource, frozenset())
            gone[resource] = found & wanted[resource] if wanted else found
        return {resource: own - gone.get(resource, frozenset()) for resource, own in kept.items()}

    FileAclStore(file).update(revoked)
    return statements(gone)


def _print_converted(acls: "Acls", output: OutputFormat) -> None:
    from kustos.cli.acls.arguments import sorted_bindings
    from kustos.cli.acls.output import print_bindings
    from kustos.legacy import all_bindings_of

    printed = OutputFormat.JSON if output is OutputFormat.TABLE else output
    print_bindings(sorted_bindings(all_bindings_of(acls)), printed, empty="no ACL")
