"""Exact codecs of Kafka's messages, compiled from their schemas.

An authorizing proxy needs more from a reader than other libraries offer. It must prove that a frame was
consumed to its last byte and that no varint was over-long, report unknown tagged fields, and return times and
error codes as integers, so that a message can be encoded again byte for byte. So kustos keeps Kafka's schemas
as text (`schemas`) and generates the code for them (`generate.py`), one reader and writer per struct. Tests
compare both with kio's.

Readers accept only the canonical encoding, with two exceptions, as in Kafka's own reader: tagged fields may
explicitly have their default, and unknown tagged fields are skipped and reported, so that the caller encodes
the message without them.
"""

import struct
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from kustos.wire.generate import (
    make_init,
    make_reader,
    make_split_reader,
    make_tags_writer,
    make_writer,
)
from kustos.wire.message import Message
from kustos.wire.outlines import make_outliner
from kustos.wire.primitives import (
    MalformedMessageError,
    TooManyElementsError,
    UnencodableMessageError,
    UnsupportedMessageError,
    read_uvarint,
    read_uvarint_tail,
    uvarint,
)
from kustos.wire.schemas import APIS, Field, Kind, Struct, schema_of
from kustos.wire.source import bad, short, too_many

ELEMENTS_PER_MESSAGE_MAX: Final = 10_000_000
"""The maximum number of array elements and tagged fields in one message, at all depths; the metadata of a
million partitions has fewer."""

READER_ERRORS: Final = (IndexError, struct.error, UnicodeDecodeError, MalformedMessageError)
"""The exceptions of a generated reader, which `MessageCodec.error_of` translates."""


WRITER_ERRORS: Final = (ValueError, AttributeError, struct.error, TypeError)
"""The exceptions of a generated writer for a value that it cannot encode."""


class Decoded(NamedTuple):
    """A message, and whether tagged fields unknown to its schema were skipped."""

    message: Message
    had_unknown_tags: bool


class SplitReader(NamedTuple):
    """Reads a struct in two parts: before and after one field, which the caller reads or skips.

    `head(buffer, position, end, limits)` returns ((struct, length of the field), position), and `tail(struct,
    buffer, position, end, limits)` returns (struct, position). `limits` is a list with one number, the
    maximum number of elements and tagged fields; unknown tags are appended to it. Both raise
    `EndsEarlyError`, `IndexError` or `struct.error` if the buffer ends too early.
    """

    head: Callable[[bytes, int, int, list[int]], tuple[tuple[Message, int], int]]
    tail: Callable[[Message, bytes, int, int, list[int]], tuple[Message, int]]


class MessageCodec:
    """Reads and writes one version of one message.

    `struct("TopicProduceData")` returns the class of a nested struct by its name in Kafka's schema; call it
    with fields to create a value, with defaults for missing fields. `newest` is the same message in its
    newest version: as in Kafka's reader, tagged fields that only the newest version has are refused.
    """

    def __init__(self, schema: Struct, newest: Struct | None = None) -> None:
        self.name: Final = schema.name
        self.flexible: Final = schema.flexible
        self.version: Final = schema.version
        self._fields: dict[str, tuple[Field, ...]] = {}
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
        }
        self._newest_tags: Final = {} if newest is None else dict(newest.tags_by_struct())
        self._build(schema)
        self.root: Final[type[Message]] = self._namespace[self.name]
        self._read = self._namespace[f"read_{self.name}"]
        self._write = self._namespace[f"write_{self.name}"]

    def _build(self, schema: Struct) -> None:
        fields, name, namespace = schema.fields, schema.name, self._namespace
        for field in fields:
            if field.element is not None and field.element.name not in self._fields:
                self._build(field.element)
        self._fields[name] = fields
        makers = {field.name: field.default_maker(namespace) for field in fields}

        names = tuple(field.name for field in fields)
        elements = {
            field.name: namespace[field.element.name] for field in fields if field.element is not None
        }
        body = {
            "__slots__": names,
            "FIELDS": names,
            "ELEMENTS": elements,
            "NULLABLE": frozenset(field.name for field in fields if field.nullable),
            "UUIDS": frozenset(field.name for field in fields if field.kind == "uuid"),
            "__init__": make_init(name, makers),
        }
        namespace[name] = type(name, (Message,), body)
        for field in fields:
            if field.tag is not None:
                namespace[f"default_{name}_{field.name}"] = makers[field.name]
                # writers compare values with this instance, which is never changed
                namespace[f"unset_{name}_{field.name}"] = makers[field.name]()
        make_reader(fields, name, namespace, self.flexible, self._other_tags(name))
        make_writer(fields, name, namespace, self.flexible)

    def _other_tags(self, name: str) -> frozenset[int]:
        """Return the tags of a struct that only other versions have."""
        own = frozenset(field.tag for field in self._fields[name] if field.tag is not None)
        return self._newest_tags.get(name, frozenset()) - own

    def in_parts(
        self, action: Literal["read", "write"], struct: str | None = None
    ) -> Callable[..., Generator[None, None, Any]]:
        """Return the generated `read_<name>_in_parts` or `write_<name>_in_parts` of the message.

        `struct`: of a nested struct, whose elements have arrays.
        """
        if f"{action}_{self.name}_in_parts" not in self._namespace:
            root = self.name
            # a struct whose elements have no arrays is read and written as a whole
            names = {root} | {
                name
                for name, fields in self._fields.items()
                if any(
                    field.element is not None and (field.is_array or field.element.has_array)
                    for field in fields
                )
            }
            for name in names:
                fields = self._fields[name]
                make_reader(fields, name, self._namespace, self.flexible, self._other_tags(name), names)
                make_writer(fields, name, self._namespace, self.flexible, names)
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

        Raise `MalformedMessageError` if the encoding is not canonical, and `TooManyElementsError`, before
        reading them, for more than `element_limit` array elements and tagged fields.
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
        """Translate an error of a generated reader (`READER_ERRORS`), with the message's name."""
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
        """Return the error for a message that ends before the end of its buffer."""
        return MalformedMessageError(f"{count} bytes follow after `{self.name}` v{self.version}")

    def unencodable(self, error: Exception) -> UnencodableMessageError:
        """Translate an error of a generated writer (`WRITER_ERRORS`), with the message's name."""
        return UnencodableMessageError(f"`{self.name}` v{self.version}: {error}")

    def split(self, struct_type: type[Message], at: str) -> "SplitReader":
        """Return the readers of the parts before and after the field `at` of a struct: an array, or bytes."""
        name = struct_type.__name__
        if f"head_{name}" not in self._namespace:
            make_split_reader(self._fields[name], name, self._namespace, self.flexible, at)
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
        """Return a function that finds the field `at` of a nested struct and the end of the struct, without
        other checks.

        Arguments and errors are the same as for a `reader`.
        """
        name = struct_type.__name__
        if f"outline_{name}" not in self._namespace:
            for inner in reversed(self._nested(struct_type)):
                fields = self._fields[inner.__name__]
                make_outliner(fields, inner.__name__, self._namespace, self.flexible)
            make_outliner(self._fields[name], name, self._namespace, self.flexible, at)
        outline: Callable[[bytes, int, int, list[int]], tuple[Any, int]] = self._namespace[f"outline_{name}"]
        return outline

    def _nested(self, struct_type: type[Message]) -> list[type[Message]]:
        """Return the structs within a struct, each before those within it."""
        found = list(struct_type.ELEMENTS.values())
        return [each for inner in found for each in (inner, *self._nested(inner))]

    def untagged(self, struct_type: type[Message]) -> list[str]:
        """Return the untagged fields of a struct, in order."""
        return [field.name for field in self._fields[struct_type.__name__] if field.tag is None]

    def encode_tags(self, message: Message) -> bytes:
        """Return the encoded tagged fields at the end of a struct in a flexible version, with their number
        first."""
        name = type(message).__name__
        if f"tags_{name}" not in self._namespace:
            make_tags_writer(self._fields[name], name, self._namespace)
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
        """Return the bytes of a struct of this message whose last field consists of encoded items.

        That field is an array, empty in `value`. So a message that is too large for one turn of the event
        loop can be encoded in parts; a count of 0 gives the plain struct. Raise `UnencodableMessageError`.
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
        """Return a message with these fields and defaults for all others."""
        return self.root(**values)


def _schema(api_key: int, version: int, kind: Kind) -> Struct:
    found = schema_of(api_key, version, kind)
    if found is None:
        raise UnsupportedMessageError(f"no schema for {kind} of API {api_key} version {version}")
    return found


@cache
def request_codec(api_key: int, version: int) -> MessageCodec:
    """Return the codec of a request body; raise `UnsupportedMessageError` if Kafka 4.3.1 has none."""
    schema = _schema(api_key, version, "request")
    return MessageCodec(schema, _schema(api_key, APIS[api_key].last, "request"))


@cache
def response_codec(api_key: int, version: int) -> MessageCodec:
    """Return the codec of a response body; raise `UnsupportedMessageError` if Kafka 4.3.1 has none."""
    return MessageCodec(_schema(api_key, version, "response"))


def codec_versions(api_key: int) -> tuple[int, int] | None:
    """Return the lowest and highest version that can be read, None for an unknown API."""
    api = APIS.get(api_key)
    return None if api is None else (api.first, api.last)
