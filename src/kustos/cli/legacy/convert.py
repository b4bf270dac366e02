"""`kustos legacy convert`."""

from kustos.cli.legacy.options import AclFile
from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos legacy convert acls.json > acls-of-today.json
kustos legacy convert acls.json -o yaml > acls-of-today.yaml
"""


def convert(file: AclFile, output: Output = OutputFormat.JSON) -> None:
    """Print a file's ACLs as today's, in JSON.

    `kustos storage format --acls` takes what it prints, in JSON, YAML and CSV. An ACL that would come to
    mean something else, such as one of a host with a slash, is refused by name, and then nothing is printed.
    """
    from kustos.authorizer.legacy import FileAclStore, all_bindings_of
    from kustos.cli.acls.mapping import sorted_bindings
    from kustos.cli.acls.rendering import print_bindings
    from kustos.cli.legacy.files import existing

    bindings = sorted_bindings(all_bindings_of(FileAclStore(existing(file)).load()))
    print_bindings(bindings, output, empty="no ACL")
