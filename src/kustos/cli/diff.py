"""`kustos diff`."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kustos.cli.acl_options import with_acl_source
from kustos.cli.options import Output, exit_code_if
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kustos.acl import AclBinding
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos diff main/acls.yaml acls.yaml
kustos diff main/acls.yaml acls.yaml --full
kustos diff kafka://broker:9092 acls.yaml --exit-code \\
    --command-config admin.properties
kustos diff - acls.yaml -c server.properties < deployed.txt
kustos diff git:main:acls.yaml acls.yaml
kustos diff /var/lib/kustos/metadata@2026-11-03
kustos diff /var/lib/kustos/metadata@1200 \\
    /var/lib/kustos/metadata@2026-11-04
"""

Old = Annotated[
    str | None,
    typer.Argument(
        metavar="OLD",
        help="The old set, in any form of --acls.",
        show_default=False,
    ),
]
New = Annotated[
    str | None,
    typer.Argument(
        metavar="NEW",
        help="The new set, in any form of --acls. [the directory of OLD as it is now]",
        show_default=False,
    ),
]
Ats = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME",
        help="The same as `@OFFSET` or `@TIME` after the directory of OLD; a second one is for NEW.",
        hidden=True,
    ),
]
REGIONS_DEFAULT: Final = 10_000
"""Default limit of regions: more than twice what one ACL of `User:*` creates among 100,000 others."""

REGIONS_LIMIT: Final = 1_000_000
"""Largest limit of regions that a user may set: the number of ACLs in the largest sets."""

RegionsMax = Annotated[
    int,
    typer.Option(
        "--regions-max",
        metavar="N",
        min=1,
        max=REGIONS_LIMIT,
        help="How many regions to find; if there are more, the counts are minimums.",
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Show all regions on a terminal, as in a pipe.")]
ExitCodeFlag = Annotated[bool, exit_code_if("any decision changes")]


@with_acl_source(before="exit_code", argument=Old)
def diff(
    source: "AclSource",
    new: New = None,
    at: Ats = None,
    exit_code: ExitCodeFlag = False,
    full: Full = False,
    regions_max: RegionsMax = REGIONS_DEFAULT,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Show which decisions change between two sets of ACLs.

    Compares the meaning of the sets, not their text: shows who gains or loses which operations, from
    where, on which names, exactly and for every possible name. It shows no change if and only if both
    sets decide every request alike; a note on standard error says if they may differ for clients with
    groups. First comes a summary, gains before losses, each with an added or
    removed ACL; then the most important regions, and the number of those left out.
    """
    from kustos.analysis import diff as difference_between
    from kustos.analysis import headline_of
    from kustos.cli.broker_settings import report_unknown, shared
    from kustos.cli.differences import print_difference
    from kustos.cli.failures import ExitCode
    from kustos.cli.terminal import progress

    sources = [each.load() for each in _both(source, new, at or [])]
    before, after = [source.bindings for source in sources]
    settings = shared(sources[0].settings, sources[1].settings)
    with progress(f"comparing {len(before)} with {len(after)} ACLs"):
        found = difference_between(
            before, after, settings[0].rules(), settings[1].rules(), regions_max=regions_max
        )
        headline = headline_of(found, before, after, settings[1].rules())
    report_unknown(output, *settings)
    print_difference(found, headline, before, after, settings, output, is_full=full)
    is_same = found.is_empty and not _denials_change(before, after)
    return ExitCode.NO if exit_code and not is_same else ExitCode.OK


def _denials_change(before: "Sequence[AclBinding]", after: "Sequence[AclBinding]") -> bool:
    """Return whether clients with groups may be denied something else than before, and report it."""
    from kustos.analysis import ACLS_ALONE, denial_changes, with_groups
    from kustos.cli.output import print_notice

    if not with_groups(ACLS_ALONE, [*before, *after]).clients_have_groups:
        return False
    changes = denial_changes(before, after).changes
    if changes:
        print_notice(
            "note",
            "the effect of DENYs changes, which matters to clients that have groups, for example: "
            f"{changes[0].region.text()}",
        )
    return bool(changes)


def _both(old: "AclSource", new: str | None, at: list[str]) -> "tuple[AclSource, AclSource]":
    """Return the two sources; raise a usage error for arguments that do not name two."""
    from dataclasses import replace

    from kustos.cli.failures import usage_error

    if len(at) > 2:
        raise usage_error("`--at` is for OLD, a second one for NEW; leave out the others")
    old_at, new_at, *_ = *at, None, None
    old = replace(old, moment=old_at)
    if new is not None:
        both = old, old.other(new, new_at)
        if all(each.is_standard_input for each in both):
            raise usage_error("only one of the two sets can come from standard input")
        return both
    directory = old.without_moment
    if directory is None:
        raise usage_error("name two sets, or a metadata directory at a moment: `DIR@MOMENT`")
    return old, old.other(directory, new_at)
