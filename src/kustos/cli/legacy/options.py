"""The options of `kustos legacy`, with the names from the two drafts of KIP-11."""

from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.failures import usage_error

AclFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="JSON by ZooKeeper's paths, as `kustos.legacy.acl.file` names it.",
        show_default=False,
    ),
]
Operations = Annotated[
    list[str] | None,
    typer.Option("--operations", "--action", metavar="A,B", help="READ, WRITE, EDIT, DESCRIBE, ... [ALL]"),
]
Producer = Annotated[
    bool, typer.Option("--producer", help="WRITE and DESCRIBE on the topics, CREATE on the cluster.")
]
Consumer = Annotated[
    bool, typer.Option("--consumer", help="READ and DESCRIBE on the topics, READ on the groups.")
]
DenyPrincipals = Annotated[
    list[str] | None,
    typer.Option("--denyprincipals", metavar="P,Q", help="The principals of the Deny."),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option("--denyhosts", metavar="H,I", help="The hosts of the Deny. [all]"),
]


def existing(file: Path) -> Path:
    """Return the path; raise a usage error if it does not exist: a wrong name is no empty set of ACLs."""
    if not file.exists():
        raise usage_error(f"there is no file `{file}`; `kustos legacy grant` creates one")
    return file
