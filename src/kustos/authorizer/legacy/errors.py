"""Errors of the legacy interface."""

from kustos.acl import AclValueError
from kustos.authorizer.spi.values import AuthorizerError


class LegacyFormatError(AclValueError):
    """A text or JSON of the legacy kind that cannot be read; the message names the place and the value."""


class LegacyRefusalError(AclValueError):
    """An ACL that would mean something else, or nothing, after conversion; it is not converted."""


class LegacySettingsError(AuthorizerError):
    """A setting that keeps the legacy authorizer from starting; the message names its key."""


class UnsupportedChangeError(AuthorizerError):
    """A change that a legacy authorizer cannot hold; nothing was changed."""
