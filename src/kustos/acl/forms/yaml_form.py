"""YAML: a list of mappings, alone or as `acls` of a mapping, or the `KafkaUser` objects of Strimzi.

The reader uses the parser's events, so it knows the line of each ACL, and every value is the literal text
(`no`, `1e3`), without YAML's type conversion. Aliases and tags are refused: people review a set of ACLs and
must see each value in its place.

`yaml.compose` would return nodes with lines, but it keeps the whole document in memory (5 kB for each of a
million ACLs), and its C code recurses without a limit: 100,000 opening brackets crash the process.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final

from kustos.acl.forms.fields import binding_of_named_fields, field_names, fields_of
from kustos.acl.forms.strimzi import KIND, LIST_KIND, PlacedValue, bindings_of_users
from kustos.acl.forms.values import AclFormatError, LocatedBinding, Place
from kustos.acl.values import AclBinding

_ACLS: Final = "acls"
_KIND: Final = "kind"
_OF_KUBERNETES: Final = frozenset({_KIND, "metadata", "spec", "items"})

DEPTH_MAX: Final = 50
"""The maximum depth of a Kubernetes object: several times the depth of Strimzi's objects."""

_SEPARATORS: Final = "\n\r\x85\u2028\u2029"
_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TEXT_TAGS: Final = frozenset({None, "!", "tag:yaml.org,2002:str"})
_TAGS: Final = _TEXT_TAGS | {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class _Events:
    """The parser events of a text in order; refuses events that are not allowed."""

    def __init__(self, text: str, name: str) -> None:
        import yaml

        self._yaml = yaml
        self._name = name
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
        # the parser counts one line too many if a text ends within a line
        self._last_line = 1 + sum(text.count(separator) for separator in _SEPARATORS)
        self.line = 1

    def next(self) -> Any:
        try:
            event = next(self._events)
        except self._yaml.YAMLError as error:
            raise self._broken(error) from None
        mark = event.start_mark
        self.line = self.line if mark is None else min(mark.line + 1, self._last_line)
        if isinstance(event, self._yaml.AliasEvent):
            raise self.error(f"*{event.anchor}", "is an alias; write out its value, or quote it")
        if getattr(event, "tag", None) not in _TAGS:
            raise self.error(str(event.tag), "is a tag, write texts, lists and mappings only")
        return event

    def next_is(self, kind: str) -> bool:
        return self.is_a(self.next(), kind)

    def is_a(self, event: object, kind: str) -> bool:
        return isinstance(event, getattr(self._yaml, f"{kind}Event"))

    def place(self) -> Place:
        return Place(self._name, self.line)

    def error(self, value: str, rule: str) -> AclFormatError:
        return AclFormatError(self.place(), value, rule)

    def _broken(self, error: Any) -> AclFormatError:
        mark = getattr(error, "problem_mark", None)
        line = self.line if mark is None else min(mark.line + 1, self._last_line)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        hint = "; write `*` and other texts of signs in quotes" if "alphabetic" in problem else ""
        return AclFormatError(Place(self._name, line), "", f"this is not YAML: {problem}{hint}")

    def text(self, event: Any, what: str) -> str:
        if not self.is_a(event, "Scalar"):
            raise self.error("", f"{what} is not text")
        if not event.style and event.value in _NOTHING:
            raise self.error(event.value, f"is null in YAML; if {what} is that text, quote it")
        value: str = event.value
        return value

    def node(self, event: Any, depth: int = DEPTH_MAX) -> PlacedValue:
        """Return the value that begins with an event."""
        if not depth:
            raise self.error("", f"values are nested deeper than {DEPTH_MAX}")
        line = self.line
        if self.is_a(event, "Scalar"):
            is_null = not event.style and event.value in _NOTHING
            return PlacedValue(self._name, line, None if is_null else event.value)
        if self.is_a(event, "SequenceStart"):
            items: list[PlacedValue] = []
            while not self.is_a(event := self.next(), "SequenceEnd"):
                items.append(self.node(event, depth - 1))
            return PlacedValue(self._name, line, items)
        members: dict[str, PlacedValue] = {}
        while not self.is_a(event := self.next(), "MappingEnd"):
            key = self.text(event, "the name of a member")
            if key in members:
                raise self.error(key, "occurs twice, give it once")
            members[key] = self.node(self.next(), depth - 1)
        return PlacedValue(self._name, line, members)

    def skip(self, event: Any) -> None:
        depth = 0
        while True:
            if self.is_a(event, "MappingStart") or self.is_a(event, "SequenceStart"):
                depth += 1
            elif self.is_a(event, "MappingEnd") or self.is_a(event, "SequenceEnd"):
                depth -= 1
            if depth == 0:
                return
            event = self.next()


def read_yaml(text: str, name: str) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a YAML text; raise `AclFormatError`.

    It has one document, or one for each `KafkaUser`.
    """
    events = _Events(text, name)
    events.next()
    if not events.next_is("DocumentStart"):
        raise events.error("", "the text holds no YAML document, write `[]` for no ACLs")
    while True:
        is_of_users = False
        event = events.next()
        if events.is_a(event, "SequenceStart"):
            yield from _list(events)
        elif events.is_a(event, "MappingStart"):
            is_of_users = yield from _document(events)
        else:
            raise events.error(getattr(event, "value", ""), "is not a list of ACLs")
        events.next()
        if events.next_is("StreamEnd"):
            return
        if not is_of_users:
            raise events.error("", "a second document begins here, put all ACLs into one list")


def _document(events: _Events) -> Generator[LocatedBinding, None, bool]:
    """Yield the ACLs of a mapping; return whether they come from Strimzi users."""
    found = False
    kubernetes: dict[str, PlacedValue] = {}
    place = events.place()
    while not events.is_a(event := events.next(), "MappingEnd"):
        key = events.text(event, "the name of a member")
        event = events.next()
        if key in _OF_KUBERNETES and not found:
            kubernetes[key] = events.node(event)
            continue
        if key != _ACLS:
            events.skip(event)
            continue
        if found:
            raise events.error(_ACLS, "occurs twice, give it once")
        found = True
        if not events.is_a(event, "SequenceStart"):
            raise events.error(_ACLS, "is not a list of ACLs")
        yield from _list(events)
    kind = kubernetes[_KIND].value if _KIND in kubernetes else None
    if not found and kind in {KIND, LIST_KIND}:
        yield from bindings_of_users(PlacedValue(place.name, place.line, kubernetes))
        return True
    if not found:
        raise events.error(_ACLS, "is missing: write a list of ACLs, or a mapping that has one as `acls`")
    return False


def _list(events: _Events) -> Iterator[LocatedBinding]:
    while not events.is_a(event := events.next(), "SequenceEnd"):
        place = events.place()
        if not events.is_a(event, "MappingStart"):
            raise events.error(
                getattr(event, "value", ""), "is not a mapping, an ACL is one with seven texts"
            )
        fields: dict[str, str] = {}
        while not events.is_a(event := events.next(), "MappingEnd"):
            key = events.text(event, "the name of a field")
            if key in fields:
                raise events.error(key, "occurs twice in one ACL, give it once")
            fields[key] = events.text(events.next(), f"field `{key}`")
        named = dict(zip(field_names(fields, place), fields.values(), strict=True))
        yield LocatedBinding(binding_of_named_fields(named, place), place.line)


def write_yaml(bindings: Iterable[AclBinding]) -> str:
    """Return a mapping with the list as `acls`; names are in double quotes."""
    items = [_item(fields_of(binding)) for binding in bindings]
    return "acls:\n" + "".join(items) if items else "acls: []\n"


_QUOTED: Final = frozenset({"resource_name", "principal", "host"})


def _item(fields: dict[str, str]) -> str:
    lines = [f"{name}: {_quoted(text) if name in _QUOTED else text}\n" for name, text in fields.items()]
    return "  - " + "    ".join(lines)


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join([_escaped(character) for character in text])}"'


def _escaped(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
