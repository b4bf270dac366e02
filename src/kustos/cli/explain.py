"""`kustos explain`."""

from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import MemberOf, groups_of, with_acl_source
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
from kustos.cli.options import (
    DocumentOutput,
    exit_code_if,
)
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.acl import AclBindingFilter
    from kustos.analysis import ExplainScope
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos explain --acls kafka://broker:9092 \\
    --principal User:alice --operation Read --topic orders
kustos explain --acls acls.yaml --principal User:alice \\
    --operation Write --topic orders --exit-code
kustos explain --acls acls.yaml --principal User:alice --operation Read \\
    --topic pii- --resource-pattern-type prefixed
kustos explain --acls /var/lib/kustos/metadata \\
    --principal User:alice --host 10.0.0.7 --operation Write --topic orders
kustos explain --acls /var/lib/kustos/metadata@2026-11-03 \\
    --principal User:alice --operation Write --topic orders
kustos explain --acls acls.yaml --principal User:alice \\
    --member-of Group:payments --operation Read --topic orders
"""

Principal = Annotated[
    str,
    typer.Option(
        "--principal", metavar="TYPE:NAME", help="The principal of the request.", show_default=False
    ),
]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="ADDRESS", help="The address of the client. [all]", show_default=False),
]
Operation = Annotated[
    str,
    typer.Option("--operation", metavar="NAME", help="The operation: Read, Write, ...", show_default=False),
]
ExitCodeFlag = Annotated[bool, exit_code_if("the action is denied, if only in part")]


@with_acl_source(before="exit_code")
def explain(
    principal: Principal,
    operation: Operation,
    source: "AclSource",
    host: Host = None,
    member_of: MemberOf = None,
    topic: OneTopic = None,
    group: OneGroup = None,
    cluster: OneCluster = False,
    transactional_id: OneTransactionalId = None,
    delegation_token: OneDelegationToken = None,
    user_principal: OneUserPrincipal = None,
    resource_pattern_type: PatternTypeOption = NamePatternType.LITERAL,
    exit_code: ExitCodeFlag = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Show whether an action is allowed, from where, and why.

    Without `--host` the answer covers all possible hosts, such as "from 10.0.0.0/8, denied elsewhere";
    with a prefix, or `*`, all names. It is exact.

    Shows the deciding rules, every matching ACL, the overruled ones, and for a denial the smallest change
    that would allow it, with its commands. The command decides by the rules of Kafka's StandardAuthorizer,
    with the broker settings of the source.
    """
    from kustos.acl import KafkaPrincipal, PatternType, ResourcePattern
    from kustos.analysis import ExplainScope
    from kustos.cli.acls.arguments import parse_operation
    from kustos.cli.failures import ExitCode

    resource_type, name = the_resource(
        topic=topic,
        group=group,
        cluster=cluster,
        transactional_id=transactional_id,
        delegation_token=delegation_token,
        user_principal=user_principal,
    )
    who = str(KafkaPrincipal.parse(principal.strip()))
    kind = PatternType.LITERAL if cluster else PatternType.from_text(resource_pattern_type.value)
    pattern = ResourcePattern(resource_type, name, kind)
    client = None if host is None else java_host(host)
    groups = groups_of(who, member_of)
    scope = ExplainScope(who, parse_operation(operation), pattern, client, groups)
    is_allowed = _answer(scope, source, output)
    return ExitCode.NO if exit_code and not is_allowed else ExitCode.OK


def _answer(scope: "ExplainScope", source: "AclSource", output: OutputFormat) -> bool:
    """Print the explanation; return whether the whole scope is allowed."""
    from kustos.analysis import AnalysisError, explain_scope
    from kustos.cli.acls.commands import where_of
    from kustos.cli.broker_settings import report_unknown
    from kustos.cli.explanation import print_explanation, proposal_of
    from kustos.cli.failures import usage_error
    from kustos.cli.one_resource import note_likely_prefix

    loaded = source.load(_filter_of(scope))
    try:
        explanation = explain_scope(loaded.bindings, scope, loaded.settings.rules())
    except AnalysisError as error:
        raise usage_error(str(error)) from error
    report_unknown(output, loaded.settings)
    note_likely_prefix(scope.pattern, output)
    where = where_of(source.servers, source.command_config)
    print_explanation(explanation, proposal_of(explanation, where), loaded.settings, output)
    return explanation.is_allowed


def _filter_of(scope: "ExplainScope") -> "AclBindingFilter":
    """Return the filter for a cluster: it matches all ACLs that name something in the scope, perhaps more."""
    from kustos.acl import AclBindingFilter, PatternType, ResourcePatternFilter

    pattern = scope.pattern
    if not scope.is_one_name:
        return AclBindingFilter(ResourcePatternFilter(pattern.resource_type))
    return AclBindingFilter(ResourcePatternFilter(pattern.resource_type, pattern.name, PatternType.MATCH))


def java_host(text: str) -> str:
    """Return an address as Java's `getHostAddress()` writes it; raise a usage error for any other text."""
    from ipaddress import IPv6Address, ip_address

    from kustos.cli.failures import usage_error

    try:
        address = ip_address(text.strip())
    except ValueError:
        raise usage_error(
            f"`{text}` is not an IP address; ACLs know no host names, give an address"
        ) from None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    words = address.packed
    joined = ":".join(f"{words[at] << 8 | words[at + 1]:x}" for at in range(0, 16, 2))
    return f"{joined}%{address.scope_id}" if address.scope_id else joined
