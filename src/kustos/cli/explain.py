"""`kustos explain`."""

from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.options import CommandConfig, OptionalBootstrapServer, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos explain --bootstrap-server broker:9092 \\
    --principal User:alice --operation Read --topic orders
kustos explain --metadata-dir /var/lib/kustos/metadata \\
    --principal User:alice --host 10.0.0.7 --operation Write --topic orders
"""

Principal = Annotated[
    str, typer.Option("--principal", metavar="TYPE:NAME", help="Who asks.", show_default=False)
]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="From which address.")]
Operation = Annotated[
    str, typer.Option("--operation", metavar="NAME", help="What: Read, Write, ...", show_default=False)
]
OneTopic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="On this topic.")]
OneGroup = Annotated[str | None, typer.Option("--group", metavar="NAME", help="On this group.")]
OneCluster = Annotated[bool, typer.Option("--cluster", help="On the cluster itself.")]
OneTransactionalId = Annotated[
    str | None, typer.Option("--transactional-id", metavar="ID", help="On this transactional id.")
]
OneDelegationToken = Annotated[
    str | None, typer.Option("--delegation-token", metavar="ID", help="On this delegation token.")
]
OneUserPrincipal = Annotated[
    str | None, typer.Option("--user-principal", metavar="TYPE:NAME", help="On this user.")
]
MetadataDirectory = Annotated[
    Path | None,
    typer.Option("--metadata-dir", metavar="DIR", help="Read ACLs here: the directory of a metadata log."),
]
SuperUsers = Annotated[
    str,
    typer.Option("--super-users", metavar="LIST", help="The cluster's super.users, with semicolons."),
]
AllowEveryone = Annotated[
    bool,
    typer.Option(
        "--allow-everyone-if-no-acl-found", help="The cluster's allow.everyone.if.no.acl.found is true."
    ),
]
ExitCodeFlag = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 5 if the action is denied, for scripts.")
]


def explain(
    principal: Principal,
    operation: Operation,
    host: Host = "127.0.0.1",
    topic: OneTopic = None,
    group: OneGroup = None,
    cluster: OneCluster = False,
    transactional_id: OneTransactionalId = None,
    delegation_token: OneDelegationToken = None,
    user_principal: OneUserPrincipal = None,
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    super_users: SuperUsers = "",
    allow_everyone_if_no_acl_found: AllowEveryone = False,
    exit_code: ExitCodeFlag = False,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Tell whether an action is allowed, and why.

    Shows the deciding rule, every matching ACL and those overruled. The ACLs are those of a running
    cluster, or of a metadata directory; they are judged here, by the rules of Kafka's
    StandardAuthorizer. Super users and the default are settings of the brokers, which no API tells:
    give them here.
    """
    from kustos.acl import CLUSTER_NAME, KafkaPrincipal, ResourceType
    from kustos.cli.acls.mapping import parse_operation
    from kustos.cli.explanation import Question, explain_action, load_acls, print_explanation
    from kustos.cli.failures import ExitCode, usage_error

    named = {
        ResourceType.TOPIC: topic,
        ResourceType.GROUP: group,
        ResourceType.CLUSTER: CLUSTER_NAME if cluster else None,
        ResourceType.TRANSACTIONAL_ID: transactional_id,
        ResourceType.DELEGATION_TOKEN: delegation_token,
        ResourceType.USER: user_principal,
    }
    resources = [(kind, name) for kind, name in named.items() if name is not None]
    if len(resources) != 1:
        raise usage_error(
            "name exactly one resource: `--topic`, `--group`, `--cluster`, `--transactional-id`, "
            "`--delegation-token` or `--user-principal`"
        )
    question = Question(
        KafkaPrincipal.parse(principal.strip()), host, parse_operation(operation), *resources[0]
    )
    bindings = load_acls(question, bootstrap_server, metadata_dir, command_config)
    explanation = explain_action(
        question, bindings, super_users=super_users, allow_everyone=allow_everyone_if_no_acl_found
    )
    print_explanation(explanation, output)
    return ExitCode.DENIED if exit_code and not explanation.decision.allowed else ExitCode.OK
