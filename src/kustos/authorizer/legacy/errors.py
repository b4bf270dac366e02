"""What can be wrong in the legacy room."""

from kustos.acl import AclValueError
from kustos.authorizer.spi import AuthorizerError


class LegacyFormatError(AclValueError):
    """A text or JSON of the legacy kind that cannot be read; the message names the place and the value."""


class LegacyRefusalError(AclValueError):
    """An ACL that would mean something else, or nothing, on the other side; it is not converted."""


class LegacySettingsError(AuthorizerError):
    """A setting that the legacy authorizer cannot start with; the message names its key."""


class UnsupportedChangeError(AuthorizerError):
    """A change that a legacy authorizer cannot hold; nothing was changed."""
