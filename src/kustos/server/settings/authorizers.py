"""Finds the authorizer that `authorizer.class.name` names.

Loading runs the code of the module, as Kafka does with its class. A name with a dot or a colon is a Python
path, any other an entry point: so no installed package can shadow a path.
"""

import importlib
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from kustos.authorizer import Authorizer
from kustos.authorizer.legacy import AuthorizerWrapper, LegacyAuthorizer, SimpleAclAuthorizer
from kustos.client import SettingsError
from kustos.server.settings.table.node import AUTHORIZER_CLASS, STANDARD_AUTHORIZER, STANDARD_AUTHORIZER_NAMES

ENTRY_POINT_GROUP: Final = "kustos.authorizers"

SIMPLE_ACL_AUTHORIZER: Final = "kafka.security.auth.SimpleAclAuthorizer"
"""Kafka's first authorizer, in its legacy form."""

JAVA_PACKAGES: Final = ("kafka.", "org.apache.kafka.")
"""Kafka's own packages; a Python package of the same name must not be imported for them."""


def find_authorizer(name: str) -> Callable[[], Authorizer] | None:
    """Return the factory of the authorizer of this name, None for StandardAuthorizer; raise `SettingsError`.

    `name`: Kafka's class name, `package.module.Class`, `package.module:Class`, or an entry point. A class of
    the legacy interface is wrapped in the present one, as Kafka did (KIP-504).
    """
    if name in STANDARD_AUTHORIZER_NAMES:
        return None
    if name == SIMPLE_ACL_AUTHORIZER:
        return _behind_wrapper(SimpleAclAuthorizer)
    if name.startswith(JAVA_PACKAGES):
        raise _unusable(name, "it is a class of Java")
    module, separator, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    try:
        found = _of_path(module, attribute) if separator else _of_entry_points(name).load()
    except SettingsError:
        raise
    except Exception as error:
        # whatever its code raises on import, the node does not start, and says why
        raise _unusable(name, f"loading it failed, {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, (Authorizer, LegacyAuthorizer))):
        raise _unusable(name, "it is no subclass of `kustos.authorizer.Authorizer`")
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise _unusable(name, f"it lacks {', '.join(f'`{each}`' for each in missing)}")
    return found if issubclass(found, Authorizer) else _behind_wrapper(found)


@cache
def _behind_wrapper(legacy: type[LegacyAuthorizer]) -> Callable[[], Authorizer]:
    return lambda: AuthorizerWrapper(legacy())


def _of_path(module: str, attribute: str) -> object:
    """Return the object at a path; an attribute may be nested (`Outer.Inner`) after a colon."""
    found: object = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def _of_entry_points(name: str) -> EntryPoint:
    found = tuple(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if len(found) == 1:
        return found[0]
    if found:
        raise _unusable(name, f"{len(found)} installed packages have an entry point of this name")
    known = sorted(entry_points(group=ENTRY_POINT_GROUP).names)
    has = f"there are {', '.join(f'`{each}`' for each in known)}" if known else "there are none"
    raise _unusable(
        name,
        f"no installed package has an entry point of this name in `{ENTRY_POINT_GROUP}` ({has}); a class "
        "is written `package.module.Class`",
    )


def _unusable(name: str, reason: str) -> SettingsError:
    return SettingsError(
        f"`{AUTHORIZER_CLASS.name}` is `{name}`, which cannot be used: {reason}; "
        f"use `{STANDARD_AUTHORIZER}`, or a subclass of `kustos.authorizer.Authorizer`"
    )
