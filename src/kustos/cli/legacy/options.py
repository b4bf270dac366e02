"""The options of `kustos legacy`, with the names from the two drafts of KIP-11."""

from pathlib import Path
from typing import Annotated

import typer

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
    typer.Option("--denyprincipals", metavar="P,Q", help="Whose Deny it is about."),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option("--denyhosts", metavar="H,I", help="From where. [all]"),
]
