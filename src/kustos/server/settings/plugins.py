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
from kustos.client import KAFKAS_LOGINS, LOGIN_MODULES, PluginKind, SettingsError
from kustos.legacy import AuthorizerWrapper, LegacyAuthorizer, SimpleAclAuthorizer
from kustos.server.settings.properties import (
    AUTHORIZER_CLASS_CONFIG,
    ENABLED_MECHANISMS_CONFIG,
    GivenSettings,
    listener_key,
)
from kustos.settings import ANY_TEXT, INT32_MAX, TEXT, Kind, Scope, Setting, whole_number

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
STANDARD_AUTHORIZER_NAMES: Final = frozenset({STANDARD_AUTHORIZER, "kafka.security.authorizer.AclAuthorizer"})
"""Also the name of its predecessor on ZooKeeper (KIP-504): same settings, ACLs and audit line."""

AUTHORIZER_CLASS: Final = Setting(
    AUTHORIZER_CLASS_CONFIG,
    ANY_TEXT,
    STANDARD_AUTHORIZER,
    "Authorization",
    "The authorizer: the name of Kafka's own class (or of its predecessor "
    "`kafka.security.authorizer.AclAuthorizer`, which means the same here; or of the first one, "
    "`kafka.security.auth.SimpleAclAuthorizer`), a Python class as `package.module.Class`, or the name of "
    "an entry point in the group `kustos.authorizers`. A class of your own gets every key of this file "
    "except the secrets of kustos. In Kafka an empty value switches authorization off; here that also "
    "needs `kustos.authorization.mode=off`, else the node does not start.",
    kafkas_classes=STANDARD_AUTHORIZER_NAMES | {""},
)

AUTHORIZERS: Final = PluginKind(
    AUTHORIZER_CLASS_CONFIG, "kustos.authorizers", STANDARD_AUTHORIZER, (Authorizer, LegacyAuthorizer)
)

SIMPLE_ACL_AUTHORIZER: Final = "kafka.security.auth.SimpleAclAuthorizer"
"""Kafka's first authorizer, with the legacy interface."""


def find_authorizer(name: str) -> Callable[[], Authorizer] | None:
    """Return the factory of the authorizer of this name, None for StandardAuthorizer; raise `SettingsError`.

    `name`: Kafka's class name, `package.module.Class`, `package.module:Class`, or an entry point. A class
    with the legacy interface is wrapped, as in Kafka (KIP-504).
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

HANDLERS_GROUP: Final = "kustos.sasl.callbacks"
MECHANISMS_GROUP: Final = "kustos.sasl.mechanisms"
"""The groups of entry points."""

SIGNED_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
UNSECURED_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)


def _read_login(text: str) -> str:
    if text not in KAFKAS_LOGINS:
        raise SettingsError(
            "a listener has no login of its own to replace, as it reads users and keytabs itself; name a "
            "class for the logins of clients in `sasl.server.callback.handler.class`"
        )
    return text


SERVER_CALLBACK_HANDLER_CLASS: Final[Setting[str]] = Setting(
    "sasl.server.callback.handler.class",
    TEXT,
    None,
    "SASL",
    "Who judges the credentials of a mechanism, given for it as "
    "`listener.name.<listener>.<mechanism>.sasl.server.callback.handler.class`: a Python class as "
    f"`package.module.Class`, or the name of an entry point in the group `{HANDLERS_GROUP}`. `OAUTHBEARER` "
    f"needs one: by Kafka's names `{SIGNED_HANDLER}` checks signatures, and `{UNSECURED_HANDLER}` believes "
    "every token, for tests.",
    scope=Scope.MECHANISM,
    kafkas_classes=(SIGNED_HANDLER, UNSECURED_HANDLER),
    since="0.2.0",
)
MECHANISM_CLASS: Final[Setting[str]] = Setting(
    "kustos.sasl.server.mechanism.class",
    TEXT,
    None,
    "SASL",
    "The Python class of a mechanism of your own in `sasl.enabled.mechanisms`, given for it as "
    "`listener.name.<listener>.<mechanism>.kustos.sasl.server.mechanism.class`. Without it the class is the "
    f"entry point with the name of the mechanism in the group `{MECHANISMS_GROUP}`.",
    scope=Scope.MECHANISM,
    kafkas_classes=(),
    since="0.2.0",
)
CALLBACK_TIMEOUT_MS: Final = Setting(
    "kustos.sasl.callback.timeout.ms",
    whole_number(1, INT32_MAX, "milliseconds"),
    5_000,
    "SASL",
    "How long a step of a callback handler or mechanism of your own may take; then the login is refused.",
    scope=Scope.MECHANISM,
    since="0.2.0",
)
LOGIN_CLASS: Final[Setting[str]] = Setting(
    "sasl.login.class",
    Kind("string", "the name of a login of Kafka's, or nothing", _read_login),
    None,
    "SASL",
    "In Kafka, the class of a listener's own login. kustos does not support it and accepts only Kafka's own.",
    scope=Scope.MECHANISM,
    since="0.2.0",
)

_KAFKAS: Final = "org.apache.kafka.common.security."
_PLAIN_HANDLER: Final = _KAFKAS + "plain.internals.PlainServerCallbackHandler"
_SCRAM_HANDLER: Final = _KAFKAS + "scram.internals.ScramServerCallbackHandler"


def _kind(standard: str, base: type) -> PluginKind:
    return PluginKind(SERVER_CALLBACK_HANDLER_CLASS.name, HANDLERS_GROUP, standard, (base,))


_HANDLERS: Final[Mapping[str, PluginKind]] = {
    "PLAIN": _kind(_PLAIN_HANDLER, PlainServerCallbackHandler),
    "SCRAM-SHA-256": _kind(_SCRAM_HANDLER, ScramServerCallbackHandler),
    "SCRAM-SHA-512": _kind(_SCRAM_HANDLER, ScramServerCallbackHandler),
    "OAUTHBEARER": _kind(SIGNED_HANDLER, OAuthBearerValidatorCallbackHandler),
}
_KNOWN: Final = "`, `".join(LOGIN_MODULES)
_BY_CLASS: Final = PluginKind(MECHANISM_CLASS.name, MECHANISMS_GROUP, _KNOWN, (SaslServerMechanism,))
_BY_NAME: Final = PluginKind(ENABLED_MECHANISMS_CONFIG, MECHANISMS_GROUP, _KNOWN, (SaslServerMechanism,))


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """The class that serves a mechanism on a listener, and the time limit of its steps."""

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
            if mechanism in LOGIN_MODULES
            else _mechanism_class(given, listener, mechanism)
        )
        if handler_class is not None:
            timeout_ms = given.require(CALLBACK_TIMEOUT_MS, listener, mechanism)
            found[mechanism] = CallbackSettings(handler_class, timeout_ms)
    return found


def _handler_class(given: GivenSettings, listener: str, mechanism: str) -> type | None:
    name = (given.get(SERVER_CALLBACK_HANDLER_CLASS, listener, mechanism) or "").strip()
    kind = _HANDLERS.get(mechanism)
    if not name or name == UNSECURED_HANDLER or (kind is not None and name == kind.standard):
        # Kafka's own; `oauth_settings` reads which of them
        return None
    key = listener_key(SERVER_CALLBACK_HANDLER_CLASS.name, listener, mechanism)
    if kind is None:
        raise SettingsError(f"`{key}` is `{name}`, but `{mechanism}` has no callback handler; leave it out")
    return replace(kind, setting=key).find(name)


def _mechanism_class(given: GivenSettings, listener: str, mechanism: str) -> type:
    if not _MECHANISM.fullmatch(mechanism):
        raise SettingsError(
            f"listener `{listener}` offers `{mechanism}`, which is not a name of a mechanism: use some of "
            f"`{_KNOWN}`, or up to 20 capitals, digits, `-` and `_`"
        )
    name = given.get(MECHANISM_CLASS, listener, mechanism)
    return _BY_NAME.find(mechanism) if name is None else _BY_CLASS.find(name.strip())
