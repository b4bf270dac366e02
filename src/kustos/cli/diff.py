"""`kustos diff`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import AllowEveryone, Form, RegionsMax, SuperUsers
from kustos.cli.options import CommandConfig, Output, exit_code_if
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos diff main/acls.yaml acls.yaml
kustos diff kafka://broker:9092 acls.yaml --exit-code \\
    --command-config admin.properties
kustos diff - acls.yaml --super-users User:admin < deployed.txt
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
        help="The set that takes its place, likewise. With --at it may be left out: the same directory.",
        show_default=False,
    ),
]
Ats = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME",
        help="OLD as it was then: a directory's log offset or a UTC time. Given again: NEW likewise.",
    ),
]
ExitCodeFlag = Annotated[bool, exit_code_if("any decision changes")]


def diff(
    old: Old,
    new: New = None,
    at: Ats = None,
    form: Form = None,
    super_users: SuperUsers = "",
    allow_everyone_if_no_acl_found: AllowEveryone = False,
    exit_code: ExitCodeFlag = False,
    regions_max: RegionsMax = 1000,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Show which decisions change between two sets of ACLs.

    Compares what the sets mean, not how they are written: shows who gains or loses which operations, from
    where, on which names, exactly and for every name there could be. No change is shown if and only if
    both sets decide every question alike. With --at it shows what changed since then in a metadata
    directory, or between two moments.
    """
    from kustos.analysis import diff as difference_between
    from kustos.cli.acl_sources import STANDARD_INPUT, read_location, rules_of
    from kustos.cli.differences import print_difference
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.progress import progress

    old_at, new_at = _moments(at or [])
    if new is None:
        if not at:
            raise usage_error("name two sets, or a metadata directory and `--at`")
        new = old
    if old == new == STANDARD_INPUT:
        raise usage_error("only one of the two sets can come from standard input")
    rules = rules_of(super_users, allow_everyone_if_no_acl_found)
    before = read_location(old, form, command_config, old_at).bindings
    after = read_location(new, form, command_config, new_at).bindings
    with progress(f"comparing {len(before)} with {len(after)} ACLs"):
        found = difference_between(before, after, rules, regions_max=regions_max)
    print_difference(found, before, after, output)
    return ExitCode.NO if exit_code and not found.is_empty else ExitCode.OK


def _moments(at: list[str]) -> tuple[str | None, str | None]:
    from kustos.cli.failures import usage_error

    if len(at) > 2:
        raise usage_error("`--at` is for OLD, a second one for NEW; there is no third")
    old, new, *_ = *at, None, None
    return old, new
