"""Small logs of many files, for the tests of segments and snapshots."""

import hashlib
from pathlib import Path

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import load
from kustos.metadata.errors import LogDamagedError, TornTailError
from kustos.metadata.log import LogPolicy, LogWriter
from kustos.metadata.records import FeatureLevelRecord
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage, SystemClock

OFTEN = LogPolicy(segment_bytes=400, snapshot_record_bytes=1, retention_bytes=0)
"""Small segments, a snapshot after each change, and nothing kept that need not be."""
HALF_WRITTEN = (LogDamagedError, TornTailError)
"""What a log may be read as while somebody writes it: a part may be there of a batch, or its epoch alone."""

SMALL_SEGMENTS = LogPolicy(segment_bytes=400)
"""Three requests of one ACL each fill a segment."""


def acl(name: str) -> AclBinding:
    entry = AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name), entry)


def partition(directory: Path) -> Path:
    return directory / "__cluster_metadata-0"


def segments(directory: Path) -> list[int]:
    """Base offsets, in order."""
    return sorted(int(path.stem) for path in partition(directory).glob("*.log"))


def segment(directory: Path, base_offset: int) -> Path:
    return partition(directory) / f"{base_offset:020d}.log"


def snapshots(directory: Path) -> list[str]:
    return sorted(path.stem for path in partition(directory).glob("*.checkpoint"))


def take_snapshot(store: MetadataStore) -> bool:
    """Take one if it is due, on this thread."""
    job = store.begin_snapshot()
    if job is None:
        return False
    job.write()
    store.end_snapshot(job)
    return True


def many_segments(directory: Path, requests: int = 12) -> Path:
    """A closed directory with one ACL a request, in several segments."""
    format_directory(directory, acls=[acl("first")])
    store = MetadataStore.open(directory, policy=SMALL_SEGMENTS)
    for number in range(requests):
        store.create_acls([acl(f"t{number}")])
    store.close()
    return directory


def contents(directory: Path) -> dict[str, str]:
    """What every file holds; the lock's file is no data."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def append(directory: Path, value: bytes) -> None:
    """Append what this kustos would never write, as a newer one or a newer Kafka might."""
    reader, _ = load(directory, FileSystemStorage())
    writer = LogWriter(directory, FileSystemStorage(), SystemClock(), reader)
    writer.append_values([(value,)])
    writer.close()


def finalize(directory: Path, feature: str, level: int) -> None:
    """Append a level of a feature, whether kustos knows it or not."""
    reader, _ = load(directory, FileSystemStorage())
    writer = LogWriter(directory, FileSystemStorage(), SystemClock(), reader)
    writer.append([[FeatureLevelRecord(feature, level)]])
    writer.close()
