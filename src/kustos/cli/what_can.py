"""`kustos what-can`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import (
    AclsFile,
    AllowEveryone,
    At,
    Form,
    MetadataDirectory,
    RegionsMax,
    SuperUsers,
)
from kustos.cli.options import CommandConfig, OptionalBootstrapServer, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos what-can User:alice --acls acls.yaml
kustos what-can 'User:*' --bootstrap-server broker:9092
kustos what-can User:alice --metadata-dir /var/lib/kafka/metadata -o json
kustos what-can User:alice --metadata-dir /var/lib/kafka/metadata --at 1234
"""

Principal = Annotated[
    str,
    typer.Argument(metavar="PRINCIPAL", help="As User:alice; `User:*` asks about all whom nothing names."),
]


def what_can(
    principal: Principal,
    acls: AclsFile = None,
    form: Form = None,
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    at: At = None,
    super_users: SuperUsers = "",
    allow_everyone_if_no_acl_found: AllowEveryone = False,
    regions_max: RegionsMax = 1000,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List all that a principal may do, on what, from where.

    Exact, over all names there could be, with what ACLs for everyone grant and what is denied taken
    away. Operations that mean nothing on a type of resource are left out of the table.
    """
    from kustos.analysis import what_can as access_of
    from kustos.cli.access import print_regions
    from kustos.cli.acl_sources import AclSource, rules_of
    from kustos.cli.progress import progress

    rules = rules_of(super_users, allow_everyone_if_no_acl_found)
    source = AclSource(
        acls=acls,
        form=form,
        metadata_dir=metadata_dir,
        at=at,
        bootstrap_server=bootstrap_server,
        command_config=command_config,
    )
    bindings = source.load().bindings
    asked = principal.strip()
    with progress(f"looking at {len(bindings)} ACLs"):
        regions = access_of(bindings, asked, rules, regions_max=regions_max)
    print_regions(asked, regions, output)
