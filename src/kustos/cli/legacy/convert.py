"""`kustos legacy convert`."""

from kustos.cli.legacy.options import AclFile

EXAMPLES = """
kustos legacy convert acls.json > acls-of-today.json
"""


def convert(file: AclFile) -> None:
    """Print a file's ACLs as today's, in JSON.

    `kustos storage format --acls` takes what it prints. An ACL that would come to mean something
    else, such as one of a host with a slash, is refused by name, and then nothing is printed.
    """
    from kustos.acl.forms import texts_of
    from kustos.authorizer.legacy import FileAclStore, all_bindings_of
    from kustos.cli.acls.mapping import sorted_bindings
    from kustos.cli.legacy.files import existing
    from kustos.cli.output import print_json

    bindings = sorted_bindings(all_bindings_of(FileAclStore(existing(file)).load()))
    print_json({"acls": [texts_of(binding) for binding in bindings]})
