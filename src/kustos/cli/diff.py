"""`kustos diff`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import AllowEveryone, Form, RegionsMax, SuperUsers
from kustos.cli.options import CommandConfig, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos diff main/acls.yaml acls.yaml
kustos diff kafka://broker:9092 acls.yaml --exit-code \\
    --command-config admin.properties
kustos diff - acls.yaml --super-users User:admin < deployed.txt
"""

Old = Annotated[
    str,
    typer.Argument(
        metavar="OLD", help="A file in any form, `-`, a metadata directory, or kafka://HOST:PORT."
    ),
]
New = Annotated[str, typer.Argument(metavar="NEW", help="The set that takes its place, likewise.")]
ExitCodeFlag = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 5 if any decision changes, for scripts.")
]


def diff(
    old: Old,
    new: New,
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
    both sets decide every question alike.
    """
    from kustos.analysis import diff as difference_between
    from kustos.cli.acl_sources import STANDARD_INPUT, read_location, rules_of
    from kustos.cli.differences import print_difference
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.progress import progress

    if old == new == STANDARD_INPUT:
        raise usage_error("only one of the two sets can come from standard input")
    rules = rules_of(super_users, allow_everyone_if_no_acl_found)
    before = read_location(old, form, command_config).bindings
    after = read_location(new, form, command_config).bindings
    with progress(f"comparing {len(before)} with {len(after)} ACLs"):
        found = difference_between(before, after, rules, regions_max=regions_max)
    print_difference(found, before, after, output)
    return ExitCode.NO if exit_code and not found.is_empty else ExitCode.OK
