"""`kustos who-can`."""

from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import RegionsMax, with_acl_source
from kustos.cli.one_resource import (
    NamePatternType,
    OneCluster,
    OneDelegationToken,
    OneGroup,
    OneTopic,
    OneTransactionalId,
    OneUserPrincipal,
    PatternTypeOption,
    the_resource,
)
from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos who-can --acls acls.yaml --operation Write --topic payments
kustos who-can --acls kafka://broker:9092 --operation Read \\
    --topic pii- --resource-pattern-type prefixed
kustos who-can --acls /var/lib/kafka/metadata --operation Alter \\
    --cluster -o json
kustos who-can --acls /var/lib/kafka/metadata@2026-11-03T18:00 \\
    --operation Read --topic payments
"""


Operation = Annotated[
    str,
    typer.Option("--operation", metavar="NAME", help="The operation: Read, Write, ...", show_default=False),
]


@with_acl_source(before="regions_max")
def who_can(
    operation: Operation,
    source: "AclSource",
    topic: OneTopic = None,
    group: OneGroup = None,
    cluster: OneCluster = False,
    transactional_id: OneTransactionalId = None,
    delegation_token: OneDelegationToken = None,
    user_principal: OneUserPrincipal = None,
    resource_pattern_type: PatternTypeOption = NamePatternType.LITERAL,
    regions_max: RegionsMax = 1000,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List everyone who may do something, and from where.

    Exact: for a prefix it separates the principals that may do it on every possible name from those that
    may on some names, and shows these. `everyone except` covers all principals that neither ACLs nor
    super.users name, and those with the same rights.
    """
    from kustos.acl import PatternType, ResourcePattern
    from kustos.analysis import who_can as access_to
    from kustos.cli.access import print_access
    from kustos.cli.acls.arguments import parse_operation
    from kustos.cli.broker_settings import report_unknown
    from kustos.cli.one_resource import note_likely_prefix
    from kustos.cli.terminal import progress

    resource_type, name = the_resource(
        topic=topic,
        group=group,
        cluster=cluster,
        transactional_id=transactional_id,
        delegation_token=delegation_token,
        user_principal=user_principal,
    )
    pattern = ResourcePattern(resource_type, name, PatternType.from_text(resource_pattern_type.value))
    wanted = parse_operation(operation)
    loaded = source.load()
    bindings, rules = loaded.bindings, loaded.settings.rules()
    with progress(f"looking at {len(bindings)} ACLs"):
        access = access_to(bindings, wanted, pattern, rules, regions_max=regions_max)
    report_unknown(output, loaded.settings)
    note_likely_prefix(pattern, output)
    print_access(access, wanted, pattern, loaded.settings, output)
