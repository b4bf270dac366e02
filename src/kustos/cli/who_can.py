"""`kustos who-can`."""

from enum import StrEnum
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
from kustos.cli.one_resource import (
    OneCluster,
    OneDelegationToken,
    OneGroup,
    OneTopic,
    OneTransactionalId,
    OneUserPrincipal,
    the_resource,
)
from kustos.cli.options import CommandConfig, OptionalBootstrapServer, Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos who-can --acls acls.yaml --operation Write --topic payments
kustos who-can --bootstrap-server broker:9092 --operation Read \\
    --topic pii- --resource-pattern-type prefixed
kustos who-can --metadata-dir /var/lib/kafka/metadata --operation Alter \\
    --cluster -o json
kustos who-can --metadata-dir /var/lib/kafka/metadata \\
    --at 2026-11-03T18:00 --operation Read --topic payments
"""


class NamePatternType(StrEnum):
    """`--resource-pattern-type` of a question: one name, or all that begin so."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


Operation = Annotated[
    str, typer.Option("--operation", metavar="NAME", help="What: Read, Write, ...", show_default=False)
]
PatternTypeOption = Annotated[
    NamePatternType,
    typer.Option(
        "--resource-pattern-type",
        help="Whether the name is one name (`*`: every name) or the beginning of names.",
    ),
]


def who_can(
    operation: Operation,
    topic: OneTopic = None,
    group: OneGroup = None,
    cluster: OneCluster = False,
    transactional_id: OneTransactionalId = None,
    delegation_token: OneDelegationToken = None,
    user_principal: OneUserPrincipal = None,
    resource_pattern_type: PatternTypeOption = NamePatternType.LITERAL,
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
    """List everyone who may do something, and from where.

    Exact: with a prefix it tells apart who may do it on every name there could be under it and who on
    some names, and which. `everyone except` are all principals that no ACL names, and those named alike.
    """
    from kustos.acl import PatternType, ResourcePattern
    from kustos.analysis import who_can as access_to
    from kustos.cli.access import print_access
    from kustos.cli.acl_sources import AclSource, rules_of
    from kustos.cli.acls.mapping import parse_operation
    from kustos.cli.progress import progress

    resource_type, name = the_resource(
        topic=topic,
        group=group,
        cluster=cluster,
        transactional_id=transactional_id,
        delegation_token=delegation_token,
        user_principal=user_principal,
    )
    pattern = ResourcePattern(resource_type, name, PatternType.from_text(resource_pattern_type.value))
    asked = parse_operation(operation)
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
    with progress(f"looking at {len(bindings)} ACLs"):
        access = access_to(bindings, asked, pattern, rules, regions_max=regions_max)
    print_access(access, asked, pattern, output)
