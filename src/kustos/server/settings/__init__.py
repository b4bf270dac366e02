"""A node's settings: their declarations, and the frozen values of a properties file."""

from kustos.server.settings.indirection import References
from kustos.server.settings.node_settings import load_settings
from kustos.server.settings.plugins import STANDARD_AUTHORIZER_NAMES

__all__ = [
    "STANDARD_AUTHORIZER_NAMES",
    "References",
    "load_settings",
]
