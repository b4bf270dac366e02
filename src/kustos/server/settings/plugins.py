"""The classes that settings name: the authorizer, and a listener's own mechanisms and callback handlers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from kustos.auth import (
    AuthenticateCallbackHandler,
    OAuthBearerValidatorCallbackHandler,
    PlainServerCallbackHandler,
    SaslServerMechanism,
    ScramServerCallbackHandler,
)
from kustos.authorizer import Authorizer
from kustos.client import PluginKind, SettingsError
from kustos.legacy import AuthorizerWrapper, LegacyAuthorizer, SimpleAclAuthorizer
from kustos.server.settings.properties import GivenSettings, keys_of
from kustos.server.settings.table import callbacks as table
from kustos.server.settings.table.node import (
    AUTHORIZER_CLASS,
    ENABLED_MECHANISMS,
    MECHANISMS,
    STANDARD_AUTHORIZER,
    STANDARD_AUTHORIZER_NAMES,
)
from kustos.server.settings.table.oauth import SIGNED_HANDLER, UNSECURED_HANDLER

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


_MECHANISM: Final = re.compile(r"[A-Z0-9_-]{1,20}")
"""RFC 4422, section 3.1."""

_KAFKAS: Final = "org.apache.kafka.common.security."
_PLAIN_HANDLER: Final = _KAFKAS + "plain.internals.PlainServerCallbackHandler"
_SCRAM_HANDLER: Final = _KAFKAS + "scram.internals.ScramServerCallbackHandler"


def _kind(standard: str, base: type) -> PluginKind:
    return PluginKind(table.SERVER_CALLBACK_HANDLER_CLASS.name, table.HANDLERS_GROUP, standard, (base,))


_HANDLERS: Final[Mapping[str, PluginKind]] = {
    "PLAIN": _kind(_PLAIN_HANDLER, PlainServerCallbackHandler),
    "SCRAM-SHA-256": _kind(_SCRAM_HANDLER, ScramServerCallbackHandler),
    "SCRAM-SHA-512": _kind(_SCRAM_HANDLER, ScramServerCallbackHandler),
    "OAUTHBEARER": _kind(SIGNED_HANDLER, OAuthBearerValidatorCallbackHandler),
}
_KNOWN: Final = "`, `".join(MECHANISMS)
_BY_CLASS: Final = PluginKind(
    table.MECHANISM_CLASS.name, table.MECHANISMS_GROUP, _KNOWN, (SaslServerMechanism,)
)
_BY_NAME: Final = PluginKind(ENABLED_MECHANISMS.name, table.MECHANISMS_GROUP, _KNOWN, (SaslServerMechanism,))


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """The class that serves a mechanism on a listener, and how long each of its steps may take."""

    handler_class: type[AuthenticateCallbackHandler]
    timeout_ms: int


def callback_settings(
    given: GivenSettings, listener: str, mechanisms: tuple[str, ...]
) -> dict[str, CallbackSettings]:
    """Return the classes of these mechanisms that have one; raise `SettingsError`."""
    found: dict[str, CallbackSettings] = {}
    for mechanism in mechanisms:
        handler_class = (
            _handler_class(given, listener, mechanism)
            if mechanism in MECHANISMS
            else _mechanism_class(given, listener, mechanism)
        )
        if handler_class is not None:
            timeout_ms = given.require(table.CALLBACK_TIMEOUT_MS, listener, mechanism)
            found[mechanism] = CallbackSettings(handler_class, timeout_ms)
    return found


def _handler_class(given: GivenSettings, listener: str, mechanism: str) -> type | None:
    name = (given.get(table.SERVER_CALLBACK_HANDLER_CLASS, listener, mechanism) or "").strip()
    kind = _HANDLERS.get(mechanism)
    if not name or name == UNSECURED_HANDLER or (kind is not None and name == kind.standard):
        # Kafka's own; `oauth_settings` reads which of them
        return None
    key = next(iter(keys_of(table.SERVER_CALLBACK_HANDLER_CLASS, listener, mechanism)))
    if kind is None:
        raise SettingsError(f"`{key}` is `{name}`, but `{mechanism}` has no callback handler; leave it out")
    return replace(kind, setting=key).find(name)


def _mechanism_class(given: GivenSettings, listener: str, mechanism: str) -> type:
    if not _MECHANISM.fullmatch(mechanism):
        raise SettingsError(
            f"listener `{listener}` offers `{mechanism}`, which is not a name of a mechanism: use some of "
            f"`{_KNOWN}`, or up to 20 capitals, digits, `-` and `_`"
        )
    name = given.get(table.MECHANISM_CLASS, listener, mechanism)
    return _BY_NAME.find(mechanism) if name is None else _BY_CLASS.find(name.strip())
