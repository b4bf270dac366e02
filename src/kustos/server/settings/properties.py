"""The keys of a properties file, checked and parsed by the table of settings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from kustos.client import IN_QUOTES, SettingsError, is_quoted, kafkas_key
from kustos.runtime import did_you_mean
from kustos.server.settings.indirection import References
from kustos.server.settings.kinds import Setting
from kustos.server.settings.table.callbacks import MECHANISM_CLASS, SERVER_CALLBACK_HANDLER_CLASS
from kustos.server.settings.table.node import (
    AUTHORIZER_CLASS,
    BROKER_PORT_START,
    BY_NAME,
    ENABLED_MECHANISMS,
    GATEWAY_BROKER_PORT_START,
    MECHANISMS,
    ONLY_PER_LISTENER,
    SETTINGS,
    STANDARD_AUTHORIZER_NAMES,
)
from kustos.server.settings.table.oauth import SIGNED_HANDLER, UNSECURED_HANDLER
from kustos.server.settings.table.principals import DEFAULT_PRINCIPAL_BUILDER, PRINCIPAL_BUILDER_CLASS

T = TypeVar("T")
LISTENER_PREFIX: Final = "listener.name."
IGNORED: Final = "ignored"
HANDED_ON: Final = "handed to the authorizer"
HANDED_TO_OWN: Final = "handed to classes of your own"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A parsed key: its setting, listener and mechanism."""

    setting: Setting[Any]
    listener: str | None = None
    mechanism: str | None = None


class GivenSettings:
    """The values that are set, by key; defaults come from the table. Callers may add `warnings`.

    `unknown` are the keys that the table does not know, with their raw values.
    """

    __slots__ = ("_mechanisms", "references", "texts", "unknown", "values", "warnings")

    def __init__(self, references: References, mechanisms: frozenset[str]) -> None:
        self.references: Final = references
        self._mechanisms: Final = mechanisms
        self.texts: Final[dict[str, str]] = {}
        self.values: Final[dict[str, Any]] = {}
        self.warnings: Final[list[str]] = []
        self.unknown: Final[dict[str, str]] = {}

    def __repr__(self) -> str:
        return f"GivenSettings({', '.join(sorted(self.values))})"  # the values may be secrets

    @classmethod
    def read(cls, properties: Mapping[str, str], environment: Mapping[str, str]) -> Self:
        """Return the values of these properties; raise one `SettingsError` with all errors."""
        given = cls(References(environment), mechanism_prefixes(properties))
        problems: list[str] = []
        for key, raw in properties.items():
            known = given.known_key(key)
            if known is None:
                given.unknown[key] = raw
                continue
            try:
                given.texts[key] = given.references.resolve(raw).strip()
                given.values[key] = _read(key, known.setting, raw, given.texts[key])
            except SettingsError as error:
                problems.append(str(error))
        is_foreign = (given.get(AUTHORIZER_CLASS) or "") not in {"", *STANDARD_AUTHORIZER_NAMES}
        fate = HANDED_ON if is_foreign else HANDED_TO_OWN if given.has_own_classes else IGNORED
        for key in given.unknown:
            _take_unknown(key, problems, given.warnings, fate)
        for setting in SETTINGS:
            if setting.required and setting.name not in properties:
                alike = next((key for key in given.unknown if did_you_mean(key, [setting.name])), None)
                hint = "" if alike is None else f"; `{alike}` is set, did you mean `{setting.name}`"
                problems.append(f"`{setting.name}` is not set, use {setting.kind.takes}{hint}")
        if problems:
            raise SettingsError("; ".join(problems))
        return given

    @property
    def has_own_classes(self) -> bool:
        """Return whether a listener has a builder, callback handler or mechanism of its operator's."""
        if any(each not in _MECHANISM_PREFIXES for each in self._mechanisms):
            return True
        return any(
            text not in _KAFKAS_CLASSES.get(known.setting.name, (text,))
            for key, text in self.texts.items()
            if (known := self.known_key(key)) is not None
        )

    def known_key(self, key: str) -> KnownKey | None:
        """Return a key parsed, None if neither the table nor a mechanism of the file's knows it."""
        return known_key(key, self._mechanisms)

    def names_mechanism(self, key: str) -> bool:
        """Return whether a key is for one mechanism."""
        known = self.known_key(key)
        return known is not None and known.mechanism is not None

    def custom_class_configs(self) -> dict[str, str]:
        """Return the configuration for a custom class: every key except the secrets of kustos.

        Raise `SettingsError` if a reference in one cannot be resolved.
        """
        configs = {
            key: text
            for key, text in self.texts.items()
            if (known := self.known_key(key)) is not None and not known.setting.secret
        }
        for key, raw in self.unknown.items():
            try:
                configs[key] = self.references.resolve(raw).strip()
            except SettingsError as error:
                raise SettingsError(f"`{key}`: {error}") from None
        return configs

    def has(self, setting: Setting[Any]) -> bool:
        """Return whether the setting is set for the whole node."""
        return setting.name in self.values

    def get(self, setting: Setting[T], listener: str | None = None, mechanism: str | None = None) -> T | None:
        """Return the value, else the default, else None.

        As in Kafka the mechanism's own value takes precedence over the listener's.
        """
        for key in keys_of(setting, listener, mechanism):
            if key in self.values:
                value: T = self.values[key]
                return value
        return setting.default

    def require(self, setting: Setting[T], listener: str | None = None, mechanism: str | None = None) -> T:
        """Return the value of a setting that has a default or must be set; raise `SettingsError`."""
        value = self.get(setting, listener, mechanism)
        if value is None:
            raise SettingsError(f"`{setting.name}` is not set, use {setting.kind.takes}")
        return value


def keys_of(setting: Setting[Any], listener: str | None, mechanism: str | None) -> Iterable[str]:
    """Yield the keys that can set this, the most specific first."""
    before = f"{LISTENER_PREFIX}{listener.lower()}." if listener and setting.per_listener else None
    within = f"{mechanism.lower()}." if mechanism and setting.per_mechanism else None
    if before and within:
        yield before + within + setting.name
    if within:
        yield within + setting.name
    if before:
        yield before + setting.name
    yield setting.name


_MECHANISM_PREFIXES: Final = frozenset(mechanism.lower() for mechanism in MECHANISMS)


def mechanism_prefixes(properties: Mapping[str, str]) -> frozenset[str]:
    """Return what may stand before the settings of a mechanism: those of kustos and those of the file."""
    own = {
        name.strip().lower()
        for key, text in properties.items()
        if (known := known_key(key)) is not None and known.setting is ENABLED_MECHANISMS
        for name in text.split(",")
    }
    return _MECHANISM_PREFIXES | (own - {""})


def known_key(key: str, mechanisms: frozenset[str] = _MECHANISM_PREFIXES) -> KnownKey | None:
    """Return a key parsed, None if the table does not know it."""
    if key in BY_NAME:
        return None if BY_NAME[key] in ONLY_PER_LISTENER else KnownKey(BY_NAME[key])
    listener: str | None = None
    rest = key
    if key.startswith(LISTENER_PREFIX):
        listener, _, rest = key.removeprefix(LISTENER_PREFIX).partition(".")
        if rest in BY_NAME:
            return KnownKey(BY_NAME[rest], listener) if BY_NAME[rest].per_listener else None
    mechanism, _, name = rest.partition(".")
    if mechanism in mechanisms and name in BY_NAME and BY_NAME[name].per_mechanism:
        return KnownKey(BY_NAME[name], listener, mechanism)
    return None


_KAFKAS_CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    PRINCIPAL_BUILDER_CLASS.name: (DEFAULT_PRINCIPAL_BUILDER,),
    SERVER_CALLBACK_HANDLER_CLASS.name: (SIGNED_HANDLER, UNSECURED_HANDLER),
    MECHANISM_CLASS.name: (),
}
"""The settings that name classes, and the classes that are not an operator's own."""


def _take_unknown(key: str, problems: list[str], warnings: list[str], fate: str) -> None:
    """Refuse an unknown `kustos` key, warn of any other: a broker may use the file, too."""
    if key in BY_NAME:
        other = f" or `{GATEWAY_BROKER_PORT_START.name}`" if key == BROKER_PORT_START.name else ""
        problems.append(f"`{key}` has no listener, write `{LISTENER_PREFIX}<listener>.{key}`{other}")
        return
    foreign = kafkas_key(key.split(".", 2)[-1]) if key.startswith("kustos.") else None
    if foreign is not None:
        problems.append(f"`{key}` is named after a key of {foreign[0]}, Kafka's key for it is `{foreign[1]}`")
        return
    hint = did_you_mean(key, BY_NAME)
    if key.startswith("kustos.") or ".kustos." in key:
        problems.append(f"`{key}` is not a setting of kustos, {hint or 'leave it out'}")
    elif hint:
        warnings.append(f"`{key}` is not known and {fate}, {hint}")
    elif fate == IGNORED:
        warnings.append(f"`{key}` is not known and {fate}")


def _read(key: str, setting: Setting[T], raw: str, text: str) -> T:
    # show the text of the file, never the value of a reference in it
    if is_quoted(text) and not setting.secret:
        raise SettingsError(f"the value of `{key}` is {IN_QUOTES}")
    shown = "unusable" if setting.secret else f"`{raw}`"
    try:
        return setting.kind.read(text)
    except SettingsError as error:
        raise SettingsError(f"`{key}` is {shown}: {error}") from None
    except (ValueError, KeyError):
        raise SettingsError(f"`{key}` is {shown}, use {setting.kind.takes}") from None


def listener_key(setting: Setting[Any], listener: str) -> str:
    """Return the key that sets it for one listener, for messages."""
    return f"{LISTENER_PREFIX}{listener.lower()}.{setting.name}"
