"""The rings of a process: its own, and the rings of processes that will not return."""

import hashlib
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import structlog

from kustos.gateway.audit.events import AuditEvents
from kustos.gateway.audit.ring import SIZE_BYTES, AuditRing
from kustos.runtime import words_of

LOG: Final = structlog.get_logger("kustos.audit")


@dataclass(frozen=True, slots=True)
class AuditRings:
    """`own` takes the events of this process. The events in `left` are written too, then their files are
    removed."""

    own: AuditRing = field(default_factory=lambda: AuditRing(SIZE_BYTES))
    left: list[AuditRing] = field(default_factory=list)

    @classmethod
    def open(
        cls,
        directory: Path,
        name: str,
        living: Collection[str] | None,
        events: AuditEvents,
        *,
        is_durable: bool = True,
    ) -> Self:
        """Return the rings of the process of this name; raise `AuditRingError`, with all files unchanged.

        `left` has the rings of names that are not in `living`; if `living` is None, it has no ring of another
        name. Unless `is_durable`, the process's own ring is in memory, and `left` also has the ring of an
        earlier process of the same name.
        """
        owner = _owner(events)
        rings: list[AuditRing] = []
        try:
            rings.append(AuditRing.open(directory / name, owner) if is_durable else AuditRing(SIZE_BYTES))
            for path in sorted(directory.iterdir()) if directory.is_dir() else ():
                if path.name == name:
                    is_left = not is_durable
                else:
                    is_left = living is not None and path.name not in living
                if is_left and not _is_blank(path):
                    rings.append(AuditRing.open_left(path, owner))
            return cls(rings[0], rings[1:])
        except BaseException:
            for each in rings:
                each.close()
            raise

    def remove(self, ring: AuditRing) -> None:
        """Delete the file of a ring in `left` whose events are all written."""
        self.left.remove(ring)
        try:
            ring.remove()
        except OSError as error:
            LOG.warning("an empty audit journal could not be deleted", reason=words_of(error))

    def close(self) -> None:
        """Close the files, which keep their content."""
        for each in (self.own, *self.left):
            each.close()


def _owner(events: AuditEvents) -> bytes:
    """Return the bytes that distinguish a node's rings from other nodes' rings."""
    return hashlib.sha256(f"{events.node_id} {events.cluster_id}".encode()).digest()


def _is_blank(path: Path) -> bool:
    """Return whether the path has no events to recover: it is a folder or an empty file."""
    found = path.stat()
    return stat.S_ISDIR(found.st_mode) or found.st_size == 0
