"""`kustos legacy list`."""

from kustos.cli.legacy.options import AclFile, existing
from kustos.cli.options import Cluster, Group, Output, Topic
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos legacy list acls.json
kustos legacy list acls.json --topic orders -o json
"""


def list_acls(
    file: AclFile,
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the ACLs of a file, all or those of some resources.

    A table shows them with sets, as KIP-11 does; JSON is the file's own form, as Kafka 0.9 to 3.9
    kept it in ZooKeeper.
    """
    from kustos.authorizer.legacy import FileAclStore
    from kustos.cli.legacy.arguments import LegacyArguments, of_resources
    from kustos.cli.legacy.rendering import print_acls

    named = LegacyArguments(topics=topic or (), groups=group or (), cluster=cluster).resources()
    print_acls(of_resources(FileAclStore(existing(file)).load(), named), output, empty="no ACL")
