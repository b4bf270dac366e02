"""`kustos what-can`."""

from typing import Annotated

import typer

from kustos.cli.acl_options import (
    AclsFile,
    AllowEveryone,
    At,
    Form,
    MetadataDirectory,
    NodeConfig,
    RegionsMax,
    SuperUsers,
)
from kustos.cli.options import CommandConfig, IgnoreTornTail, OptionalBootstrapServer, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos what-can User:alice --acls acls.yaml -c server.properties
kustos what-can 'User:*' --bootstrap-server broker:9092
kustos what-can User:alice --metadata-dir /var/lib/kafka/metadata -o json
kustos what-can User:alice --metadata-dir /var/lib/kafka/metadata --at 1234
"""

Principal = Annotated[
    str,
    typer.Argument(
        metavar="PRINCIPAL", help="As User:alice; `User:*` is all that neither ACLs nor super.users name."
    ),
]


def what_can(
    principal: Principal,
    acls: AclsFile = None,
    form: Form = None,
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    at: At = None,
    config: NodeConfig = None,
    super_users: SuperUsers = None,
    allow_everyone_if_no_acl_found: AllowEveryone = None,
    regions_max: RegionsMax = 1000,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List what a principal may do, on what, from where.

    Exact for all possible names. Includes the rights that ACLs grant to everyone, without those that are
    denied. The table leaves out operations that mean nothing on a type of resource.
    """
    from kustos.analysis import what_can as access_of
    from kustos.cli.access import print_regions
    from kustos.cli.acl_locations import AclSource
    from kustos.cli.broker_settings import SettingOptions, report_unknown
    from kustos.cli.terminal import progress

    source = AclSource(
        acls=acls,
        form=form,
        metadata_dir=metadata_dir,
        at=at,
        bootstrap_server=bootstrap_server,
        command_config=command_config,
        ignore_torn_tail=ignore_torn_tail,
        settings=SettingOptions(super_users, allow_everyone_if_no_acl_found, config),
    )
    loaded = source.load()
    bindings, rules = loaded.bindings, loaded.settings.rules()
    name = principal.strip()
    with progress(f"looking at {len(bindings)} ACLs"):
        regions = access_of(bindings, name, rules, regions_max=regions_max)
    report_unknown(output, loaded.settings)
    print_regions(name, regions, loaded.settings, output)
