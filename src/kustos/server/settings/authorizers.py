"""Finds the authorizer that `authorizer.class.name` names."""

from collections.abc import Callable
from functools import cache
from typing import Final

from kustos.authorizer import Authorizer
from kustos.authorizer.legacy import AuthorizerWrapper, LegacyAuthorizer, SimpleAclAuthorizer
from kustos.client import PluginKind
from kustos.server.settings.table.node import AUTHORIZER_CLASS, STANDARD_AUTHORIZER, STANDARD_AUTHORIZER_NAMES

AUTHORIZERS: Final = PluginKind(
    AUTHORIZER_CLASS.name, "kustos.authorizers", STANDARD_AUTHORIZER, (Authorizer, LegacyAuthorizer)
)

SIMPLE_ACL_AUTHORIZER: Final = "kafka.security.auth.SimpleAclAuthorizer"
"""Kafka's first authorizer, in its legacy form."""


def find_authorizer(name: str) -> Callable[[], Authorizer] | None:
    """Return the factory of the authorizer of this name, None for StandardAuthorizer; raise `SettingsError`.

    `name`: Kafka's class name, `package.module.Class`, `package.module:Class`, or an entry point. A class of
    the legacy interface is wrapped in the present one, as Kafka did (KIP-504).
    """
    if name in STANDARD_AUTHORIZER_NAMES:
        return None
    found = SimpleAclAuthorizer if name == SIMPLE_ACL_AUTHORIZER else AUTHORIZERS.find(name)
    if issubclass(found, LegacyAuthorizer):
        return _behind_wrapper(found)
    # the kind finds nothing but the two
    assert issubclass(found, Authorizer)
    return found


@cache
def _behind_wrapper(legacy: type[LegacyAuthorizer]) -> Callable[[], Authorizer]:
    return lambda: AuthorizerWrapper(legacy())
