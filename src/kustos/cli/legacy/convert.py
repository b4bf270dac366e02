"""`kustos legacy convert`."""

from kustos.cli.legacy.options import AclFile, existing
from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos legacy convert acls.json > acls-of-today.json
kustos legacy convert acls.json -o yaml > acls-of-today.yaml
"""


def convert(file: AclFile, output: Output = OutputFormat.JSON) -> None:
    """Print a file's ACLs as today's, in JSON.

    `kustos storage format --acls` reads the output in JSON, YAML and CSV. If the meaning of an ACL would
    change, for example with a slash in its host, the command names the ACL and prints nothing.
    """
    from kustos.authorizer.legacy import FileAclStore, all_bindings_of
    from kustos.cli.acls.mapping import sorted_bindings
    from kustos.cli.acls.rendering import print_bindings

    bindings = sorted_bindings(all_bindings_of(FileAclStore(existing(file)).load()))
    print_bindings(bindings, output, empty="no ACL")
