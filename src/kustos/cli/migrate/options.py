"""The options of migrations: the target, and what to migrate."""

from pathlib import Path
from typing import Annotated

import typer

TargetDirectory = Annotated[
    Path | None,
    typer.Option(
        "--metadata-dir",
        metavar="DIR",
        help="The target directory: created by `kustos storage format`, and not open in a node.",
        show_default=False,
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Apply the plan. Without it nothing is changed.")]
SkipRefused = Annotated[
    bool,
    typer.Option("--skip-refused", help="With --apply: leave out the refused items, and apply the rest."),
]
ReplaceUsers = Annotated[
    bool,
    typer.Option("--replace-users", help="Overwrite users whose password differs in the directory."),
]
AclsOnly = Annotated[bool, typer.Option("--acls-only", help="Migrate no users, and do not read them.")]
ZookeeperConfig = Annotated[
    Path | None,
    typer.Option(
        "--zookeeper-config",
        metavar="FILE",
        help="Properties: kustos.zookeeper.sasl.jaas.config or kustos.zookeeper.digest to log in, "
        "zookeeper.ssl.* (PEM), zookeeper.connection.timeout.ms.",
    ),
]
Connect = Annotated[
    str,
    typer.Argument(
        metavar="CONNECT",
        help="As zookeeper.connect of the brokers: HOST:PORT[,HOST:PORT][/CHROOT].",
        show_default=False,
    ),
]
KipEleven = Annotated[
    bool,
    typer.Option(
        "--kip-11",
        help="Take what only previews wrote too: /kafka-acls beside /kafka-acl, and types such as "
        "CONSUMER_GROUP. No release reads them.",
    ),
]
