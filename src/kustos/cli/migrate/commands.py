"""`kustos migrate kafka` and `kustos migrate zookeeper`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.options import CommandConfig, DocumentOutput, IgnoreTornTail, OptionalBootstrapServer
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.migrate.plan import MigrationSource
    from kustos.metadata.image import MetadataImage

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

KAFKA_EXAMPLES = """
kustos migrate kafka old:9092 --source-config old.properties \\
    --snapshot 00000000000000012345-0000000007.checkpoint \\
    --metadata-dir /var/lib/kustos/metadata
kustos migrate kafka old:9092 --source-config old.properties --apply \\
    --bootstrap-server new:9092 --command-config new.properties
kustos migrate kafka --snapshot /var/lib/kafka/metadata --apply \\
    --metadata-dir /var/lib/kustos/metadata
"""

SourceServers = Annotated[
    str | None,
    typer.Argument(
        metavar="[HOST:PORT]",
        help="The cluster to migrate from; optional with --snapshot.",
        show_default=False,
    ),
]
SourceConfig = Annotated[
    Path | None,
    typer.Option(
        "--source-config",
        metavar="FILE",
        help="Client properties for that cluster, as --command-config has them for the target.",
    ),
]
Snapshot = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        help="The cluster's metadata: a .checkpoint or the directory. Only it has the keys of users.",
    ),
]


def kafka(
    source: SourceServers = None,
    source_config: SourceConfig = None,
    snapshot: Snapshot = None,
    metadata_dir: TargetDirectory = None,
    bootstrap_server: OptionalBootstrapServer = None,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
    apply: Apply = False,
    skip_refused: SkipRefused = False,
    replace_users: ReplaceUsers = False,
    acls_only: AclsOnly = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Migrate the ACLs, users and tokens of a Kafka.

    Shows a plan; --apply carries it out. Nothing is changed at the source, nothing is removed from
    the target, and a second run finds nothing to do.

    Exit code 5 means that something is not migrated: an item that the plan refuses, or a user that needs
    a new password, because no API returns the keys.
    """
    from kustos.cli.migrate.migration import Migration
    from kustos.cli.migrate.targets import TargetOptions

    migration = Migration(
        target=TargetOptions(metadata_dir, bootstrap_server, command_config, with_users=not acls_only),
        apply=apply,
        skip_refused=skip_refused,
        replace_users=replace_users,
    )
    image = _image(snapshot, ignore_torn_tail=ignore_torn_tail)
    return migration.run(_source(source, source_config, snapshot, image, acls_only=acls_only), output)


def _image(snapshot: Path | None, *, ignore_torn_tail: bool) -> "MetadataImage | None":
    from kustos.cli.migrate.kafka_source import read_snapshot

    return None if snapshot is None else read_snapshot(snapshot, ignore_torn_tail=ignore_torn_tail)


def _source(
    servers: str | None,
    config: Path | None,
    snapshot: Path | None,
    image: "MetadataImage | None",
    *,
    acls_only: bool,
) -> "MigrationSource":
    from kustos.cli.failures import usage_error
    from kustos.cli.migrate.kafka_source import read_facts, source_of, source_of_snapshot
    from kustos.cli.session import query_cluster

    if servers is None:
        if image is None:
            raise usage_error("say where from: the cluster as `host:port`, its `--snapshot`, or both")
        return source_of_snapshot(str(snapshot), image, acls_only=acls_only)
    facts = query_cluster(
        servers,
        config,
        lambda admin: read_facts(admin, acls_only=acls_only),
        "reading ACLs and users",
        "--source-config",
    )
    return source_of(f"the cluster at {servers}", facts, image if not acls_only else None)


ZOOKEEPER_EXAMPLES = """
kustos migrate zookeeper zk1:2181,zk2:2181/kafka \\
    --metadata-dir /var/lib/kustos/metadata
kustos migrate zookeeper zk1:2181 --zookeeper-config zk.properties \\
    --metadata-dir /var/lib/kustos/metadata --apply
kustos migrate zookeeper zk1:2181 --acls-only --apply \\
    --bootstrap-server broker:9092 --command-config admin.properties
"""


def zookeeper(
    connect: Connect,
    metadata_dir: TargetDirectory = None,
    bootstrap_server: OptionalBootstrapServer = None,
    command_config: CommandConfig = None,
    zookeeper_config: ZookeeperConfig = None,
    apply: Apply = False,
    skip_refused: SkipRefused = False,
    replace_users: ReplaceUsers = False,
    acls_only: AclsOnly = False,
    kip_11: KipEleven = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Migrate the ACLs and SCRAM users of a ZooKeeper.

    Shows a plan; --apply carries it out. Nothing is ever written to ZooKeeper, nothing is removed
    from the target, and a second run finds nothing to do.

    Exit code 5 says that something was found that is not taken over: refused by name, or a user who
    needs a new password.
    """
    from kustos.cli.migrate.migration import Migration
    from kustos.cli.migrate.targets import TargetOptions
    from kustos.cli.migrate.zookeeper_client import read_zookeeper
    from kustos.cli.migrate.zookeeper_settings import ZookeeperSettings
    from kustos.cli.migrate.zookeeper_tree import read_tree
    from kustos.cli.terminal import progress

    migration = Migration(
        target=TargetOptions(metadata_dir, bootstrap_server, command_config, with_users=not acls_only),
        apply=apply,
        skip_refused=skip_refused,
        replace_users=replace_users,
    )
    settings = ZookeeperSettings.of(connect, zookeeper_config)
    with progress(f"reading {settings.name}"):
        tree = read_zookeeper(settings, acls_only=acls_only)
        source = read_tree(settings.name, tree, with_kip_11=kip_11)
    return migration.run(source, output)
