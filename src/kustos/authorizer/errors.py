"""Errors of applying ACLs to the index.

Each is a fault of the log or of its reader, never of a client: the node must not decide by an index that no
longer follows the log.
"""

from kustos.authorizer.spi.values import AuthorizerError


class AclFaultError(AuthorizerError):
    """An ACL could not be applied; the index is unchanged."""


class DuplicateAclIdError(AclFaultError):
    """An ACL with this id exists already."""


class DuplicateAclError(AclFaultError):
    """The same ACL exists already under another id."""


class UnknownAclIdError(AclFaultError):
    """No ACL has the id to remove."""


class InvalidAclError(AclFaultError):
    """An ACL that could never match as its author meant."""
