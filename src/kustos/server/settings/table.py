"""The table of settings: every declaration, collected from the groups and the modules that have them."""

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from kustos.auth import MAX_REAUTH_MS, SaslServerSettings
from kustos.auth.jwt import TokenClaimRules
from kustos.client.oauth import JwksSettings
from kustos.gateway.audit import AuditSettings
from kustos.gateway.listener import ConnectionSettings, FailedLoginLimits, GatewayLimits
from kustos.gateway.upstream import RevocationSettings
from kustos.metadata.control import TokenRules
from kustos.metadata.log import LogPolicy
from kustos.server.settings import (
    audit,
    clients,
    jaas,
    listeners,
    node,
    oauth,
    plugins,
    principals,
    quorum,
    tls,
)
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.principals import PrincipalSettings
from kustos.server.settings.quorum import QuorumSettings
from kustos.server.settings.workers import WorkerSettings
from kustos.settings import Setting, settings_of

MODULES: Final = (listeners, jaas, plugins, node, tls, principals, clients, oauth, audit, quorum)
GROUPS: Final = (
    KustosSettings,
    ConnectionSettings,
    GatewayLimits,
    FailedLoginLimits,
    SaslServerSettings,
    PrincipalSettings,
    TokenRules,
    JwksSettings,
    TokenClaimRules,
    RevocationSettings,
    AuditSettings,
    LogPolicy,
    QuorumSettings,
    WorkerSettings,
)


def _declared_in(module: ModuleType) -> Iterator[Setting[Any]]:
    """Yield the declarations among the names that a module itself defines, alone or in tuples."""
    for name in module.__annotations__:
        value = vars(module)[name]
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Setting):
                yield each


SETTINGS: Final[tuple[Setting[Any], ...]] = tuple(
    dict.fromkeys(
        [
            *(each for module in MODULES for each in _declared_in(module)),
            MAX_REAUTH_MS,
            *(each for group in GROUPS for each in settings_of(group).values()),
        ]
    )
)
BY_NAME: Final[Mapping[str, Setting[Any]]] = {setting.name: setting for setting in SETTINGS}
