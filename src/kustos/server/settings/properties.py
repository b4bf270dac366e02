"""Checks and parses the keys of a properties file by the declarations of settings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from kustos.client import IN_QUOTES, LOGIN_MODULES, SettingsError, is_quoted, kafkas_key
from kustos.runtime import did_you_mean
from kustos.server.settings.indirection import References
from kustos.settings import Scope, Setting, settings_of

T = TypeVar("T")
LISTENER_PREFIX: Final = "listener.name."
AUTHORIZER_CLASS_CONFIG: Final = "authorizer.class.name"
ENABLED_MECHANISMS_CONFIG: Final = "sasl.enabled.mechanisms"
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
    """The values in a properties file, by key; defaults come from the declarations.

    `table` has the declarations by name. `unknown` are the other keys, with their raw values. Callers may add
    `warnings`.
    """

    __slots__ = ("_mechanisms", "references", "table", "texts", "unknown", "values", "warnings")

    def __init__(
        self, table: Mapping[str, Setting[Any]], references: References, mechanisms: frozenset[str]
    ) -> None:
        self.table: Final = table
        self.references: Final = references
        self._mechanisms: Final = mechanisms
        self.texts: Final[dict[str, str]] = {}
        self.values: Final[dict[str, Any]] = {}
        self.warnings: Final[list[str]] = []
        self.unknown: Final[dict[str, str]] = {}

    def __repr__(self) -> str:
        return f"GivenSettings({', '.join(sorted(self.values))})"  # the values may be secrets

    @classmethod
    def read(
        cls,
        table: Mapping[str, Setting[Any]],
        properties: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> Self:
        """Return the values of these properties; raise one `SettingsError` with all errors."""
        given = cls(table, References(environment), _mechanism_prefixes(table, properties))
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
        is_foreign = AUTHORIZER_CLASS_CONFIG in given._keys_with_own_class()
        fate = HANDED_ON if is_foreign else HANDED_TO_OWN if given.has_own_classes else IGNORED
        for key in given.unknown:
            given._take_unknown(key, problems, fate)
        for setting in table.values():
            if setting.required and setting.name not in properties:
                alike = next((key for key in given.unknown if did_you_mean(key, [setting.name])), None)
                hint = "" if alike is None else f"; `{alike}` is set, did you mean `{setting.name}`"
                problems.append(f"`{setting.name}` is not set, use {setting.kind.takes}{hint}")
        if problems:
            raise SettingsError("; ".join(problems))
        return given

    @property
    def has_own_classes(self) -> bool:
        """Return whether a listener has a custom principal builder, callback handler or mechanism."""
        return not self._mechanisms <= _MECHANISM_PREFIXES or bool(
            self._keys_with_own_class() - {AUTHORIZER_CLASS_CONFIG}
        )

    def _keys_with_own_class(self) -> set[str]:
        """Return the keys whose value names a custom class."""
        return {
            key
            for key, text in self.texts.items()
            if (known := self.known_key(key)) is not None
            and (kafkas := known.setting.kafkas_classes) is not None
            and text not in kafkas
        }

    def known_key(self, key: str) -> KnownKey | None:
        """Parse a key; return None if neither a declaration nor a mechanism of the file matches it."""
        return _known_key(self.table, key, self._mechanisms)

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

    def get(self, setting: Setting[T], listener: str | None = None, mechanism: str | None = None) -> T | None:
        """Return the value, else the default, else None.

        As in Kafka the mechanism's own value takes precedence over the listener's.
        """
        assert setting.name in self.table, f"`{setting.name}` is not in the table of settings"
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

    def fields(
        self, group: type, listener: str | None = None, mechanism: str | None = None
    ) -> dict[str, Any]:
        """Return the values of the declared fields of a group, by the name of the field."""
        return {name: self.get(setting, listener, mechanism) for name, setting in settings_of(group).items()}

    def _take_unknown(self, key: str, problems: list[str], fate: str) -> None:
        """Refuse unknown `kustos` keys, and warn about other unknown keys, which a broker may use."""
        if key in self.table:
            other = " or `kustos.gateway.broker.port.start`" if key == "kustos.broker.port.start" else ""
            problems.append(f"`{key}` has no listener, write `{LISTENER_PREFIX}<listener>.{key}`{other}")
            return
        foreign = kafkas_key(key.split(".", 2)[-1]) if key.startswith("kustos.") else None
        if foreign is not None:
            problems.append(
                f"`{key}` is named after a key of {foreign[0]}, Kafka's key for it is `{foreign[1]}`"
            )
            return
        hint = did_you_mean(key, self.table)
        if key.startswith("kustos.") or ".kustos." in key:
            problems.append(f"`{key}` is not a setting of kustos, {hint or 'leave it out'}")
        elif hint:
            self.warnings.append(f"`{key}` is not known and {fate}, {hint}")
        elif fate == IGNORED:
            self.warnings.append(f"`{key}` is not known and {fate}")


def keys_of(setting: Setting[Any], listener: str | None, mechanism: str | None) -> Iterable[str]:
    """Yield the keys that can set this, the most specific first."""
    before = f"{LISTENER_PREFIX}{listener.lower()}." if listener and setting.scope is not Scope.NODE else None
    within = f"{mechanism.lower()}." if mechanism and setting.scope is Scope.MECHANISM else None
    if before and within:
        yield before + within + setting.name
    if within:
        yield within + setting.name
    if before:
        yield before + setting.name
    yield setting.name


_MECHANISM_PREFIXES: Final = frozenset(mechanism.lower() for mechanism in LOGIN_MODULES)


def _mechanism_prefixes(table: Mapping[str, Setting[Any]], properties: Mapping[str, str]) -> frozenset[str]:
    """Return the names of mechanisms that may precede settings: the names of kustos and of the file."""
    own = {
        name.strip().lower()
        for key, text in properties.items()
        if (known := _known_key(table, key)) is not None and known.setting.name == ENABLED_MECHANISMS_CONFIG
        for name in text.split(",")
    }
    return _MECHANISM_PREFIXES | (own - {""})


def _known_key(
    table: Mapping[str, Setting[Any]], key: str, mechanisms: frozenset[str] = _MECHANISM_PREFIXES
) -> KnownKey | None:
    if key in table:
        return None if table[key].scope is Scope.ONLY_LISTENER else KnownKey(table[key])
    listener: str | None = None
    rest = key
    if key.startswith(LISTENER_PREFIX):
        listener, _, rest = key.removeprefix(LISTENER_PREFIX).partition(".")
        if rest in table:
            return None if table[rest].scope is Scope.NODE else KnownKey(table[rest], listener)
    mechanism, _, name = rest.partition(".")
    if mechanism in mechanisms and name in table and table[name].scope is Scope.MECHANISM:
        return KnownKey(table[name], listener, mechanism)
    return None


def _read(key: str, setting: Setting[T], raw: str, text: str) -> T:
    # show the text of the file, never the value of a reference in it
    if is_quoted(text) and not setting.secret:
        raise SettingsError(f"the value of `{key}` is {IN_QUOTES}")
    shown = "unusable" if setting.secret else f"`{raw}`"
    try:
        return setting.kind.read(text)
    except SettingsError as error:
        raise SettingsError(f"`{key}` is {shown}: {error}") from None
    except ValueError:
        raise SettingsError(f"`{key}` is {shown}, use {setting.kind.takes}") from None


def listener_key(name: str, listener: str, mechanism: str | None = None) -> str:
    """Return the key that sets a value for one listener, or for one mechanism of a listener."""
    within = f"{mechanism.lower()}." if mechanism else ""
    return f"{LISTENER_PREFIX}{listener.lower()}.{within}{name}"
