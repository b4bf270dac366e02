"""The answer to DescribeAcls, encoded piece by piece: a million ACLs never become a tree of messages."""

from collections.abc import Iterable
from typing import Final

from kustos.acl import AccessControlEntry, AclBinding, ResourcePattern
from kustos.wire import Message, MessageCodec

ENTRIES_REMEMBERED_MAX: Final = 4096
"""Entries whose encoded bytes are cached, since many patterns have equal entries."""

SHARDS: Final = 64
"""Dictionaries that share the patterns: growing one dictionary of a million entries blocks all threads for
30 ms."""


class _Described:
    """A pattern and its encoded entries."""

    __slots__ = ("count", "entries", "pattern")

    def __init__(self, pattern: ResourcePattern) -> None:
        self.pattern = pattern
        self.entries = bytearray()
        self.count = 0


class DescribedAcls:
    """Collects ACLs in any order; `body` groups the entries by pattern and omits patterns without entries."""

    def __init__(self, codec: MessageCodec) -> None:
        self._codec: Final = codec
        self._resource: Final[type[Message]] = codec.root.ELEMENTS["resources"]
        self._acl: Final[type[Message]] = self._resource.ELEMENTS["acls"]
        self._shards: Final[list[dict[tuple[str, int, int], _Described]]] = [{} for _ in range(SHARDS)]
        self._known: Final[dict[tuple[str, str, int, int], bytes]] = {}

    def add(self, bindings: Iterable[AclBinding]) -> None:
        """Add some ACLs."""
        shards = self._shards
        for binding in bindings:
            pattern = binding.pattern
            key = (pattern.name, pattern.resource_type, pattern.pattern_type)
            shard = shards[hash(key) % SHARDS]
            found = shard.get(key)
            if found is None:
                found = shard[key] = _Described(pattern)
            found.entries += self._entry(binding.entry)
            found.count += 1

    def _entry(self, entry: AccessControlEntry) -> bytes:
        key = (entry.principal, entry.host, entry.operation, entry.permission_type)
        data = self._known.get(key)
        if data is None:
            acl = self._acl(
                principal=entry.principal,
                host=entry.host,
                operation=int(entry.operation),
                permission_type=int(entry.permission_type),
            )
            if len(self._known) >= ENTRIES_REMEMBERED_MAX:
                self._known.clear()
            data = self._known[key] = self._codec.encode_with_items(acl, 0, b"")
        return data

    def body(self) -> bytes:
        """Return the body of the answer; do not call `add` afterwards."""
        codec, count, resources = self._codec, 0, bytearray()
        for shard in self._shards:
            count += len(shard)
            while shard:
                # freed one by one: freeing all at once would block every other thread
                _, found = shard.popitem()
                pattern = found.pattern
                resource = self._resource(
                    resource_type=int(pattern.resource_type),
                    resource_name=pattern.name,
                    pattern_type=int(pattern.pattern_type),
                    acls=[],
                )
                resources += codec.encode_with_items(resource, found.count, found.entries)
        return codec.encode_with_items(codec.root(resources=[]), count, resources)
