"""The options that name exactly one resource."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kustos.acl import ResourceType

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


def the_resource(
    *,
    topic: str | None,
    group: str | None,
    cluster: bool,
    transactional_id: str | None,
    delegation_token: str | None,
    user_principal: str | None,
) -> "tuple[ResourceType, str]":
    """Return the one resource that was named; raise a usage error for none or several."""
    from kustos.acl import CLUSTER_NAME, ResourceType
    from kustos.cli.failures import usage_error

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
    return resources[0]
