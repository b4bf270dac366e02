"""Exact codecs of Kafka's messages, compiled from kio's schemas.

kio brings the schemas (every API and version of Kafka 4.3.1) and a native reader; an authorizing proxy needs
more from a reader: proof that a frame was consumed to its last byte and that no varint was over-long, the
unknown tagged fields, and times and error codes as bare numbers, so that a message can be re-encoded byte for
byte. So the schemas are kio's and the code that walks them is generated (`generate.py`), one reader and
writer per struct. Tests compare both with kio's.

Reading accepts exactly the canonical encoding, with two liberties that Kafka's own reader has:
tagged fields may be given explicitly at their default, and unknown tagged fields are skipped (they
are reported, so that the caller re-encodes the message without them).
"""

import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple

from kio.schema.index import PayloadEntityType, api_key_map, schema_name_map
from kio.static.constants import EntityType

from kustos.wire.errors import (
    MalformedMessageError,
    TooManyElementsError,
    UnencodableMessageError,
    UnsupportedMessageError,
)
from kustos.wire.generate import (
    make_init,
    make_reader,
    make_split_reader,
    make_tags_writer,
    make_writer,
)
from kustos.wire.message import Message
from kustos.wire.outlines import make_outliner
from kustos.wire.plan import FieldPlan
from kustos.wire.primitives import read_uvarint, read_uvarint_tail, uvarint
from kustos.wire.source import bad, has_array, short, too_many

ELEMENTS_PER_MESSAGE_MAX: Final = 10_000_000
"""Most array elements and tagged fields in one message, at all depths; the metadata of a million partitions
has fewer."""

READER_ERRORS: Final = (IndexError, struct.error, UnicodeDecodeError, MalformedMessageError)
"""What a generated reader raises; `MessageCodec.error_of` says what it means."""


WRITER_ERRORS: Final = (ValueError, AttributeError, struct.error, TypeError)
"""What a generated writer raises for a value that does not fit."""


class Decoded(NamedTuple):
    """A message, and whether tagged fields unknown to its schema were skipped."""

    message: Message
    had_unknown_tags: bool


class SplitReader(NamedTuple):
    """Reads a struct in two parts, around one field of it that the caller reads or lets pass.

    `head(buffer, position, end, limits)` returns ((struct, length of the field), position), and
    `tail(struct, buffer, position, end, limits)` returns (struct, position). `limits` is a list of one
    number, of elements and tagged fields that may be read; unknown tags are appended to it. Both raise
    `EndsEarlyError`, `IndexError` or `struct.error` if the buffer ends too early.
    """

    head: Callable[[bytes, int, int, list[int]], tuple[tuple[Message, int], int]]
    tail: Callable[[Message, bytes, int, int, list[int]], tuple[Message, int]]


class MessageCodec:
    """Reads and writes one version of one message.

    `struct("TopicProduceData")` returns the class of a nested struct by its name in Kafka's schema; call it
    with fields to make a value, with defaults for the missing ones. `newest` is the same message in its
    newest version: tagged fields that only that one has are refused, as Kafka's reader does.
    """

    def __init__(self, entity: Any, newest: Any = None) -> None:
        self.name: Final[str] = entity.__name__
        self.flexible: Final[bool] = entity.__flexible__
        self.version: Final[int] = int(entity.__version__)
        self._structs: dict[type, type[Message]] = {}
        self._plans: dict[str, list[FieldPlan]] = {}
        self._namespace: dict[str, Any] = {
            "bad": bad,
            "short": short,
            "too_many": too_many,
            "uvarint": read_uvarint,
            "uvarint_tail": read_uvarint_tail,
            "put_uvarint": uvarint,
            "new": object.__new__,
            "NULL16": b"\xff\xff",
            "NULL32": b"\xff\xff\xff\xff",
            "IS_REQUEST_HEADER": entity.__name__ == "RequestHeader",
        }
        self._newest_tags: Final = {} if newest is None else dict(_tags_by_struct(newest))
        self._build(entity)
        self.root: Final = self._structs[entity]
        self._read = self._namespace[f"read_{self.name}"]
        self._write = self._namespace[f"write_{self.name}"]

    def _build(self, entity: Any) -> None:
        plans = [FieldPlan(field) for field in fields(entity)]
        for plan in plans:
            if plan.element is not None and plan.element not in self._structs:
                self._build(plan.element)
        self._plans[entity.__name__] = plans
        structs = self._structs
        makers = {plan.name: plan.default_maker(structs) for plan in plans}

        names = tuple(plan.name for plan in plans)
        elements = {plan.name: structs[plan.element] for plan in plans if plan.element is not None}
        nullable = frozenset(plan.name for plan in plans if plan.nullable)
        body = {
            "__slots__": names,
            "FIELDS": names,
            "ELEMENTS": elements,
            "NULLABLE": nullable,
            "UUIDS": frozenset(plan.name for plan in plans if plan.kind == "uuid"),
            "__init__": make_init(entity.__name__, makers),
        }
        struct_type = type(entity.__name__, (Message,), body)
        structs[entity] = struct_type
        self._namespace[entity.__name__] = struct_type
        for plan in plans:
            if plan.tag is not None:
                self._namespace[f"default_{entity.__name__}_{plan.name}"] = makers[plan.name]
                # writers compare with this one, which nobody changes
                self._namespace[f"unset_{entity.__name__}_{plan.name}"] = makers[plan.name]()
        make_reader(plans, entity.__name__, self._namespace, self.flexible, self._other_tags(entity.__name__))
        make_writer(plans, entity.__name__, self._namespace, self.flexible)

    def _other_tags(self, name: str) -> frozenset[int]:
        """Return the tags of a struct that only other versions have."""
        own = frozenset(plan.tag for plan in self._plans[name] if plan.tag is not None)
        return self._newest_tags.get(name, frozenset()) - own

    def in_parts(
        self, action: Literal["read", "write"], struct: str | None = None
    ) -> Callable[..., Generator[None, None, Any]]:
        """Return the generated `read_<name>_in_parts` or `write_<name>_in_parts` of the message.

        `struct`: of a nested struct, whose elements have arrays.
        """
        if f"{action}_{self.name}_in_parts" not in self._namespace:
            root = self.name
            # a struct whose elements have no arrays is read and written in one go
            names = {root} | {
                name
                for name, plans in self._plans.items()
                if any(
                    plan.element is not None and (plan.is_array or has_array(plan.element)) for plan in plans
                )
            }
            for name in names:
                plans = self._plans[name]
                make_reader(plans, name, self._namespace, self.flexible, self._other_tags(name), names)
                make_writer(plans, name, self._namespace, self.flexible, names)
        made: Callable[..., Generator[None, None, Any]]
        made = self._namespace[f"{action}_{struct or self.name}_in_parts"]
        return made

    def struct(self, name: str) -> type[Message]:
        """Return the class of the nested struct with this schema name; KeyError if there is none."""
        struct_type: type[Message] = self._namespace[name]
        return struct_type

    def read(
        self, buffer: bytes, offset: int = 0, element_limit: int = ELEMENTS_PER_MESSAGE_MAX
    ) -> tuple[Message, int, bool]:
        """Return (message, offset after it, whether unknown tags were skipped).

        Raise `MalformedMessageError` for anything but the canonical encoding, and `TooManyElementsError`,
        before reading them, for more than `element_limit` array elements and tagged fields.
        """
        unknown: list[int] = [element_limit]
        try:
            message, position = self._read(buffer, offset, len(buffer), unknown)
        except READER_ERRORS as error:
            raise self.error_of(error, element_limit) from None
        return message, position, len(unknown) > 1

    def error_of(
        self, error: Exception, element_limit: int = ELEMENTS_PER_MESSAGE_MAX
    ) -> MalformedMessageError:
        """Return what a generated reader's error, one of `READER_ERRORS`, means, with the message's name."""
        name = f"`{self.name}` v{self.version}"
        match error:
            case UnicodeDecodeError():
                return MalformedMessageError(f"{name} has a string that is not UTF-8")
            case TooManyElementsError():
                return TooManyElementsError(f"{name} has more than {element_limit} elements")
            case MalformedMessageError():
                return MalformedMessageError(f"{name}: {error}")
        return MalformedMessageError(f"{name} ends too early")

    def decode(
        self, buffer: bytes, offset: int = 0, element_limit: int = ELEMENTS_PER_MESSAGE_MAX
    ) -> Decoded:
        """Return the message that exactly fills the buffer from `offset` to its end.

        Raises as `read` does.
        """
        message, position, had_unknown_tags = self.read(buffer, offset, element_limit)
        if position != len(buffer):
            raise self.bytes_follow(len(buffer) - position)
        return Decoded(message, had_unknown_tags)

    def bytes_follow(self, count: int) -> MalformedMessageError:
        """Return the error for a message that ends before its buffer."""
        return MalformedMessageError(f"{count} bytes follow after `{self.name}` v{self.version}")

    def unencodable(self, error: Exception) -> UnencodableMessageError:
        """Return what a generated writer's error, one of `WRITER_ERRORS`, means, with the message's name."""
        return UnencodableMessageError(f"`{self.name}` v{self.version}: {error}")

    def split(self, struct_type: type[Message], at: str) -> "SplitReader":
        """Return the readers of what is around the field `at` of a struct: an array, or bytes."""
        name = struct_type.__name__
        if f"head_{name}" not in self._namespace:
            make_split_reader(self._plans[name], name, self._namespace, self.flexible, at)
        return SplitReader(self._namespace[f"head_{name}"], self._namespace[f"tail_{name}"])

    def reader(
        self, struct_type: type[Message]
    ) -> Callable[[bytes, int, int, list[int]], tuple[Message, int]]:
        """Return the reader of a nested struct, with the arguments and errors of the parts of a `split`."""
        read: Callable[[bytes, int, int, list[int]], tuple[Message, int]] = self._namespace[
            f"read_{struct_type.__name__}"
        ]
        return read

    def outliner(
        self, struct_type: type[Message], at: str
    ) -> Callable[[bytes, int, int, list[int]], tuple[Any, int]]:
        """Return what finds the field `at` of a nested struct and where it ends, and checks nothing else.

        Arguments and errors are those of a `reader`.
        """
        name = struct_type.__name__
        if f"outline_{name}" not in self._namespace:
            for inner in reversed(self._nested(struct_type)):
                plans = self._plans[inner.__name__]
                make_outliner(plans, inner.__name__, self._namespace, self.flexible)
            make_outliner(self._plans[name], name, self._namespace, self.flexible, at)
        outline: Callable[[bytes, int, int, list[int]], tuple[Any, int]] = self._namespace[f"outline_{name}"]
        return outline

    def _nested(self, struct_type: type[Message]) -> list[type[Message]]:
        """Return the structs within a struct, each before those within it."""
        found = list(struct_type.ELEMENTS.values())
        return [each for inner in found for each in (inner, *self._nested(inner))]

    def untagged(self, struct_type: type[Message]) -> list[str]:
        """Return the fields of a struct that are always there, in order."""
        return [plan.name for plan in self._plans[struct_type.__name__] if plan.tag is None]

    def encode_tags(self, message: Message) -> bytes:
        """Return the tagged fields of a struct as they end it in a flexible version: their number first."""
        name = type(message).__name__
        if f"tags_{name}" not in self._namespace:
            make_tags_writer(self._plans[name], name, self._namespace)
        out = bytearray()
        self._namespace[f"tags_{name}"](message, out)
        return bytes(out)

    def encode(self, message: Message) -> bytes:
        """Return the canonical bytes; raise `UnencodableMessageError` for a value that does not fit."""
        out = bytearray()
        try:
            self._write(message, out)
        except WRITER_ERRORS as error:
            raise self.unencodable(error) from error
        return bytes(out)

    def encode_with_items(self, value: Message, count: int, items: bytes | bytearray) -> bytes:
        """Return the bytes of a struct of this message whose last field holds already encoded items.

        That field is an array, empty in `value`. This lets a message too large for one turn of an event loop
        be written piece by piece; a count of 0 gives the plain struct. Raise `UnencodableMessageError`.
        """
        out = bytearray()
        try:
            self._namespace[f"write_{type(value).__name__}"](value, out)
        except WRITER_ERRORS as error:
            raise self.unencodable(error) from error
        if not count:
            return bytes(out)
        # no tagged fields follow
        empty, mark, tags = (
            (b"\x01\x00", uvarint(count + 1), b"\x00")
            if self.flexible
            else (b"\x00\x00\x00\x00", count.to_bytes(4, "big"), b"")
        )
        if not out.endswith(empty):
            raise UnencodableMessageError(f"`{type(value).__name__}` does not end with an empty array")
        del out[-len(empty) :]
        return b"".join((out, mark, items, tags))

    def new(self, **values: Any) -> Message:
        """Return a message with these fields, the others at their defaults."""
        return self.root(**values)


def _entity(api_key: int, version: int, kind: PayloadEntityType) -> Any:
    name = api_key_map.get(api_key)
    location = schema_name_map.get(name, {}).get(version, {}).get(kind) if name is not None else None
    if location is None:
        raise UnsupportedMessageError(f"no schema for {kind.name} of API {api_key} version {version}")
    module, _, entity = location.partition(":")
    return getattr(import_module(module), entity)


def load_schemas(api_key: int, version: int) -> None:
    """Load the schemas of an API's version from disk; raise `UnsupportedMessageError` if there are none."""
    for kind in (EntityType.request, EntityType.response):
        _entity(api_key, version, kind)


def _tags_by_struct(entity: Any) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield the name and the tags of a struct and of every struct in it."""
    plans = [FieldPlan(field) for field in fields(entity)]
    yield entity.__name__, frozenset(plan.tag for plan in plans if plan.tag is not None)
    for plan in plans:
        if plan.element is not None:
            yield from _tags_by_struct(plan.element)


@cache
def request_codec(api_key: int, version: int) -> MessageCodec:
    """Return the codec of a request body; raise `UnsupportedMessageError` if Kafka 4.3.1 has none."""
    entity = _entity(api_key, version, EntityType.request)
    newest = (codec_versions(api_key) or (version, version))[1]
    return MessageCodec(entity, _entity(api_key, newest, EntityType.request))


@cache
def response_codec(api_key: int, version: int) -> MessageCodec:
    """Return the codec of a response body; raise `UnsupportedMessageError` if Kafka 4.3.1 has none."""
    return MessageCodec(_entity(api_key, version, EntityType.response))


@cache
def codec_versions(api_key: int) -> tuple[int, int] | None:
    """Return the lowest and highest version that can be read, None for an unknown API."""
    name = api_key_map.get(api_key)
    if name is None:
        return None
    versions = [version for version, kinds in schema_name_map[name].items() if EntityType.request in kinds]
    return min(versions), max(versions)
