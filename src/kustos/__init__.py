"""kustos: the security plane of Apache Kafka.

This module exports the names that a program needs for authorization decisions. Each is imported from its
package on first use, so nothing unused is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kustos.acl import (
        AccessControlEntry,
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        KafkaPrincipal,
        PatternType,
        ResourcePattern,
        ResourceType,
    )
    from kustos.authorizer import (
        AclBindingDeleteResult,
        AclCreateResult,
        AclDeleteResult,
        Action,
        AuthorizableRequestContext,
        AuthorizationResult,
        Authorizer,
        AuthorizerError,
        AuthorizerServerInfo,
        AuthorizerSession,
        Decision,
        Endpoint,
        KafkaApiError,
        StandardAuthorizer,
        StandardAuthorizerPlugin,
    )

__version__ = "0.2.0"

_PACKAGES: Final = ("kustos.acl", "kustos.authorizer")

__all__ = [
    "AccessControlEntry",
    "AclBinding",
    "AclBindingDeleteResult",
    "AclBindingFilter",
    "AclCreateResult",
    "AclDeleteResult",
    "AclOperation",
    "AclPermissionType",
    "Action",
    "AuthorizableRequestContext",
    "AuthorizationResult",
    "Authorizer",
    "AuthorizerError",
    "AuthorizerServerInfo",
    "AuthorizerSession",
    "Decision",
    "Endpoint",
    "KafkaApiError",
    "KafkaPrincipal",
    "PatternType",
    "ResourcePattern",
    "ResourceType",
    "StandardAuthorizer",
    "StandardAuthorizerPlugin",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Return a public name of one of the packages (PEP 562)."""
    if name in __all__:
        for package in map(import_module, _PACKAGES):
            if name in package.__all__:
                return getattr(package, name)
    raise AttributeError(f"module `kustos` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted(__all__)
