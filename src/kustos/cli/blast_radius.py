"""`kustos blast-radius`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import PrincipalArgument, one_principal, with_acl_source
from kustos.cli.options import DocumentOutput, exit_code_if
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.analysis import BlastRadius
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos blast-radius --principal User:billing --acls acls.yaml \\
    -c server.properties
kustos blast-radius --principal User:billing \\
    --acls kafka://broker:9092 --exit-code
kustos blast-radius --principal User:deployer --acls acls.yaml \\
    --known users.txt
"""

Principal = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="TYPE:NAME",
        help="The principal whose credential is stolen. [required]",
        show_default=False,
    ),
]
Known = Annotated[
    Path | None,
    typer.Option("--known", metavar="FILE", help="Further principals that exist, one per line."),
]
NoTokens = Annotated[bool, typer.Option("--no-tokens", help="Delegation tokens are switched off.")]
ExitCodeFlag = Annotated[bool, exit_code_if("it reaches everything")]


@with_acl_source(before="known")
def blast_radius(
    source: "AclSource",
    principal: Principal = None,
    principal_argument: PrincipalArgument = None,
    known: Known = None,
    no_tokens: NoTokens = False,
    exit_code: ExitCodeFlag = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """List what the credential of one principal reaches.

    Shows exactly what the ACLs allow the principal, and what it can gain with these rights: ALTER on the
    cluster gives every right, delegation tokens give other identities.
    """
    from kustos.analysis import blast_radius as radius_of
    from kustos.cli.broker_settings import report_unknown
    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_document
    from kustos.cli.terminal import progress
    from kustos.cli.text_files import read_text

    names = () if known is None else (line.strip() for line in read_text(str(known)).splitlines())
    loaded = source.load()
    name, rules = one_principal(principal, principal_argument), loaded.settings.rules()
    with progress(f"following {name}"):
        radius = radius_of(loaded.bindings, name, rules, known=filter(None, names), has_tokens=not no_tokens)
    report_unknown(output, loaded.settings)
    if output.is_document:
        print_document({**radius.to_json(), "settings": loaded.settings.to_json()}, output)
    else:
        _print(radius)
    return ExitCode.NO if exit_code and radius.everything is not None else ExitCode.OK


def _print(radius: "BlastRadius") -> None:
    from kustos.cli.output import print_lines, print_paragraph

    if radius.everything is not None:
        print_lines(f"{radius.principal} reaches everything:")
        for step in radius.everything:
            print_paragraph(step.text(), indent="    ", first="  - ")
    for identity in radius.identities:
        print_lines("", f"as {identity.principal}:" if identity.path else f"{radius.principal} itself:")
        for step in identity.path:
            print_paragraph(step.text(), indent="    ", first="  by ")
        if not identity.regions:
            print_lines("  nothing that ACLs allow")
        for region in identity.regions:
            print_paragraph(region.text(), indent="    ", first="  ")
    if radius.conditional:
        print_lines("", "and, as the brokers are set up:")
        for step in radius.conditional:
            print_paragraph(step.text(), indent="    ", first="  - ")
