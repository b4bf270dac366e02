"""Loads the Python class that a setting names.

Loading runs the code of the module, as in Kafka. A name with a dot or a colon is a Python path, any other
name is an entry point, so an installed package cannot shadow a path.
"""

import importlib
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from kustos.client.errors import SettingsError

JAVA_PACKAGES: Final = ("kafka.", "org.apache.kafka.")
"""Kafka's own packages; a Python package with the same name must not be imported instead."""


@dataclass(frozen=True, slots=True)
class PluginKind:
    """The classes that a setting may name. `standard`: Kafka's own class, which is not loaded."""

    setting: str
    entry_point_group: str
    standard: str
    bases: tuple[type, ...]

    def find(self, name: str) -> type:
        """Return the class of this name: `package.module.Class`, `package.module:Class`, or an entry point.

        Raise `SettingsError` if it cannot be loaded or is not a concrete subclass of one of the bases.
        """
        if name.startswith(JAVA_PACKAGES):
            raise self.unusable(name, "it is a class of Java")
        module, separator, attribute = name.partition(":") if ":" in name else name.rpartition(".")
        try:
            found = _of_path(module, attribute) if separator else self._entry_point(name).load()
        except SettingsError:
            raise
        except Exception as error:
            # any exception of the import prevents the start and is reported
            raise self.unusable(name, f"loading it failed, {type(error).__name__}: {error}") from error
        if not (isinstance(found, type) and issubclass(found, self.bases)):
            raise self.unusable(name, f"it is not a subclass of `{self._base}`")
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        if missing:
            raise self.unusable(name, f"it lacks {', '.join(f'`{each}`' for each in missing)}")
        return found

    def unusable(self, name: str, reason: str) -> SettingsError:
        """Return the error for a name that cannot be used."""
        return SettingsError(
            f"`{self.setting}` is `{name}`, which cannot be used: {reason}; "
            f"use `{self.standard}`, or a subclass of `{self._base}`"
        )

    @property
    def _base(self) -> str:
        # named by the package, from which a plugin imports it
        base = self.bases[0]
        return f"{'.'.join(base.__module__.split('.')[:2])}.{base.__name__}"

    def _entry_point(self, name: str) -> EntryPoint:
        group = self.entry_point_group
        found = tuple(entry_points(group=group, name=name))
        if len(found) == 1:
            return found[0]
        if found:
            raise self.unusable(name, f"{len(found)} installed packages have an entry point of this name")
        known = sorted(entry_points(group=group).names)
        has = f"there are {', '.join(f'`{each}`' for each in known)}" if known else "there are none"
        raise self.unusable(
            name,
            f"no installed package has an entry point of this name in `{group}` ({has}); a class "
            "is written `package.module.Class`",
        )


def _of_path(module: str, attribute: str) -> object:
    """Return the object at a path; an attribute may be nested (`Outer.Inner`) after a colon."""
    found: object = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found
