"""`kustos diff`."""

from typing import Annotated, Final

import typer

from kustos.cli.acl_options import AllowEveryone, Form, NodeConfig, SuperUsers
from kustos.cli.options import CommandConfig, IgnoreTornTail, Output, exit_code_if
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos diff main/acls.yaml acls.yaml
kustos diff main/acls.yaml acls.yaml --full
kustos diff kafka://broker:9092 acls.yaml --exit-code \\
    --command-config admin.properties
kustos diff - acls.yaml -c server.properties < deployed.txt
kustos diff /var/lib/kustos/metadata --at 2026-11-03
kustos diff /var/lib/kustos/metadata --at 2026-11-03 --at 2026-11-04
"""

Old = Annotated[
    str,
    typer.Argument(
        metavar="OLD", help="A file in any form, `-`, a metadata directory, or kafka://HOST:PORT."
    ),
]
New = Annotated[
    str | None,
    typer.Argument(
        metavar="[NEW]",
        help="The new set, in the same forms. Optional with --at: the same directory.",
        show_default=False,
    ),
]
Ats = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME",
        help="The state of OLD at a log offset or a UTC time. The second one is for NEW.",
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


def diff(
    old: Old,
    new: New = None,
    at: Ats = None,
    form: Form = None,
    config: NodeConfig = None,
    super_users: SuperUsers = None,
    allow_everyone_if_no_acl_found: AllowEveryone = None,
    exit_code: ExitCodeFlag = False,
    full: Full = False,
    regions_max: RegionsMax = REGIONS_DEFAULT,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Show which decisions change between two sets of ACLs.

    Compares the meaning of the sets, not their text: shows who gains or loses which operations, from
    where, on which names, exactly and for every possible name. It shows no change if and only if both
    sets decide every request alike. First comes a summary, gains before losses, each with an added or
    removed ACL; then the most important regions, and the number of those left out. With --at it
    compares a metadata directory with its state at an earlier moment, or two moments.
    """
    from kustos.analysis import diff as difference_between
    from kustos.analysis import headline_of
    from kustos.cli.acl_locations import STANDARD_INPUT, read_location
    from kustos.cli.broker_settings import SettingOptions, report_unknown, shared
    from kustos.cli.differences import print_difference
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.terminal import progress

    old_at, new_at = _moments(at or [])
    if new is None:
        if not at:
            raise usage_error("name two sets, or a metadata directory and `--at`")
        new = old
    if old == new == STANDARD_INPUT:
        raise usage_error("only one of the two sets can come from standard input")
    options = SettingOptions(super_users, allow_everyone_if_no_acl_found, config)
    sources = [
        read_location(text, form, command_config, moment, ignore_torn_tail=ignore_torn_tail, settings=options)
        for text, moment in ((old, old_at), (new, new_at))
    ]
    before, after = [source.bindings for source in sources]
    settings = shared(sources[0].settings, sources[1].settings)
    with progress(f"comparing {len(before)} with {len(after)} ACLs"):
        found = difference_between(
            before, after, settings[0].rules(), settings[1].rules(), regions_max=regions_max
        )
        headline = headline_of(found, before, after, settings[1].rules())
    report_unknown(output, *settings)
    print_difference(found, headline, before, after, settings, output, is_full=full)
    return ExitCode.NO if exit_code and not found.is_empty else ExitCode.OK


def _moments(at: list[str]) -> tuple[str | None, str | None]:
    from kustos.cli.failures import usage_error

    if len(at) > 2:
        raise usage_error("`--at` is for OLD, a second one for NEW; leave out the others")
    old, new, *_ = *at, None, None
    return old, new
