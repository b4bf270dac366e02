"""`kustos migrate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kustos.cli.failures import usage_error
from kustos.cli.options import CommandConfig, DocumentOutput, IgnoreTornTail
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.migrate.plan import MigrationSource

ZOOKEEPER: Final = "zookeeper://"

EXAMPLES = """
kustos migrate zookeeper://zk1:2181,zk2:2181/kafka /var/lib/kustos/metadata
kustos migrate zookeeper://zk1:2181 kafka://broker:9092 --apply \\
    --command-config admin.properties --acls-only
kustos migrate kafka://old:9092 /var/lib/kustos/metadata \\
    --source-config old.properties \\
    --snapshot 00000000000000012345-0000000007.checkpoint
kustos migrate kafka://old:9092 kafka://new:9092 --apply \\
    --source-config old.properties --command-config new.properties
kustos migrate /var/lib/kafka/metadata /var/lib/kustos/metadata --apply
"""

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="kafka://HOST:PORT[,...], zookeeper://HOST:PORT[,...][/CHROOT] as zookeeper.connect of the "
        "brokers, or the metadata of a Kafka: a directory or a .checkpoint.",
        show_default=False,
    ),
]
TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A directory that `kustos storage format` created and no node uses, or kafka://HOST:PORT[,...].",
        show_default=False,
    ),
]
SourceConfig = Annotated[
    Path | None,
    typer.Option(
        "--source-config",
        metavar="FILE",
        help="Properties of the source. kafka://: client properties. zookeeper://: "
        "kustos.zookeeper.sasl.jaas.config or kustos.zookeeper.digest to log in, zookeeper.ssl.* (PEM), "
        "zookeeper.connection.timeout.ms.",
    ),
]
Snapshot = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        help="The metadata of the kafka:// source, a .checkpoint or the directory: only it has the keys of "
        "users.",
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Apply the plan. Without it nothing is changed.")]
SkipRefused = Annotated[
    bool,
    typer.Option("--skip-refused", help="With --apply: leave out the refused items, and apply the rest."),
]
ReplaceUsers = Annotated[
    bool,
    typer.Option("--replace-users", help="Overwrite users whose password differs in the target directory."),
]
AclsOnly = Annotated[bool, typer.Option("--acls-only", help="Migrate no users, and do not read them.")]
KipEleven = Annotated[
    bool,
    typer.Option(
        "--kip-11",
        help="With zookeeper://: also read ACLs that only previews wrote, in /kafka-acls next to /kafka-acl "
        "and of types such as CONSUMER_GROUP. No release of Kafka reads them.",
    ),
]


def migrate(
    source: Source,
    target: TargetArgument,
    source_config: SourceConfig = None,
    snapshot: Snapshot = None,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
    apply: Apply = False,
    skip_refused: SkipRefused = False,
    replace_users: ReplaceUsers = False,
    acls_only: AclsOnly = False,
    kip_11: KipEleven = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Migrate ACLs, users and tokens to a directory or cluster.

    Shows a plan; --apply carries it out. Nothing is changed at the source, nothing is removed from the
    target, and a second run finds nothing to do.

    Exit code 5 means that something is not migrated: an item that the plan refuses, or a user that needs
    a new password because no API returns the keys.
    """
    from kustos.cli.migrate.migration import Migration
    from kustos.cli.migrate.targets import TargetPlace

    _check(source, source_config, snapshot, kip_11=kip_11)
    migration = Migration(
        target=TargetPlace.of(target, command_config, with_users=not acls_only),
        apply=apply,
        skip_refused=skip_refused,
        replace_users=replace_users,
    )
    if source.startswith(ZOOKEEPER):
        connect = source.removeprefix(ZOOKEEPER)
        found = _of_zookeeper(connect, source_config, acls_only=acls_only, with_kip_11=kip_11)
    else:
        found = _of_kafka(
            source, source_config, snapshot, acls_only=acls_only, ignore_torn_tail=ignore_torn_tail
        )
    return migration.run(found, output)


def _check(source: str, config: Path | None, snapshot: Path | None, *, kip_11: bool) -> None:
    """Raise a usage error for a source without meaning, and for options that it does not take."""
    from kustos.cli.migrate.targets import CLUSTER_SCHEME

    is_zookeeper, is_kafka = source.startswith(ZOOKEEPER), source.startswith(CLUSTER_SCHEME)
    if not (is_zookeeper or is_kafka) and not Path(source).exists():
        raise usage_error(
            f"`{source}` does not exist; use `{CLUSTER_SCHEME}HOST:PORT`, `{ZOOKEEPER}HOST:PORT`, or the "
            "metadata of a Kafka: a directory or a `.checkpoint`"
        )
    if snapshot is not None and not is_kafka:
        raise usage_error(f"`--snapshot` adds users to a source `{CLUSTER_SCHEME}HOST:PORT`, remove it")
    if config is not None and not (is_zookeeper or is_kafka):
        raise usage_error(f"`--source-config` does not apply to the file or directory `{source}`, remove it")
    if kip_11 and not is_zookeeper:
        raise usage_error(f"`--kip-11` applies to a source `{ZOOKEEPER}HOST:PORT`, remove it")


def _of_kafka(
    source: str, config: Path | None, snapshot: Path | None, *, acls_only: bool, ignore_torn_tail: bool
) -> "MigrationSource":
    from kustos.cli.migrate.kafka_source import read_facts, read_snapshot, source_of, source_of_snapshot
    from kustos.cli.migrate.targets import CLUSTER_SCHEME
    from kustos.cli.session import query_cluster

    if not source.startswith(CLUSTER_SCHEME):
        image = read_snapshot(Path(source), ignore_torn_tail=ignore_torn_tail)
        return source_of_snapshot(source, image, acls_only=acls_only)
    servers = source.removeprefix(CLUSTER_SCHEME)
    kept = None if snapshot is None else read_snapshot(snapshot, ignore_torn_tail=ignore_torn_tail)
    facts = query_cluster(
        servers,
        config,
        lambda admin: read_facts(admin, acls_only=acls_only),
        "reading ACLs and users",
        "--source-config",
    )
    return source_of(f"the cluster at {servers}", facts, None if acls_only else kept)


def _of_zookeeper(
    connect: str, config: Path | None, *, acls_only: bool, with_kip_11: bool
) -> "MigrationSource":
    from kustos.cli.migrate.zookeeper_client import read_zookeeper
    from kustos.cli.migrate.zookeeper_settings import ZookeeperSettings
    from kustos.cli.migrate.zookeeper_tree import read_tree
    from kustos.cli.terminal import progress

    settings = ZookeeperSettings.of(connect, config)
    with progress(f"reading {settings.name}"):
        tree = read_zookeeper(settings, acls_only=acls_only)
        return read_tree(settings.name, tree, with_kip_11=with_kip_11)
