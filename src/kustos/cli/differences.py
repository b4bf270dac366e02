"""Output of a difference of two ACL sets: its headline in words, then its regions."""

from collections.abc import Iterator, Sequence
from typing import Final

from kustos.acl import AclBinding, AclOperation, ResourceType
from kustos.analysis import (
    EVERY_NAME,
    NOUNS,
    WILDCARD_NAMES,
    Change,
    Claim,
    Consequence,
    Difference,
    Direction,
    Headline,
    HostSet,
    Region,
    Rest,
    ShownChanges,
    by_importance,
    most_important,
    operations_of,
)
from kustos.authorizer.index import EVERY_ALLOW
from kustos.cli.access import hosts_cell, names_cell, principal_names, who_cell
from kustos.cli.acls.output import resource_text
from kustos.cli.broker_settings import BrokerSettings
from kustos.cli.output import (
    Cell,
    Column,
    ColumnFormats,
    Columns,
    OutputFormat,
    counted,
    print_lines,
    print_paragraph,
    print_rows,
    print_table,
)
from kustos.runtime import LISTED_MAX, listed

REGIONS_SHOWN_MAX: Final = 4
"""Rows without `--full`: together with a headline of both directions they fit a screen of 40 lines."""

NAMES_SHOWN_MAX: Final = 2
"""Names per list in the headline, and in a row without `--full`."""

PRINCIPALS_NAMED_MAX: Final = 3
"""Principals that the headline names; it counts the rest."""

MISSING_MAX: Final = 3
"""Up to this many missing operations are named; if more are missing, the present ones are named."""

CHANGES: Final[Columns[Change]] = Columns(
    (
        Column("change", lambda change: change.direction.value.lower()),
        Column("principals", lambda change: who_cell(change.region.principals), title="who"),
        Column("hosts", lambda change: hosts_cell(change.region), title="from"),
        Column("operations", lambda change: _every_operation_cell(change.region)),
        Column("resource_type", lambda change: change.region.resource_type.name, ColumnFormats.WIDE),
        Column("names", lambda change: names_cell(change.region), title="on"),
    ),
    lambda change: principal_names(change.region.principals),
    "the principals with changes; `User:*` is all that ACLs and super.users do not name",
)
"""Every region in full; on a terminal `table` shows less."""


def print_difference(
    difference: Difference,
    headline: Headline,
    before: Sequence[AclBinding],
    after: Sequence[AclBinding],
    settings: tuple[BrokerSettings, BrokerSettings],
    output: OutputFormat,
    *,
    is_full: bool = False,
) -> None:
    """Print the difference for a person, or as one document for a program; `is_full` shows every region."""
    old, new = set(before), set(after)
    added, removed, kept = len(new - old), len(old - new), len(old & new)
    written = f"{added:,} {'ACL' if added == 1 else 'ACLs'} added, {removed:,} removed, {kept:,} kept"
    changes = by_importance(difference.changes)
    gained = sum(change.direction is Direction.GAINED for change in changes)
    summary = f"{_regions(gained)} gained, {len(changes) - gained:,} lost{_more(difference)} ({written})"
    print_rows(
        CHANGES,
        changes,
        output,
        document=lambda: {
            "headline": headline.to_json(),
            **Difference(tuple(changes), difference.is_cut).to_json(),
            "acls": {"added": added, "removed": removed, "kept": kept},
            "settings": {"old": settings[0].to_json(), "new": settings[1].to_json()},
        },
        lead=tuple(_headline_lines(headline, is_cut=difference.is_cut)),
        tail=("no decision changes: both sets mean the same", f"({written})")
        if difference.is_empty
        else (summary,),
        people=None
        if difference.is_empty
        else lambda: _print_for_people(difference, headline, summary, is_full=is_full),
    )


def _print_for_people(difference: Difference, headline: Headline, summary: str, *, is_full: bool) -> None:
    """Print the headline, and one screen of regions or all of them."""
    for line in _headline_lines(headline, is_cut=difference.is_cut):
        text = line.lstrip(" ")
        first = " " * (len(line) - len(text))
        print_paragraph(text, indent=first + "  ", first=first)
    print_lines("")
    print_paragraph(summary)
    print_lines("")
    if is_full:
        _print_regions(by_importance(difference.changes), LISTED_MAX)
        return
    shown = most_important(difference.changes, REGIONS_SHOWN_MAX)
    _print_regions(shown.changes, NAMES_SHOWN_MAX)
    _print_left(shown, is_cut=difference.is_cut)


def _more(difference: Difference) -> str:
    return " and more, see `--regions-max`" if difference.is_cut else ""


def _regions(count: int) -> str:
    return f"{count:,} {'region' if count == 1 else 'regions'}"


def _headline_lines(headline: Headline, *, is_cut: bool) -> Iterator[str]:
    """Yield the consequences, each with an indented example below, then the count of the rest."""
    for consequences, rest in ((headline.gained, headline.gained_rest), (headline.lost, headline.lost_rest)):
        for consequence in consequences:
            yield consequence_text(consequence, is_cut=is_cut)
            if consequence.example is not None:
                yield f"    {_example_text(consequence)}"
        if rest.changes:
            yield rest_text(rest, is_cut=is_cut)


def _print_regions(changes: Sequence[Change], shown_max: int) -> None:
    print_table(
        ("change", "who", "from", "operations", "on"),
        [(change.direction.value.lower(), *region_cells(change.region, shown_max)) for change in changes],
    )


def _print_left(shown: ShownChanges, *, is_cut: bool) -> None:
    gained, lost = len(shown.gained_left), len(shown.lost_left)
    if gained or lost:
        these = "these" if is_cut else "all"
        print_lines("", f"not shown: {_regions(gained)} gained, {lost:,} lost; `--full` shows {these}")


def region_cells(region: Region, shown_max: int = LISTED_MAX) -> tuple[Cell, Cell, Cell, Cell]:
    """Return who, from where, what, on which names: the cells of a row."""
    return (
        who_cell(region.principals, shown_max),
        hosts_cell(region, shown_max),
        _operations_cell(region.operations),
        names_cell(region, shown_max),
    )


def _every_operation_cell(region: Region) -> Cell:
    is_every = len(region.operations) == EVERY_ALLOW.bit_count()
    return "all" if is_every else tuple([operation.name for operation in region.operations])


def consequence_text(consequence: Consequence, *, is_cut: bool = False) -> str:
    """Return a sentence such as `everyone may now READ and DESCRIBE every topic`.

    With `is_cut` the difference is truncated, so its counts are minimums.
    """
    region, claim = consequence.region, consequence.claim
    who, origin = _who(region), _from(region.hosts)
    is_one = who[1]
    if claim is Claim.NOT_DENIED:
        text = f"{_operations(region.operations)} on {_names(region, 'every')}{origin} is no longer denied "
        text += f"to {who[0]}"
        others = f", except by {_acls(consequence.others)}"
    elif claim is Claim.DENIED:
        someone = who[0]
        if region.principals.is_everyone_but:
            names = region.principals.names
            someone = f"no principal except {_named(names)} may" if names else "no principal may"
        else:
            someone = f"{someone} may no longer"
        text = f"{someone} {_what(region, 'any')}{origin}"
        others = f", except where {_acls(consequence.others)} {_verb(consequence.others, 'allow')} it"
    elif consequence.direction is Direction.LOST or _sets_some_apart(consequence):
        verb = _verb(1 if is_one else 2, "gain" if consequence.direction is Direction.GAINED else "lose")
        someone = who[0]
        if _sets_some_apart(consequence):
            # the excluded principals may gain or lose it in another region
            someone = f"everyone, {_named(region.principals.names)} aside,"
        text = f"{someone} {verb} {_operations(region.operations)} on {_names(region, 'every')}{origin}"
        others = ""
    else:
        text = f"{who[0]} may now {_what(region, 'every')}{origin}"
        others = f", except where {_acls(consequence.others)} {_verb(consequence.others, 'deny')} it"
    return text + (others if consequence.others else "") + _whom(consequence, is_cut=is_cut)


def _sets_some_apart(consequence: Consequence) -> bool:
    principals = consequence.region.principals
    return consequence.claim is Claim.CHANGED and principals.is_everyone_but and bool(principals.names)


def _whom(consequence: Consequence, *, is_cut: bool) -> str:
    """Return how many principals are affected, if the consequence covers more."""
    count = consequence.principals
    if count is None or consequence.claim is Claim.CHANGED:
        return ""
    principals = consequence.region.principals
    if not principals.is_everyone_but and len(principals.names) == count:
        return ""
    verb = "gain" if consequence.direction is Direction.GAINED else "lose"
    least = "at least " if is_cut else ""
    return f": {least}{count:,} {'principal' if count == 1 else 'principals'} {_verb(count, verb)}"


def rest_text(rest: Rest, *, is_cut: bool = False) -> str:
    """Return a sentence that counts the changes other than the consequences of a direction."""
    gain = "gain" if rest.changes[0].direction is Direction.GAINED else "lose"
    count = rest.principals
    who, number = "everyone that no ACL names", 1
    if count is not None:
        least = "at least " if is_cut else ""
        who, number = f"{least}{count:,} {'principal' if count == 1 else 'principals'}", count
    names = [operation.name for operation in rest.operations]
    what = listed(names, "or") if len(names) <= LISTED_MAX else "rights"
    kinds = listed([NOUNS[resource_type][1] for resource_type in rest.resource_types], "and")
    return f"in addition, {who} {_verb(number, gain)} {what} on {kinds} ({_regions(len(rest.changes))})"


def _example_text(consequence: Consequence) -> str:
    acl = consequence.example
    if acl is None:
        return ""
    entry = acl.binding.entry
    origin = "" if entry.host == "*" else f" from {entry.host}"
    more = f" and {counted(consequence.acls - 1, 'more ACL')}" if consequence.acls > 1 else ""
    return (
        f"{'added' if acl.is_added else 'removed'}: {entry.permission_type.name} {entry.operation.name} "
        f"to {entry.principal}{origin} on {resource_text(acl.binding)}{more}"
    )


def _who(region: Region) -> tuple[str, bool]:
    """Return the subject, and whether its verb is singular."""
    principals = region.principals
    if not principals.is_everyone_but:
        return _named(principals.names), len(principals.names) == 1
    return f"everyone except {_named(principals.names)}" if principals.names else "everyone", True


def _named(names: Sequence[str]) -> str:
    return listed(names, "and") if len(names) <= PRINCIPALS_NAMED_MAX else f"{len(names):,} principals"


def _from(hosts: HostSet) -> str:
    return "" if hosts.is_everywhere else f" from {hosts.text(NAMES_SHOWN_MAX)}"


def _what(region: Region, every: str) -> str:
    """Return the operations and their objects: `READ and WRITE every topic`, `CREATE on the cluster`."""
    names = _names(region, every)
    if _missing(region.operations) is None:
        is_on = region.resource_type is ResourceType.CLUSTER
        return f"{_operations(region.operations)}{' on' if is_on else ''} {names}"
    everything = _operations(region.operations)
    return f"do {everything if every == 'every' else everything.replace('every', 'any', 1)} on {names}"


def _operations(operations: tuple[AclOperation, ...]) -> str:
    missing = _missing(operations)
    if missing is None:
        return listed([operation.name for operation in operations], "and")
    return f"everything but {listed(missing, 'and')}" if missing else "everything"


def _operations_cell(operations: tuple[AclOperation, ...]) -> Cell:
    missing = _missing(operations)
    if missing is None:
        return tuple([operation.name for operation in operations])
    return (f"all but {missing[0]}", *missing[1:]) if missing else "all"


def _missing(operations: tuple[AclOperation, ...]) -> list[str] | None:
    """Return the missing operations, None if they are too many to name."""
    missing = [operation.name for operation in operations_of(EVERY_ALLOW) if operation not in operations]
    return missing if len(missing) <= MISSING_MAX else None


def _names(region: Region, every: str) -> str:
    noun, _ = NOUNS[region.resource_type]
    if region.resource_type is not ResourceType.CLUSTER and region.names in {EVERY_NAME, WILDCARD_NAMES}:
        # no topic name begins with an asterisk, but a group name may
        is_every = region.names == EVERY_NAME or region.resource_type is ResourceType.TOPIC
        return f"{every} {noun}" if is_every else f"{every} {noun} that `*` stands for"
    return region.names.text(region.resource_type, NAMES_SHOWN_MAX)


def _acls(count: int) -> str:
    return f"{count:,} other {'ACL' if count == 1 else 'ACLs'}"


def _verb(count: int, verb: str) -> str:
    if count != 1:
        return verb
    return "denies" if verb == "deny" else f"{verb}s"
