"""The options that name exactly one resource, or all with a common prefix."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.output import OutputFormat, print_notice

if TYPE_CHECKING:
    from kustos.acl import ResourcePattern, ResourceType

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


class NamePatternType(StrEnum):
    """`--resource-pattern-type` of a question: one name, or all names with this prefix."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


PatternTypeOption = Annotated[
    NamePatternType,
    typer.Option(
        "--resource-pattern-type",
        help="Whether the name is one name (`*`: every name) or the beginning of names.",
    ),
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
    """Return the one named resource; raise a usage error for none or several."""
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


def likely_prefix(pattern: "ResourcePattern") -> str | None:
    """Return the prefix that a literal name ending in `*` probably meant, None if it does not end so."""
    from kustos.acl import WILDCARD, PatternType

    is_one = pattern.pattern_type is PatternType.LITERAL and pattern.name != WILDCARD
    return pattern.name[:-1] if is_one and pattern.name.endswith(WILDCARD) else None


def note_likely_prefix(pattern: "ResourcePattern", output: OutputFormat) -> None:
    """Report on standard error that a name ending in `*` was taken as one name."""
    prefix = likely_prefix(pattern)
    if prefix is not None and not output.is_document:
        print_notice(
            "note",
            f"`{pattern.name}` is taken as one name; for all that begin with `{prefix}` give that name and "
            "`--resource-pattern-type prefixed`",
        )
