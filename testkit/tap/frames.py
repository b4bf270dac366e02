"""Kafka frames read with kio alone, so that what checks kustos does not share its readers."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any
from uuid import UUID

from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader
from kio.static.constants import EntityType

from testkit.tap.newer_messages import newer_entity

API_VERSIONS = 18
NO_TIME, A_TIME = b"\xff" * 8, bytes(8)
TOKEN_APIS = {38, 39, 40}
"""Where Kafka says -1 for no time at all, which kio cannot read."""


@dataclass(frozen=True)
class Request:
    """A request frame without its length, read to its last byte."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any


@cache
def entity(api_key: int, version: int, kind: EntityType) -> Any:
    """Return kio's class of a request or response, or one like it if kio does not know the message."""
    name = api_key_map.get(api_key)
    if name is None or version not in schema_name_map[name]:
        return newer_entity(api_key, version, kind)
    locations: Mapping[Any, str] = schema_name_map[name][version]
    module, _, class_name = locations[kind].partition(":")
    return getattr(import_module(module), class_name)


@cache
def reader(api_key: int, version: int, kind: EntityType) -> Any:
    return entity_reader(entity(api_key, version, kind))


def read_request(frame: bytes) -> Request:
    """Read a frame strictly: no tagged header fields, nothing behind the body."""
    api_key, version, correlation_id, size = struct.unpack_from(">hhih", frame)
    position = 10
    client_id = None
    if size >= 0:
        client_id = frame[position : position + size].decode()
        position += size
    if entity(api_key, version, EntityType.request).__flexible__:
        if frame[position] != 0:
            raise ValueError("a forwarded header has tagged fields")
        position += 1
    body, length = reader(api_key, version, EntityType.request)(frame, position)
    if position + length != len(frame):
        raise ValueError(f"{len(frame) - position - length} bytes follow the body")
    return Request(api_key, version, correlation_id, client_id, body)


def read_response(frame: bytes, api_key: int, version: int) -> tuple[int, Any]:
    """Return (correlation id, body) of a frame without its length, read strictly."""
    position = 4
    if entity(api_key, version, EntityType.response).__flexible__ and api_key != API_VERSIONS:
        if frame[position] != 0:
            raise ValueError("a response header has tagged fields")
        position += 1
    readable = frame.replace(NO_TIME, A_TIME) if api_key in TOKEN_APIS else frame
    body, length = reader(api_key, version, EntityType.response)(readable, position)
    if position + length != len(frame):
        raise ValueError(f"{len(frame) - position - length} bytes follow the body")
    return struct.unpack_from(">i", frame)[0], body


def code(item: Any) -> int:
    """Return an error code as its number."""
    return int(getattr(item.error_code, "value", item.error_code))


def topic_key(item: Any) -> str | bytes:
    """Return how an item names its topic: the 16-byte id where that is what it has, else the name."""
    name = next((getattr(item, field) for field in ("name", "topic") if hasattr(item, field)), None)
    if name:
        return str(name)
    topic_id: UUID | None = getattr(item, "topic_id", None)
    if topic_id is None:
        return str(name) if name is not None else bytes(16)
    return topic_id.bytes


def is_transactional(records: bytes) -> bool | None:
    """Return whether a batch of the payload is transactional, None where it cannot be walked."""
    position = 0
    while position < len(records):
        if len(records) - position < 61:
            return None
        length, _, magic, _, attributes = struct.unpack_from(">iibIh", records, position + 8)
        if magic != 2 or length < 49 or position + 12 + length > len(records):
            return None
        if attributes & 0x10:
            return True
        position += 12 + length
    return False
