"""Fast reader for the ACLs of a snapshot, a batch at a time; same result as record by record.

A million ACLs have far fewer distinct patterns and entries. Each is cached by its encoded bytes, and parsed
only once; so equal parts are also one object. A batch with any other content, or any irregularity, is left to
the general reader and its errors.
"""

from typing import Final
from uuid import UUID, SafeUUID

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.wire import RawBatch

REMEMBERED_PARTS_MAX: Final = 65_536
"""The maximum number of patterns, and of entries, cached by their bytes; a full cache is cleared."""

Acls = list[tuple[UUID, AclBinding]]

_ACL_HEAD: Final = b"\x01\x12\x00"
"""Frame version 1, kind 18, version 0."""
_ID_AT: Final = 3
_TYPE_AT: Final = 19
_NAME_AT: Final = 21
_NULL_KEY: Final = 1

# codes of filters and unknown codes are left to the general reader
_RESOURCE_TYPES: Final = {each.value: each for each in ResourceType if each > ResourceType.ANY}
_PATTERN_TYPES: Final = {each.value: each for each in (PatternType.LITERAL, PatternType.PREFIXED)}
_OPERATIONS: Final = {each.value: each for each in AclOperation if each > AclOperation.ANY}
_PERMISSIONS: Final = {each.value: each for each in (AclPermissionType.ALLOW, AclPermissionType.DENY)}

# skip the constructors: the tables above do their checks, and they take most of the time
_put: Final = object.__setattr__
_UNSAFE: Final = SafeUUID.unknown


class BulkAcls:
    """Reads batches of one snapshot."""

    __slots__ = ("_entries", "_patterns")

    def __init__(self) -> None:
        self._patterns: dict[bytes, ResourcePattern] = {}
        self._entries: dict[bytes, AccessControlEntry] = {}

    def read(self, batch: RawBatch) -> Acls | None:
        """Return the ACLs of a batch with only ACLs, None if the general reader must read it."""
        try:
            return self._read(batch)
        except (IndexError, KeyError, UnicodeDecodeError):
            return None

    def _read(self, batch: RawBatch) -> Acls | None:
        data, position, end = batch.buffer, batch.records_start, batch.end
        patterns, entries = self._patterns, self._entries
        new_id, new_binding, starts = UUID.__new__, AclBinding.__new__, data.startswith
        acls: Acls = []
        for delta in range(batch.count):
            size, position = data[position], position + 1
            if size >= 0x80:
                size, position = _two_bytes(size, data[position]), position + 1
            record_end = position + (size >> 1)
            # attributes and timestamp delta are 0, the offset delta counts up
            head = _HEADS[delta]
            if size & 1 or record_end > end or not starts(head, position):
                return None
            position += len(head)
            size, position = data[position], position + 1
            if size >= 0x80:
                size, position = _two_bytes(size, data[position]), position + 1
            value_end = position + (size >> 1)
            # no headers follow
            if size & 1 or value_end + 1 != record_end or data[value_end] or not starts(_ACL_HEAD, position):
                return None
            name_size = data[position + _NAME_AT - 1]
            pattern_end = position + _NAME_AT + name_size
            if not 0 < name_size < 0x80 or pattern_end >= value_end:
                return None
            pattern_bytes, entry_bytes = data[position + _TYPE_AT : pattern_end], data[pattern_end:value_end]
            acl_id, binding = new_id(UUID), new_binding(AclBinding)
            _put(acl_id, "int", int.from_bytes(data[position + _ID_AT : position + _TYPE_AT]))
            _put(acl_id, "is_safe", _UNSAFE)
            _put(binding, "pattern", patterns.get(pattern_bytes) or self._pattern(pattern_bytes))
            _put(binding, "entry", entries.get(entry_bytes) or self._entry(entry_bytes))
            acls.append((acl_id, binding))
            position = record_end
        return acls if position == end else None

    def _pattern(self, data: bytes) -> ResourcePattern:
        pattern = ResourcePattern.__new__(ResourcePattern)
        _put(pattern, "resource_type", _RESOURCE_TYPES[data[0]])
        _put(pattern, "name", data[2:-1].decode())
        _put(pattern, "pattern_type", _PATTERN_TYPES[data[-1]])
        if len(self._patterns) >= REMEMBERED_PARTS_MAX:
            self._patterns.clear()
        self._patterns[data] = pattern
        return pattern

    def _entry(self, data: bytes) -> AccessControlEntry:
        principal_end = data[0]
        host_end = principal_end + data[principal_end]
        # a size of 128 or more is written in two bytes; then operation, permission and no tags
        if not (0 < principal_end < 0x80 and 0 < data[principal_end] < 0x80) or len(data) != host_end + 3:
            raise KeyError(principal_end)
        if data[-1]:
            raise KeyError(host_end)
        entry = AccessControlEntry.__new__(AccessControlEntry)
        _put(entry, "principal", data[1:principal_end].decode())
        _put(entry, "host", data[principal_end + 1 : host_end].decode())
        _put(entry, "operation", _OPERATIONS[data[-3]])
        _put(entry, "permission_type", _PERMISSIONS[data[-2]])
        if len(self._entries) >= REMEMBERED_PARTS_MAX:
            self._entries.clear()
        self._entries[data] = entry
        return entry


def _two_bytes(first: int, second: int) -> int:
    """Return the unsigned value of a two-byte varint, or 1, which is not a valid size, if it is longer."""
    return first & 0x7F | second << 7 if 0 < second < 0x80 else 1


def _head(delta: int) -> bytes:
    number = delta << 1
    tail = bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])
    return b"\x00\x00" + tail + bytes([_NULL_KEY])


_HEADS: Final = tuple(map(_head, range(1024)))
"""Encoded heads of records without key and timestamp delta, by index in the batch; Kafka writes at most
1024."""
