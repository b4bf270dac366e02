"""The login modules of a listener's mechanisms, and which login modules may be used."""

from typing import Final

from kustos.auth import (
    ALLOWED_LOGIN_MODULES_CONFIG,
    DISALLOWED_LOGIN_MODULES,
    DISALLOWED_LOGIN_MODULES_CONFIG,
    JaasEntry,
    JaasError,
    LoginModulePolicy,
    single_jaas_entry,
)
from kustos.client import LOGIN_MODULES, SettingsError
from kustos.server.settings.properties import GivenSettings, keys_of
from kustos.settings import TEXT, Kind, Scope, Setting, TakesEffect

JAAS_CONFIG: Final[Setting[str]] = Setting(
    "sasl.jaas.config",
    TEXT,
    None,
    "SASL",
    "The login module of a mechanism; for `PLAIN` it holds the users, for `GSSAPI` it names the keytab. Set "
    "it for one mechanism, as `listener.name.<listener>.<mechanism>.sasl.jaas.config` or "
    "`<mechanism>.sasl.jaas.config`; without a mechanism kustos ignores it, as Kafka does. The SCRAM "
    "mechanisms and `OAUTHBEARER` need none here.",
    secret=True,
    scope=Scope.MECHANISM,
    takes_effect=TakesEffect.RELOAD_FOR_PLAIN,
)
_CLASSES: Final[Kind[tuple[str, ...]]] = Kind(
    "list",
    "classes, with commas between them",
    lambda text: tuple(name.strip() for name in text.split(",")),
)
DISALLOWED_MODULES: Final = Setting(
    DISALLOWED_LOGIN_MODULES_CONFIG,
    _CLASSES,
    tuple(sorted(DISALLOWED_LOGIN_MODULES)),
    "SASL",
    "Login modules that no `sasl.jaas.config` may name. In Kafka it is a property of the Java process.",
    since="0.2.0",
)
ALLOWED_MODULES: Final[Setting[tuple[str, ...]]] = Setting(
    ALLOWED_LOGIN_MODULES_CONFIG,
    _CLASSES,
    None,
    "SASL",
    f"The only login modules that a `sasl.jaas.config` may name; `{DISALLOWED_LOGIN_MODULES_CONFIG}` then "
    "has no effect. In Kafka it is a property of the Java process.",
    since="0.2.0",
)


def jaas_entries(
    given: GivenSettings, listener: str, mechanisms: tuple[str, ...], own: frozenset[str]
) -> dict[str, JaasEntry]:
    """Return the login module of each mechanism that has one; PLAIN requires one, unless it is in `own`."""
    found: dict[str, JaasEntry] = {}
    for mechanism in mechanisms:
        keys = list(keys_of(JAAS_CONFIG, listener, mechanism))
        # Kafka ignores a key without a mechanism, so no mechanism gets the users of another one
        key = next((key for key in keys if key in given.values and given.names_mechanism(key)), None)
        if key is None:
            if mechanism == "PLAIN" and mechanism not in own:
                raise SettingsError(
                    f"listener `{listener}` offers `PLAIN` but has no users: set `{keys[0]}` to "
                    f'`{LOGIN_MODULES[mechanism]} required user_<name>="<password>";`'
                )
            continue
        try:
            entry = single_jaas_entry(given.texts[key], login_module_policy(given))
        except JaasError as error:
            raise SettingsError(f"`{key}`: {error}") from None
        if entry.login_module != LOGIN_MODULES.get(mechanism, entry.login_module):
            raise SettingsError(
                f"`{key}` does not begin with the login module of `{mechanism}`, `{LOGIN_MODULES[mechanism]}`"
            )
        found[mechanism] = entry
    return found


def login_module_policy(given: GivenSettings) -> LoginModulePolicy:
    """Return the allowed login modules, for clients and upstream."""
    allowed, disallowed = given.get(ALLOWED_MODULES), given.require(DISALLOWED_MODULES)
    return LoginModulePolicy(
        allowed=None if allowed is None else frozenset(allowed),
        disallowed=frozenset(disallowed),
    )
