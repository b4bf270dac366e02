"""Every setting as `DescribeConfigs` shows it, and the keys of the file that a reload changes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kustos.gateway.admin import ConfigEntry, ConfigType
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.properties import GivenSettings
from kustos.settings import Scope, Setting, TakesEffect

TYPES: Final = {
    "boolean": ConfigType.BOOLEAN,
    "int": ConfigType.INT,
    "long": ConfigType.LONG,
    "list": ConfigType.LIST,
}
"""By the name of a setting's kind; all others are strings."""

REFERENCE: Final = "${"
"""A value that the file keeps elsewhere may be a secret."""


def config_entries(properties: Mapping[str, str], given: GivenSettings) -> tuple[ConfigEntry, ...]:
    """Return the declared settings and the keys of the file, each once."""
    entries = {entry.name: entry for entry in _of_table(given.table)}
    for key, raw in properties.items():
        known = given.known_key(key)
        if known is None:
            # the value may be a secret of another program
            entries[key] = ConfigEntry(key, value=raw)
            continue
        setting = known.setting
        is_sensitive = setting.secret or REFERENCE in raw
        default = entries[key].default if key in entries else None
        entries[key] = _entry(key, setting, default, given.texts.get(key), is_sensitive=is_sensitive)
    return tuple(entries[name] for name in sorted(entries))


def _of_table(table: Mapping[str, Setting[Any]]) -> Iterator[ConfigEntry]:
    for name, setting in table.items():
        if setting.scope is not Scope.ONLY_LISTENER:
            yield _entry(name, setting, setting.default_text, None, is_sensitive=setting.secret)


def _entry(
    name: str, setting: Setting[Any], default: str | None, value: str | None, *, is_sensitive: bool
) -> ConfigEntry:
    kind = ConfigType.PASSWORD if setting.secret else TYPES.get(setting.kind.name, ConfigType.STRING)
    return ConfigEntry(name, kind, default, value, setting.doc, is_sensitive)


PLAIN: Final = "PLAIN"


def reloadable_keys(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> frozenset[str]:
    """Return the keys of the file that the node itself changes while it runs."""
    own_plain = {
        each.name.lower() for each in listeners if each.sasl is not None and PLAIN in each.sasl.callbacks
    }
    return frozenset(key for key in given.texts if _is_reloadable(given, key, own_plain))


def _is_reloadable(given: GivenSettings, key: str, own_plain: set[str]) -> bool:
    """Return whether a reload changes a key; `own_plain`: listeners with a custom PLAIN handler."""
    known = given.known_key(key)
    if known is None:
        return False
    match known.setting.takes_effect:
        case TakesEffect.RELOAD:
            return True
        case TakesEffect.RELOAD_FOR_PLAIN:
            concerned = own_plain if known.listener is None else own_plain & {known.listener}
            return known.mechanism == PLAIN.lower() and not concerned
        case TakesEffect.RESTART | TakesEffect.AUTHORIZER:
            return False
