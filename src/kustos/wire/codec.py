"""Exact codecs of Kafka's messages, compiled from kio's schemas.

kio brings the schemas (every API and version of Kafka 4.3.1) and a native reader; a guard needs more
of a reader than it offers: to know that a frame was consumed to its last byte, that no varint was
over-long, which tagged fields nobody knows, and the bare numbers of times and error codes, so that
what is read can be written again to the letter. So the schemas are kio's and the code that walks them
is generated (`generate.py`), one reader and writer a struct. Tests hold both against kio's.

Reading accepts exactly the canonical encoding, with two liberties that Kafka's own reader has:
tagged fields may be given explicitly at their default, and unknown tagged fields are skipped (they
are reported, so that the caller re-encodes the message without them).
"""

import struct
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from kio.schema.index import PayloadEntityType, api_key_map, schema_name_map
from kio.static.constants import EntityType

from kustos.wire.errors import MalformedMessageError, UnencodableMessageError, UnsupportedMessageError
from kustos.wire.generate import bad, make_reader, make_writer
from kustos.wire.message import Message
from kustos.wire.plan import FieldPlan
from kustos.wire.primitives import read_uvarint, read_uvarint_tail, uvarint

ELEMENTS_PER_MESSAGE_MAX: Final = 10_000_000
"""Array elements in one message at all depths: the metadata of a million partitions has fewer."""


class Decoded(NamedTuple):
    """A message, and whether tagged fields were skipped that its schema does not have."""

    message: Message
    had_unknown_tags: bool


class MessageCodec:
    """Reads and writes one version of one message.

    `struct("TopicProduceData")` gives the class of a nested struct by the name that Kafka's schema
    gives it; calling it with fields makes a value, the missing ones at their defaults.
    """

    def __init__(self, entity: Any) -> None:
        self.name: Final[str] = entity.__name__
        self.flexible: Final[bool] = entity.__flexible__
        self.version: Final[int] = int(entity.__version__)
        self._structs: dict[type, type[Message]] = {}
        self._namespace: dict[str, Any] = {
            "bad": bad,
            "uvarint": read_uvarint,
            "uvarint_tail": read_uvarint_tail,
            "put_uvarint": uvarint,
            "new": object.__new__,
            "NULL16": b"\xff\xff",
            "NULL32": b"\xff\xff\xff\xff",
            "IS_REQUEST_HEADER": entity.__name__ == "RequestHeader",
        }
        self._build(entity)
        self.root: Final = self._structs[entity]
        self._read = self._namespace[f"read_{self.name}"]
        self._write = self._namespace[f"write_{self.name}"]

    def _build(self, entity: Any) -> None:
        plans = [FieldPlan(field) for field in fields(entity)]
        for plan in plans:
            if plan.element is not None and plan.element not in self._structs:
                self._build(plan.element)
        structs = self._structs
        makers = {plan.name: plan.default_maker(structs) for plan in plans}

        def init(self: Message, **given: Any) -> None:
            for name, make in makers.items():
                setattr(self, name, given.pop(name) if name in given else make())
            if given:
                raise TypeError(f"{entity.__name__} has no field `{next(iter(given))}` in this version")

        names = tuple(plan.name for plan in plans)
        elements = {plan.name: structs[plan.element] for plan in plans if plan.element is not None}
        nullable = frozenset(plan.name for plan in plans if plan.nullable)
        body = {
            "__slots__": names,
            "FIELDS": names,
            "ELEMENTS": elements,
            "NULLABLE": nullable,
            "__init__": init,
        }
        made = type(entity.__name__, (Message,), body)
        structs[entity] = made
        self._namespace[entity.__name__] = made
        for plan in plans:
            if plan.tag is not None:
                self._namespace[f"default_{entity.__name__}_{plan.name}"] = makers[plan.name]
        make_reader(plans, entity.__name__, self._namespace, self.flexible)
        make_writer(plans, entity.__name__, self._namespace, self.flexible)

    def struct(self, name: str) -> type[Message]:
        """Return the class of the nested struct with this schema name; KeyError if there is none."""
        made: type[Message] = self._namespace[name]
        return made

    def read(
        self, buffer: bytes, offset: int = 0, element_limit: int = ELEMENTS_PER_MESSAGE_MAX
    ) -> tuple[Message, int, bool]:
        """Return (message, offset after it, whether unknown tags were skipped).

        Raise `MalformedMessageError` for anything that is not the canonical encoding, and for more
        array elements than `element_limit`, before they are built.
        """
        unknown: list[int] = [element_limit]
        try:
            message, position = self._read(buffer, offset, len(buffer), unknown)
        except (IndexError, struct.error):
            raise MalformedMessageError(f"`{self.name}` v{self.version} ends too early") from None
        except UnicodeDecodeError:
            raise MalformedMessageError(
                f"`{self.name}` v{self.version} has a string that is not UTF-8"
            ) from None
        except MalformedMessageError as error:
            raise MalformedMessageError(f"`{self.name}` v{self.version}: {error}") from None
        return message, position, len(unknown) > 1

    def decode(self, buffer: bytes, offset: int = 0) -> Decoded:
        """Return the message that fills the buffer from `offset` to its end, and nothing else."""
        message, position, had_unknown_tags = self.read(buffer, offset)
        if position != len(buffer):
            raise MalformedMessageError(
                f"{len(buffer) - position} bytes follow after `{self.name}` v{self.version}"
            )
        return Decoded(message, had_unknown_tags)

    def encode(self, message: Message) -> bytes:
        """Return the canonical bytes; raise `UnencodableMessageError` where a value has no place."""
        out = bytearray()
        try:
            self._write(message, out)
        except (ValueError, AttributeError, struct.error, TypeError) as error:
            raise UnencodableMessageError(f"`{self.name}` v{self.version}: {error}") from error
        return bytes(out)

    def new(self, **values: Any) -> Message:
        """Return a message with these fields, the others at their defaults."""
        return self.root(**values)


@cache
def _codec(api_key: int, version: int, kind: PayloadEntityType) -> MessageCodec:
    name = api_key_map.get(api_key)
    location = schema_name_map.get(name, {}).get(version, {}).get(kind) if name is not None else None
    if location is None:
        raise UnsupportedMessageError(f"no schema for {kind.name} of API {api_key} version {version}")
    module, _, entity = location.partition(":")
    return MessageCodec(getattr(import_module(module), entity))


def request_codec(api_key: int, version: int) -> MessageCodec:
    """Return the codec of a request body; raise `UnsupportedMessageError` if Kafka 4.3.1 has none."""
    return _codec(api_key, version, EntityType.request)


def response_codec(api_key: int, version: int) -> MessageCodec:
    """Return the codec of a response body; raise `UnsupportedMessageError` if Kafka 4.3.1 has none."""
    return _codec(api_key, version, EntityType.response)


@cache
def codec_versions(api_key: int) -> tuple[int, int] | None:
    """Return the lowest and highest version that can be read, None for an unknown API."""
    name = api_key_map.get(api_key)
    if name is None:
        return None
    versions = [version for version, kinds in schema_name_map[name].items() if EntityType.request in kinds]
    return min(versions), max(versions)
