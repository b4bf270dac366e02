"""A node's settings: their table, and how a properties file becomes typed, frozen values."""

from kustos.server.settings.indirection import References
from kustos.server.settings.node_settings import load_settings

__all__ = [
    "References",
    "load_settings",
]
