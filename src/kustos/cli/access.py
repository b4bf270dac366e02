"""Output of `who-can` and `what-can`."""

import sys
from collections.abc import Sequence
from typing import Final

from kustos.acl import (
    EVERY_PRINCIPAL,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import AllowedAccess, Grant, PrincipalSet, Region
from kustos.cli.broker_settings import BrokerSettings
from kustos.cli.output import (
    Cell,
    Column,
    ColumnFormats,
    Columns,
    OutputFormat,
    Words,
    print_lines,
    print_rows,
    print_table,
)
from kustos.runtime import LISTED_MAX


def who_cell(principals: PrincipalSet, shown_max: int = sys.maxsize) -> Cell:
    """Return principals as a list that never breaks inside a name; only counts the end of a longer list."""
    names = principals.names
    if len(names) > shown_max:
        shown = max(1, shown_max - 1)
        names = (*names[:shown], f"and {len(names) - shown:,} more")
    if not principals.is_everyone_but:
        return names or "no principal"
    return (f"everyone except {names[0]}", *names[1:]) if names else "everyone"


def principal_names(principals: PrincipalSet) -> tuple[str, ...]:
    """Return principals as arguments: `User:*` is all that neither ACLs nor `super.users` name."""
    return (EVERY_PRINCIPAL,) if principals.is_everyone_but else principals.names


def hosts_cell(region: Region, shown_max: int = sys.maxsize) -> Words:
    """Return the hosts in words; only counts those after the first `shown_max`."""
    return Words(region.hosts.text(shown_max))


def names_cell(region: Region, shown_max: int = sys.maxsize) -> Words:
    """Return the names in words; only counts those after the first `shown_max`."""
    return Words(region.names.text(region.resource_type, shown_max))


WHO: Final[Columns[Grant]] = Columns(
    (
        Column("principals", lambda grant: who_cell(grant.region.principals), title="who"),
        Column("hosts", lambda grant: hosts_cell(grant.region), title="from"),
        Column("every_name", lambda grant: grant.is_every_name, ColumnFormats.WIDE, title="all of it"),
        Column("resource_type", lambda grant: grant.region.resource_type.name, ColumnFormats.WIDE),
        Column("names", lambda grant: names_cell(grant.region), title="on"),
    ),
    lambda grant: principal_names(grant.region.principals),
    "the principals, as `what-can` takes them; `User:*` is all that ACLs and super.users do not name",
)


def print_access(
    access: AllowedAccess,
    operation: AclOperation,
    pattern: ResourcePattern,
    settings: BrokerSettings,
    output: OutputFormat,
) -> None:
    """Print who may do an operation on the names of a pattern."""
    what, is_one = _resource_words(pattern)
    none = f"no principal may {operation.name} {'' if is_one else 'any '}{what}"
    print_rows(
        WHO,
        access.grants,
        output,
        document=lambda: {
            "operation": operation.name,
            "resource_type": pattern.resource_type.name,
            "resource_name": pattern.name,
            "pattern_type": pattern.pattern_type.name,
            **access.to_json(),
            "settings": settings.to_json(),
        },
        lead=(f"{operation.name} {what}:",) if access.grants else (none,),
        tail=(_MORE,) if access.is_cut else (),
        people=lambda: _print_for_people(access, operation, what, is_one=is_one),
    )


_MORE: Final = "there is more, see `--regions-max`"


def _print_for_people(access: AllowedAccess, operation: AclOperation, what: str, *, is_one: bool) -> None:
    """Print who may do it on all the names, then who may on some."""
    if not access.grants:
        print_lines(f"no principal may {operation.name} {'' if is_one else 'any '}{what}")
        return
    whole = [grant.region for grant in access.grants if grant.is_every_name]
    some = [grant.region for grant in access.grants if not grant.is_every_name]
    if whole:
        print_lines(f"{operation.name} {'' if is_one else 'all '}{what}:", "")
        rows = [(who_cell(region.principals), hosts_cell(region, LISTED_MAX)) for region in whole]
        print_table(("who", "from"), rows)
    if some:
        print_lines(*[""][: len(whole)], f"{operation.name} some {what}:", "")
        print_table(
            ("who", "from", "which"),
            [
                (who_cell(region.principals), hosts_cell(region, LISTED_MAX), names_cell(region, LISTED_MAX))
                for region in some
            ],
        )
    if access.is_cut:
        print_lines("", _MORE)


def _resource_words(pattern: ResourcePattern) -> tuple[str, bool]:
    """Return the requested names in words, and whether it is exactly one."""
    kind = pattern.resource_type.name.lower().replace("_", " ")
    if pattern.resource_type is ResourceType.CLUSTER:
        return "the cluster", True
    if pattern.pattern_type is not PatternType.LITERAL:
        return f"{kind}s that begin with `{pattern.name}`", False
    return (f"{kind}s", False) if pattern.name == WILDCARD else (f"{kind} {pattern.name}", True)


def _meant(region: Region) -> tuple[str, ...]:
    """Return the operations that mean something on the type."""
    supported = SUPPORTED_OPERATIONS[region.resource_type]
    return tuple([operation.name for operation in region.operations if operation in supported])


WHAT: Final[Columns[Region]] = Columns(
    (
        Column("do", lambda region: Words(_operations(region)), ColumnFormats.NARROW),
        Column("operations", _meant, ColumnFormats.WIDE),
        Column("resource_type", lambda region: region.resource_type.name, ColumnFormats.WIDE),
        Column("names", names_cell, title="on"),
        Column("hosts", hosts_cell, title="from"),
    ),
    lambda region: [term.site.name or WILDCARD for term in region.names.terms()],
    "the names, beginnings of names, or `*` for all, as `who-can --topic` takes them",
)


def print_regions(
    principal: str, regions: Sequence[Region], settings: BrokerSettings, output: OutputFormat
) -> None:
    """Print what a principal may do."""
    who = "everyone that neither ACLs nor super.users name" if principal == EVERY_PRINCIPAL else principal
    rows = [region for region in regions if _meant(region)]
    lead = (f"{who} may:" if rows else f"{who} may do nothing",)
    print_rows(
        WHAT,
        rows,
        output,
        document=lambda: {
            "principal": principal,
            "grants": [region.to_json() for region in regions],
            "settings": settings.to_json(),
        },
        lead=lead,
        people=(lambda: _print_rights(lead, rows)) if rows else None,
    )


def _print_rights(lead: tuple[str, ...], regions: Sequence[Region]) -> None:
    """Print the rights for a person at a terminal, with lists of readable length."""
    print_lines(*lead, "")
    print_table(
        ("do", "on", "from"),
        [
            (Words(_operations(region)), names_cell(region, LISTED_MAX), hosts_cell(region, LISTED_MAX))
            for region in regions
        ],
    )


def _operations(region: Region) -> str:
    """Return the operations that mean something on the type, in the fewest words."""
    meant = _meant(region)
    missing = [
        operation.name
        for operation in SUPPORTED_OPERATIONS[region.resource_type]
        if operation not in region.operations
    ]
    if not missing:
        return "all"
    return f"all but {', '.join(missing)}" if len(missing) * 2 < len(meant) else ", ".join(meant)
