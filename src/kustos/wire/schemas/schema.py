"""A message's schema as values, and its text format.

One line for each struct of all versions of a message, the message itself first: its name, then its fields as
`name:type`, which may continue in further lines. `[T]` is an array, `?` may be null, `=d` is the default if
it differs from the type's default, `#n` is the tag, and `@3-`, `@-5` or `@3-5` are the versions that have the
field.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kustos.wire.primitives import ZERO_UUID

DEFAULTS: Final = {
    "string": "",
    "bytes": b"",
    "records": None,
    "bool": False,
    "uuid": ZERO_UUID,
    "float64": 0.0,
}
"""Defaults of types; all other types have 0."""

STRUCT: Final = "struct"
"""The kind of a field that is a struct, or an array of them."""

_FIELD: Final = re.compile(
    r"(?P<name>\w+):(?P<array>\[)?(?P<type>\w+)\]?(?P<null>\?)?(?:=(?P<default>[^#@]+))?"
    r"(?:#(?P<tag>\d+))?(?:@(?P<first>\d*)-(?P<last>\d*))?"
)


class NoDefault:
    """The marker of a field without its own default, which has the default of its type."""


@dataclass(frozen=True, slots=True)
class Field:
    """The wire form of one field of a struct in one version."""

    name: str
    kind: str
    is_array: bool = False
    nullable: bool = False
    element: "Struct | None" = None
    """The struct that the field, or each of its elements, is."""
    tag: int | None = None
    default: Any = NoDefault

    def default_maker(self, structs: Mapping[str, Callable[[], Any]]) -> Callable[[], Any]:
        """Return a factory for the value of a missing field: a new object each time if it is mutable."""
        if self.default is not NoDefault:
            return lambda: self.default
        if self.is_array:
            return list
        if self.element is not None:
            return structs[self.element.name]
        constant = DEFAULTS.get(self.kind, 0)
        return lambda: constant


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct in one version: of a message, or within one."""

    name: str
    version: int
    flexible: bool
    fields: tuple[Field, ...]

    @property
    def has_array(self) -> bool:
        """Whether one of its own fields is an array."""
        return any(field.is_array for field in self.fields)

    def tags_by_struct(self) -> Iterator[tuple[str, frozenset[int]]]:
        """Yield the name and the tags of this struct and of every struct in it."""
        yield self.name, frozenset(field.tag for field in self.fields if field.tag is not None)
        for field in self.fields:
            if field.element is not None:
                yield from field.element.tags_by_struct()


class MessageSchema:
    """All versions of one request or response."""

    def __init__(self, flexible_from: int | None, text: str) -> None:
        self._flexible_from: Final = flexible_from
        lines = re.sub(r"\n +", " ", text.strip()).split("\n")
        self._structs: Final = {name: fields for name, _, fields in (line.partition(" ") for line in lines)}
        self._root: Final = next(iter(self._structs))

    def struct(self, version: int) -> Struct:
        """Return the message in a version, which must exist."""
        flexible = self._flexible_from is not None and version >= self._flexible_from
        return self._struct(self._root, version, flexible)

    def _struct(self, name: str, version: int, flexible: bool) -> Struct:
        fields = []
        for word in self._structs[name].split():
            found = _FIELD.fullmatch(word)
            if found is None:
                raise ValueError(f"`{word}` is no field of a schema")
            if int(found["first"] or 0) <= version <= int(found["last"] or version):
                fields.append(self._field(found, version, flexible))
        return Struct(name, version, flexible, tuple(fields))

    def _field(self, found: re.Match[str], version: int, flexible: bool) -> Field:
        kind = found["type"]
        is_struct = kind in self._structs
        return Field(
            found["name"],
            STRUCT if is_struct else kind,
            found["array"] is not None,
            found["null"] is not None,
            self._struct(kind, version, flexible) if is_struct else None,
            None if found["tag"] is None else int(found["tag"]),
            NoDefault if found["default"] is None else json.loads(found["default"]),
        )
