"""The admin listener: requests about the node itself."""

from kustos.gateway.admin.apis import AdminApis, AdminNode
from kustos.gateway.admin.configs import ConfigBook, ConfigEntry, ConfigType
from kustos.gateway.admin.loggers import Loggers

__all__ = [
    "AdminApis",
    "AdminNode",
    "ConfigBook",
    "ConfigEntry",
    "ConfigType",
    "Loggers",
]
