"""JSON and JSON lines; the reader knows the line of each ACL.

JSON is an array of objects, an object with such an array as `acls` (the output of `kustos acls list -o json`)
or `matches` (of `rpk security acl list --format json`), whose other members are ignored, the state that
`terraform show -json` prints, or objects one after the other. JSON lines is one object per line.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kustos.acl.forms.fields import binding_of_named_fields, field_names, fields_of
from kustos.acl.forms.values import AclFormatError, LineCounter, LocatedBinding, Place, numbered_lines
from kustos.acl.values import AclBinding

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_ACLS: Final = "acls"
_LISTS: Final = frozenset({_ACLS, "matches"})
_STATE: Final = "format_version"
_TERRAFORM_TYPE: Final = "kafka_acl"
_OTHER_TERRAFORM_ACLS: Final = re.compile("kafka.*_acl$")
"""Types of other providers, such as `confluent_kafka_acl`: they are refused, because skipped ACLs would be
missing silently."""

MODULE_DEPTH_MAX: Final = 50
"""The maximum depth of modules in a Terraform state: ten times the depth that its style guide recommends."""


class _RepeatedNameError(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedNameError(next(name for name in names if names.count(name) > 1))
    return fields


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_once)


def _decode(text: str, position: int, place: Place, name: str, lines: LineCounter) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except _RepeatedNameError as error:
        raise AclFormatError(place, str(error), "occurs twice in one object, give it once") from None
    except json.JSONDecodeError as error:
        where = Place(name, lines.at(error.pos)) if error.pos >= position else place
        raise AclFormatError(where, "", f"this is not JSON: {error.msg.lower()}") from None
    except RecursionError:
        raise AclFormatError(place, "", "values are nested deeper than any ACL is") from None


def _binding(item: Any, place: Place) -> AclBinding:
    if not isinstance(item, dict):
        raise AclFormatError(place, json.dumps(item), "is not an object, an ACL is one with seven texts")
    fields = dict(zip(field_names(item, place), item.values(), strict=True))
    for name, value in item.items():
        if not isinstance(value, str):
            raise AclFormatError(place, name, f"has the value {json.dumps(value)}, write a text in quotes")
    return binding_of_named_fields(fields, place)


class _JsonReader:
    """Reads a JSON text item by item."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._lines = LineCounter(text)
        self._position = 0

    def bindings(self) -> Iterator[LocatedBinding]:
        first = self._next()
        if not first:
            raise AclFormatError(self._place(), "", "the text is blank, write `[]` for no ACLs")
        if first == "[":
            yield from self._array()
        elif (kind := self._kind() if first == "{" else "") in _LISTS:
            yield from self._document(kind)
        elif kind == _STATE:
            yield from self._state()
        else:
            while self._next():
                yield self._item()
        if self._next():
            raise self._unexpected("nothing follows the last ACL")

    def _next(self) -> str:
        """Skip blanks and return the next character, an empty string at the end."""
        match = _BLANK.match(self._text, self._position)
        self._position = self._position if match is None else match.end()
        return self._text[self._position : self._position + 1]

    def _place(self) -> Place:
        return Place(self._name, self._lines.at(self._position))

    def _unexpected(self, rule: str) -> AclFormatError:
        found = self._text[self._position : self._position + 1]
        return AclFormatError(self._place(), found, f"is not expected here: {rule}")

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise self._unexpected(f"`{expected}` is missing")
        self._position += 1

    def _value(self) -> Any:
        self._next()
        value, self._position = _decode(self._text, self._position, self._place(), self._name, self._lines)
        return value

    def _item(self) -> LocatedBinding:
        self._next()
        place = self._place()
        return LocatedBinding(_binding(self._value(), place), place.line)

    def _items(self) -> Iterator[None]:
        """Yield at the beginning of each item of the current array; the caller reads the item."""
        self._take("[")
        if self._next() == "]":
            self._position += 1
            return
        while True:
            yield
            if self._next() != ",":
                break
            self._position += 1
        self._take("]")

    def _members(self) -> Iterator[str]:
        """Yield the name of each member of the current object; skip values that the caller does not read."""
        self._take("{")
        while self._next() != "}":
            name = str(self._value())
            self._take(":")
            self._next()
            start = self._position
            yield name
            if self._position == start:
                self._value()
            if self._next() != ",":
                break
            self._position += 1
        self._take("}")

    def _kind(self) -> str:
        """Return the member that identifies the kind of the current object, an empty string for an ACL."""
        start = self._position
        for name in self._members():
            if name == _STATE or (name in _LISTS and self._next() == "["):
                self._position = start
                return name
            if name == "apiVersion":
                raise AclFormatError(
                    self._place(),
                    "",
                    "this is an object of Kubernetes, write it as YAML (`kubectl get -o yaml`)",
                )
        self._position = start
        return ""

    def _array(self) -> Iterator[LocatedBinding]:
        for _ in self._items():
            yield self._item()

    def _document(self, kind: str) -> Iterator[LocatedBinding]:
        is_first = True
        for name in self._members():
            if name != kind:
                continue
            if not is_first:
                raise AclFormatError(self._place(), kind, "occurs twice in one object, give it once")
            is_first = False
            yield from self._array()

    def _state(self) -> Iterator[LocatedBinding]:
        """Yield the ACLs of a Terraform state; refuse a state without ACLs, and a plan."""
        found = False
        for name in self._members():
            if name != "values":
                continue
            for member in self._members():
                if member == "root_module":
                    for located in self._module(MODULE_DEPTH_MAX):
                        found = True
                        yield located
        if not found:
            raise AclFormatError(
                self._place(),
                _TERRAFORM_TYPE,
                "is the type of no resource here; give the state that `terraform show -json` prints",
            )

    def _module(self, depth: int) -> Iterator[LocatedBinding]:
        if not depth:
            raise AclFormatError(self._place(), "", f"modules are nested deeper than {MODULE_DEPTH_MAX}")
        for name in self._members():
            if name == "resources":
                for _ in self._items():
                    yield from self._resource()
            elif name == "child_modules":
                for _ in self._items():
                    yield from self._module(depth - 1)

    def _resource(self) -> Iterator[LocatedBinding]:
        self._next()
        place = self._place()
        resource = self._value()
        if not isinstance(resource, dict):
            raise AclFormatError(place, json.dumps(resource), "is not a resource of a Terraform state")
        kind = str(resource.get("type"))
        if resource.get("mode") != "managed":
            return
        if kind != _TERRAFORM_TYPE:
            if _OTHER_TERRAFORM_ACLS.search(kind):
                raise AclFormatError(
                    place, kind, f"is a type of ACLs that is not read, only `{_TERRAFORM_TYPE}` is"
                )
            return
        values = resource.get("values")
        if not isinstance(values, dict):
            raise AclFormatError(place, "values", "is missing, a resource of a Terraform state has them")
        # the provider builds the id from the other values
        yield LocatedBinding(
            _binding({name: value for name, value in values.items() if name != "id"}, place), place.line
        )


def read_json(text: str, name: str) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a JSON text; raise `AclFormatError`."""
    return _JsonReader(text, name).bindings()


def read_json_lines(text: str, name: str) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a text with one object per line, skipping blank lines; raise `AclFormatError`."""
    for number, line in numbered_lines(text, name):
        stripped = line.strip(" \t\r")
        if not stripped:
            continue
        place = Place(name, number)
        item, end = _decode(stripped, 0, place, name, LineCounter(stripped, number))
        if end != len(stripped):
            raise AclFormatError(place, stripped[end:], "follows the object, write one a line")
        yield LocatedBinding(_binding(item, place), number)


def write_json(bindings: Iterable[AclBinding]) -> str:
    """Return `{"acls": [...]}`, indented."""
    return json.dumps({_ACLS: [fields_of(binding) for binding in bindings]}, indent=2) + "\n"


def write_json_lines(bindings: Iterable[AclBinding]) -> str:
    """Return one object per line."""
    return "".join([json.dumps(fields_of(binding)) + "\n" for binding in bindings])
