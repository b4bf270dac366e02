"""`kustos migrate zookeeper`."""

from kustos.cli.migrate.options import (
    AclsOnly,
    Apply,
    Connect,
    KipEleven,
    ReplaceUsers,
    SkipRefused,
    TargetDirectory,
    ZookeeperConfig,
)
from kustos.cli.options import CommandConfig, DocumentOutput, OptionalBootstrapServer
from kustos.cli.output import OutputFormat

EXAMPLES = """
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
    from kustos.cli.migrate.zookeeper_reading import read_zookeeper
    from kustos.cli.migrate.zookeeper_settings import ZookeeperSettings
    from kustos.cli.migrate.zookeeper_tree import read_tree
    from kustos.cli.progress import progress

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
