"""`kustos what-can`."""

from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import (
    MemberOf,
    PrincipalArgument,
    RegionsMax,
    groups_of,
    one_principal,
    with_acl_source,
)
from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos what-can --principal User:alice --acls acls.yaml \\
    -c server.properties
kustos what-can --principal 'User:*' --acls kafka://broker:9092
kustos what-can --principal User:alice -o json \\
    --acls /var/lib/kafka/metadata
kustos what-can --principal User:alice --acls /var/lib/kafka/metadata@1234
kustos what-can --principal User:alice --member-of Group:payments \\
    --acls acls.yaml
"""

Principal = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="TYPE:NAME",
        help="Such as User:alice; `User:*` is all that neither ACLs nor super.users name. [required]",
        show_default=False,
    ),
]


@with_acl_source(before="regions_max")
def what_can(
    source: "AclSource",
    principal: Principal = None,
    principal_argument: PrincipalArgument = None,
    member_of: MemberOf = None,
    regions_max: RegionsMax = 1000,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List what a principal may do, on what, from where.

    Exact for all possible names. Includes the rights that ACLs grant to everyone and to the groups of
    `--member-of`, without those that are denied. The table omits operations that have no meaning
    for a type of resource.
    """
    from kustos.analysis import what_can as access_of
    from kustos.cli.access import print_regions
    from kustos.cli.broker_settings import report_unknown
    from kustos.cli.terminal import progress

    loaded = source.load()
    bindings, rules = loaded.bindings, loaded.settings.rules()
    name = one_principal(principal, principal_argument)
    groups = groups_of(name, member_of)
    with progress(f"looking at {len(bindings)} ACLs"):
        regions = access_of(bindings, name, rules, groups=groups, regions_max=regions_max)
    report_unknown(output, loaded.settings)
    print_regions(name, regions, loaded.settings, output)
