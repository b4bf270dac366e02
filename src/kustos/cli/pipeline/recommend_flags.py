"""The flags of `kustos pipeline recommend`, merged with the configuration."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from kustos.acl import ResourcePattern
    from kustos.pipeline.answer_settings import RecommendSettings
    from kustos.pipeline.privilege import Legitimate, PrivilegeOptions

NEVER: Final = ("wildcard_share", "all_operations_min")
"""Choices that may be 0 or null, which mean "never"."""

Weight = Annotated[
    float | None,
    typer.Option(
        "--over-grant-weight",
        metavar="W",
        min=0,
        help="Cost of a known name granted but never used (0.25); an ACL costs 1. 0: the fewest ACLs.",
    ),
]
Literal = Annotated[bool, typer.Option("--literal", help="Only literal names: no unused name is granted.")]
FutureNames = Annotated[
    float | None,
    typer.Option(
        "--future-name-count", metavar="N", min=0, help="Names that a prefix is expected to match later (1)."
    ),
]
Separators = Annotated[
    str | None, typer.Option("--separators", metavar="TEXT", help="What a prefix may end with (._-/).")
]
PrefixLengthMin = Annotated[
    int | None,
    typer.Option("--prefix-length-min", metavar="N", min=1, help="Characters of the shortest prefix (4)."),
]
PrefixMembersMin = Annotated[
    int | None,
    typer.Option("--prefix-members-min", metavar="N", min=2, help="Used names that earn a prefix (3)."),
]
WildcardShare = Annotated[
    float | None,
    typer.Option(
        "--wildcard-share",
        metavar="SHARE",
        min=0,
        max=1,
        help="Share of all known names that earns the wildcard `*` (0.9); 0: it is never earned.",
    ),
]
WildcardMembersMin = Annotated[
    int | None,
    typer.Option(
        "--wildcard-members-min", metavar="N", min=2, help="Used names that it needs at least (50)."
    ),
]
AllOperationsMin = Annotated[
    int | None,
    typer.Option(
        "--all-operations-min", metavar="N", min=0, help="Used operations that earn ALL (6); 0: never."
    ),
]
Hosts = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="any|exact|ranges",
        help="Allow from everywhere (any), recorded addresses, or ranges (4.4).",
    ),
]
HostsMax = Annotated[
    int | None,
    typer.Option("--hosts-max", metavar="N", min=1, help="With more addresses (8) allow from everywhere."),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        "--coverage",
        metavar="SHARE",
        min=0,
        max=1,
        help="Leave out the rarest accesses beyond this share (1: none).",
    ),
]
UsesMin = Annotated[
    int | None,
    typer.Option("--uses-min", metavar="N", min=1, help="An access used less often is not needed (1)."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="TYPE:NAME", help="A principal that gets no ACLs."),
]
ExcludeResource = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-resource",
        metavar="TYPE:[PREFIXED:]NAME",
        help="A resource that must not be used: recorded use of it counts as denied.",
    ),
]
Hidden = Annotated[
    bool | None,
    typer.Option(
        "--keep-hidden/--show-hidden",
        help="Keep names hidden that lists left out (the default), or let prefixes show them.",
        show_default=False,
    ),
]
WithListing = Annotated[
    bool | None,
    typer.Option(
        "--with-listing/--without-listing",
        help="Count a name that only filtered a list as a need (not by default).",
        show_default=False,
    ),
]
WithSuperUsers = Annotated[
    bool | None,
    typer.Option(
        "--with-super-users/--without-super-users",
        help="Give super users ACLs for what they did (not by default).",
        show_default=False,
    ),
]
WithinToday = Annotated[
    bool | None,
    typer.Option(
        "--within-today/--beyond-today",
        help="Grant nothing that today's ACLs do not grant (the default), or also more: that is shown.",
        show_default=False,
    ),
]


def named(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a command that are named like a choice."""
    from kustos.pipeline.answer_settings import RecommendSettings

    return {name: parameters[name] for name in RecommendSettings.model_fields if name in parameters}


def choices(
    settings: "RecommendSettings", flags: Mapping[str, Any], *, literal: bool
) -> tuple["PrivilegeOptions", "Legitimate"]:
    """Return the choices of the flags that are not None and, for the rest, of the configuration.

    `flags` have the names of `PrivilegeOptions` and `Legitimate`. Raises usage errors.
    """
    from kustos.cli.failures import usage_error
    from kustos.pipeline.privilege import HostChoice, Legitimate, PrivilegeOptionError, PrivilegeOptions

    stated = {name: value for name, value in settings.stated().items() if value is not None or name in NEVER}
    chosen = {**stated, **{name: value for name, value in flags.items() if value is not None}}
    chosen.pop("within_today", None)
    for name in NEVER:
        if chosen.get(name) == 0:
            chosen[name] = None
    if literal:
        chosen["over_grant_weight"] = float("inf")
    if "hosts" in chosen:
        try:
            chosen["hosts"] = HostChoice(chosen["hosts"])
        except ValueError:
            raise usage_error(f"`--hosts {chosen['hosts']}` is none of any, exact and ranges") from None
    excluded = chosen.pop("resources_excluded", None) or ()
    legitimate = {field.name: chosen.pop(field.name) for field in fields(Legitimate) if field.name in chosen}
    legitimate["principals_excluded"] = tuple(legitimate.get("principals_excluded") or ())
    legitimate["resources_excluded"] = tuple(resource_of(text) for text in excluded)
    try:
        return PrivilegeOptions(**chosen), Legitimate(**legitimate)
    except PrivilegeOptionError as error:
        raise usage_error(str(error)) from None


def resource_of(text: str) -> "ResourcePattern":
    """Return the pattern of `TYPE:NAME`, `TYPE:LITERAL:NAME` or `TYPE:PREFIXED:NAME`; raise a usage error."""
    from kustos.acl import PatternType, ResourcePattern, ResourceType
    from kustos.cli.failures import usage_error

    kind, _, rest = text.partition(":")
    how, colon, name = rest.partition(":")
    if not colon or how not in {"LITERAL", "PREFIXED"}:
        how, name = "LITERAL", rest
    resource_type = ResourceType.from_text(kind)
    if resource_type in {ResourceType.UNKNOWN, ResourceType.ANY} or not name:
        raise usage_error(f"`{text}` is not a resource, write `TOPIC:name` or `TOPIC:PREFIXED:name`")
    return ResourcePattern(resource_type, name, PatternType[how])
