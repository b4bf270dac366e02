"""What can go wrong when ACLs are applied to the index.

Each is a fault of the log or of its reader, never of a client: the node must not go on deciding from
an index that no longer follows the log.
"""

from kustos.authorizer.spi import AuthorizerError


class AclFaultError(AuthorizerError):
    """An ACL could not be applied; the index is as it was before."""


class DuplicateAclIdError(AclFaultError):
    """An ACL with this id is there already."""


class DuplicateAclError(AclFaultError):
    """The same ACL is there already under another id."""


class UnknownAclIdError(AclFaultError):
    """No ACL has the id to be removed."""


class InvalidAclError(AclFaultError):
    """An ACL that could never be matched the way its author meant."""
