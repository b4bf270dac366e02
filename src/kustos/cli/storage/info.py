"""`kustos storage info`."""

from typing import TYPE_CHECKING, Any

from kustos.cli.options import DocumentOutput, IgnoreTornTail
from kustos.cli.output import OutputFormat
from kustos.cli.storage.options import Config, Directory

if TYPE_CHECKING:
    from kustos.metadata.directory import DirectoryInfo

EXAMPLES = """
kustos storage info -c kustos.properties
kustos storage info -d /var/lib/kustos/metadata -o json
"""


def info(
    config: Config = None,
    directory: Directory = None,
    ignore_torn_tail: IgnoreTornTail = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Show the ids and the content of a metadata directory.

    Reads a directory of kustos or Kafka, and changes and locks nothing: for a running node it shows the state
    at some moment.
    """
    from kustos.cli.output import print_document, print_table
    from kustos.cli.storage.options import find_target
    from kustos.metadata.directory import describe_directory

    found = describe_directory(find_target(config, directory).directory)
    document = _document(found)
    if output.is_document:
        print_document(document, output)
    else:
        rows = [(name.replace("_", " "), _text(value)) for name, value in document.items()]
        print_table(("what", "value"), rows)
    if found.torn_tail is not None and not ignore_torn_tail:
        raise found.torn_tail.error()


def _document(found: "DirectoryInfo") -> dict[str, Any]:
    from kustos.metadata import metadata_version_name

    image, torn = found.image, found.torn_tail
    directory_id = found.properties.directory_id
    return {
        "directory": str(found.directory),
        "cluster_id": found.properties.cluster_id,
        "node_id": found.properties.node_id,
        "directory_id": str(directory_id) if directory_id is not None else None,
        "metadata_version": metadata_version_name(image.metadata_version),
        "last_offset": image.offset,
        "epoch": image.epoch,
        "acls": len(image.acls),
        "scram_users": len({name for name, _ in image.scram_credentials}),
        "delegation_tokens": len(image.delegation_tokens),
        "snapshot": found.snapshot_id.file_name if found.snapshot_id is not None else None,
        "segments": len(found.segment_base_offsets),
        "torn_tail_bytes": torn.torn_size_bytes if torn is not None else 0,
        "has_decoy_secret": found.has_decoy_secret,
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
