"""Every setting as `DescribeConfigs` shows it, and which keys of the file a reload puts in force."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kustos.authorizer import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from kustos.gateway.admin import ConfigEntry, ConfigType
from kustos.server.settings.kinds import Setting, TakesEffect
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.table.node import ONLY_PER_LISTENER, SETTINGS

TYPES: Final = {
    "boolean": ConfigType.BOOLEAN,
    "int": ConfigType.INT,
    "long": ConfigType.LONG,
    "list": ConfigType.LIST,
}
"""By the name of a setting's kind; all others are strings."""

REFERENCE: Final = "${"
"""The file refers to values kept elsewhere because nobody should read them here."""


def config_entries(properties: Mapping[str, str], given: GivenSettings) -> tuple[ConfigEntry, ...]:
    """Return the settings of the table and the keys of the file, each once."""
    entries = {entry.name: entry for entry in _of_table()}
    for key, raw in properties.items():
        known = given.known_key(key)
        if known is None:
            # it may be a secret of another program
            entries[key] = ConfigEntry(key, value=raw)
            continue
        setting = known.setting
        is_sensitive = setting.secret or REFERENCE in raw
        default = entries[key].default if key in entries else None
        entries[key] = _entry(key, setting, default, given.texts.get(key), is_sensitive=is_sensitive)
    return tuple(entries[name] for name in sorted(entries))


def _of_table() -> Iterator[ConfigEntry]:
    for setting in SETTINGS:
        if setting not in ONLY_PER_LISTENER:
            yield _entry(setting.name, setting, _text(setting.default), None, is_sensitive=setting.secret)


def _entry(
    name: str, setting: Setting[Any], default: str | None, value: str | None, *, is_sensitive: bool
) -> ConfigEntry:
    kind = ConfigType.PASSWORD if setting.secret else TYPES.get(setting.kind.name, ConfigType.STRING)
    return ConfigEntry(name, kind, default, value, setting.doc, is_sensitive)


def _text(default: object) -> str | None:
    match default:
        case None:
            return None
        case bool():
            return str(default).lower()
        case tuple():
            return ",".join(map(str, default))
        case _:
            return str(default)


PLAIN = "PLAIN"
OF_THE_AUTHORIZER = frozenset({SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG})
"""Only the authorizer in use knows whether it takes new values of these."""


def reloadable_keys(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> frozenset[str]:
    """Return the keys that are set whose new values the node itself puts in force while it runs."""
    own_plain = {
        each.name.lower() for each in listeners if each.sasl is not None and PLAIN in each.sasl.callbacks
    }
    return frozenset(
        key for key in given.texts if key not in OF_THE_AUTHORIZER and _is_reloadable(given, key, own_plain)
    )


def _is_reloadable(given: GivenSettings, key: str, own_plain: set[str]) -> bool:
    """Return whether a reload puts a key in force; `own_plain`: listeners whose operator judges PLAIN."""
    known = given.known_key(key)
    if known is None:
        return False
    match known.setting.takes_effect:
        case TakesEffect.RELOAD:
            return True
        case TakesEffect.RELOAD_FOR_PLAIN:
            concerned = own_plain if known.listener is None else own_plain & {known.listener}
            return known.mechanism == PLAIN.lower() and not concerned
        case TakesEffect.RESTART:
            return False
