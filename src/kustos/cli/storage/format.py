"""`kustos storage format`."""

from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import with_acl_source
from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.storage.options import Config, Directory

if TYPE_CHECKING:
    from kustos.acl import AclBinding
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos storage format -t 4L6g3nShT-eMCtK--X86sw -c kustos.properties \\
    --add-scram 'SCRAM-SHA-256=[name=admin,password-file=admin.password]'
kustos storage format -t random -d /var/lib/kustos/metadata \\
    --feature metadata.version=4.4-IV2 --acls acls.jsonl
"""

ClusterId = Annotated[
    str,
    typer.Option("--cluster-id", "-t", metavar="ID", help="22 characters, or `random`.", show_default=False),
]
AddScram = Annotated[
    list[str] | None,
    typer.Option(
        "--add-scram",
        "-S",
        metavar="USER",
        help="A SCRAM user in Kafka's syntax, `SCRAM-SHA-256=[name=alice,iterations=8192]`. The password "
        "comes from a prompt, `password-file=` or `password-env=`; `password=` is refused, because every "
        "process of the machine could read it. `salt=` gives a salt in Base64 instead of a random one.",
    ),
]
Feature = Annotated[
    list[str] | None,
    typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="Only metadata.version: 4.4-IV2, or 33."),
]
ReleaseVersion = Annotated[
    str | None,
    typer.Option("--release-version", "-r", metavar="VERSION", help="Short for the feature: 4.3, 4.4-IV2."),
]
NodeId = Annotated[
    int | None,
    typer.Option(
        "--node-id", metavar="N", min=0, max=2**31 - 1, help="The node's id. [node.id of the file, else 1]"
    ),
]
IgnoreFormatted = Annotated[
    bool, typer.Option("--ignore-formatted", "-g", help="Leave a formatted directory as it is.")
]


@with_acl_source(before="feature", decides=False)
def format_storage(
    cluster_id: ClusterId,
    source: "AclSource",
    config: Config = None,
    directory: Directory = None,
    add_scram: AddScram = None,
    feature: Feature = None,
    release_version: ReleaseVersion = None,
    node_id: NodeId = None,
    ignore_formatted: IgnoreFormatted = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Create a metadata directory with its first users and ACLs.

    Overwrites nothing. Kafka's own tools read the directory.
    """
    from kustos.cli.failures import usage_error
    from kustos.cli.output import print_document, print_lines
    from kustos.cli.storage.bootstrap import metadata_level, scram_users
    from kustos.cli.storage.options import find_target
    from kustos.metadata import metadata_version_name
    from kustos.metadata.directory import format_directory
    from kustos.metadata.log import META_PROPERTIES
    from kustos.wire import uuid_of_text

    if cluster_id != "random":
        try:
            uuid_of_text(cluster_id)
        except ValueError as error:
            raise usage_error(f"`--cluster-id`: {error}, or give `random`") from error
    target = find_target(config, directory)
    if ignore_formatted and (target.directory / META_PROPERTIES).exists():
        if output.is_document:
            print_document({"directory": str(target.directory), "formatted": False}, output)
        else:
            print_lines(f"{target.directory} is formatted already and stays as it is")
        return
    level = metadata_level(feature or (), release_version)
    chosen = node_id if node_id is not None else target.node_id
    properties = format_directory(
        target.directory,
        cluster_id=None if cluster_id == "random" else cluster_id,
        node_id=1 if chosen is None else chosen,
        metadata_version=level,
        acls=_fitting(source.load().bindings, level) if source.text is not None else (),
        scram_users=scram_users(add_scram or ()),
    )
    if output.is_document:
        print_document(
            {
                "directory": str(target.directory),
                "formatted": True,
                "cluster_id": properties.cluster_id,
                "node_id": properties.node_id,
                "metadata_version": metadata_version_name(level),
            },
            output,
        )
    else:
        print_lines(
            f"formatted {target.directory}",
            f"cluster id {properties.cluster_id}, node id {properties.node_id}, "
            f"metadata.version {metadata_version_name(level)}",
        )


def _fitting(bindings: "list[AclBinding]", level: int) -> "list[AclBinding]":
    """Return the ACLs; raise a usage error for an address range if the level does not support ranges."""
    from kustos.acl import WILDCARD
    from kustos.cli.failures import usage_error
    from kustos.metadata import CIDR_ACL_LEVEL, LATEST_LEVEL, metadata_version_name

    hosts = {binding.entry.host for binding in bindings} - {WILDCARD}
    wide = min((host for host in hosts if "/" in host), default=None)
    if wide is not None and level < CIDR_ACL_LEVEL:
        raise usage_error(
            f"an ACL has the host `{wide}`: ranges of addresses need metadata.version "
            f"{metadata_version_name(CIDR_ACL_LEVEL)}, give `--release-version "
            f"{metadata_version_name(LATEST_LEVEL)}`"
        )
    return bindings
