"""`kustos pipeline reach`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.options import DocumentOutput, exit_code_if
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import DEFAULT_CONFIG, ClusterOption, Config, configured

if TYPE_CHECKING:
    from kustos.analysis import BlastRadius

EXAMPLES = """
kustos pipeline reach User:billing
kustos pipeline reach User:billing --acls new-acls.yaml --exit-code
kustos pipeline reach User:deployer --known users.txt --no-tokens
"""

Principal = Annotated[str, typer.Argument(metavar="TYPE:NAME", help="Whose credential is stolen.")]
Acls = Annotated[
    str | None,
    typer.Option(
        "--acls", metavar="ACLS", help="Other ACLs than the configuration's: a file, or git:REVISION:PATH."
    ),
]
Known = Annotated[
    Path | None,
    typer.Option("--known", metavar="FILE", help="Principals that exist, one a line, beside those in ACLs."),
]
NoTokens = Annotated[bool, typer.Option("--no-tokens", help="Delegation tokens are switched off.")]
ExitCodeFlag = Annotated[bool, exit_code_if("it reaches everything")]


def reach(
    principal: Principal,
    config: Config = DEFAULT_CONFIG,
    acls: Acls = None,
    known: Known = None,
    no_tokens: NoTokens = False,
    cluster: ClusterOption = None,
    exit_code: ExitCodeFlag = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Say what one compromised principal can reach.

    Shows exactly what the ACLs allow it, and what it can gain with these rights: ALTER on the cluster gives
    every right, delegation tokens give other identities. Needs no Spark and no tables.
    """
    from kustos.analysis import blast_radius
    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_document
    from kustos.cli.pipeline.inputs import acl_set, named_cluster, names_of, todays_acls
    from kustos.cli.terminal import progress

    configuration = configured(config)
    name = named_cluster(configuration, cluster)
    configuration = configuration.of_cluster(name)
    chosen = (
        todays_acls(configuration, config.absolute().parent)
        if acls is None
        else acl_set(acls, configuration.acls, Path.cwd())
    )
    with progress(f"following {principal}"):
        radius = blast_radius(
            chosen.bindings, principal, chosen.rules, known=names_of(known) or (), has_tokens=not no_tokens
        )
    if output.is_document:
        print_document({"cluster": name} | radius.to_json(), output)
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
