"""The one table of settings, by theme: what is read, checked and documented comes from it."""

from kustos.server.settings.table.node import STANDARD_AUTHORIZER_NAMES

__all__ = [
    "STANDARD_AUTHORIZER_NAMES",
]
