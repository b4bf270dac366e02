"""Reads ACLs from Kafka's own files, and writes them as a snapshot that Kafka reads.

A snapshot (`.checkpoint`) is complete by itself. So is a log segment from offset 0 (`.log`) if a real Kafka
wrote it; kustos writes the initial records to a separate snapshot, so a single segment whose first record
does not set metadata.version is refused.
"""

from collections.abc import Iterable
from pathlib import Path

from kustos.acl import AclBinding
from kustos.acl.forms import AclFormatError, check_texts
from kustos.metadata import METADATA_SUFFIXES, SNAPSHOT_SUFFIX
from kustos.metadata.directory.loader import read_image, replay_batches, require_beginning
from kustos.metadata.errors import MetadataError
from kustos.metadata.features import CIDR_ACL_LEVEL, DEFAULT_LEVEL, METADATA_VERSION_FEATURE
from kustos.metadata.image import ImageBuilder, MetadataImage, acl_record
from kustos.metadata.log import METADATA_PARTITION, SnapshotId, encode_snapshot, layout
from kustos.metadata.log.segment import SegmentReader
from kustos.metadata.log.snapshot import snapshot_batches
from kustos.metadata.records import FeatureLevelRecord, MetadataRecord
from kustos.runtime import Clock, Entropy, FileSystemStorage, Storage, SystemClock, SystemEntropy, reason_of
from kustos.wire import new_uuid


def read_acl_files(
    path: Path, storage: Storage | None = None, *, ignore_torn_tail: bool = False
) -> list[AclBinding]:
    """Return the ACLs that `read_metadata` finds."""
    return list(read_metadata(path, storage, ignore_torn_tail=ignore_torn_tail).acls.values())


def read_metadata(
    path: Path, storage: Storage | None = None, *, ignore_torn_tail: bool = False
) -> MetadataImage:
    """Return the state in a metadata directory, a snapshot or a log's first segment.

    The directory is `metadata.log.dir`, or the partition in it. Nothing is changed or locked.
    Raises `MetadataError` as `read_image` does.
    """
    storage = storage or FileSystemStorage()
    if path.suffix in METADATA_SUFFIXES:
        image = read_metadata_file(path, storage, ignore_torn_tail=ignore_torn_tail)
    else:
        directory = path.parent if path.resolve().name == METADATA_PARTITION else path
        if not storage.exists(directory / METADATA_PARTITION):
            what = f"`{path}` is not a metadata directory: it has no `{METADATA_PARTITION}`"
            raise layout.no_metadata(path, storage, what, "correct the path")
        image = read_image(directory, storage, ignore_torn_tail=ignore_torn_tail)
    require_beginning(image, path)
    return image


def read_metadata_file(path: Path, storage: Storage, *, ignore_torn_tail: bool = False) -> MetadataImage:
    """Return the state in a snapshot, or in the first segment of a log with its own beginning.

    Raises `MetadataError`.
    """
    try:
        data = storage.read(path)
    except OSError as error:
        raise MetadataError(f"`{path}` cannot be read: {reason_of(error)}") from error
    builder = ImageBuilder()
    if path.suffix == SNAPSHOT_SUFFIX:
        replay_batches(builder, snapshot_batches(data, str(path)), path)
        id_ = SnapshotId.of(path.name) or SnapshotId(0, 0)
        return builder.build(id_.end_offset - 1, id_.epoch)
    if layout.segment_base_offset(path.name) not in {None, 0}:
        raise MetadataError(f"`{path}` is not the beginning of its log; name the directory, or a snapshot")
    reader = SegmentReader(data, path, 0, 0, is_last=True)
    replay_batches(builder, reader, path)
    if reader.torn is not None and not ignore_torn_tail:
        raise reader.torn.error()
    return builder.build(reader.next_offset - 1, reader.epoch)


def encode_acl_snapshot(
    bindings: Iterable[AclBinding], *, clock: Clock | None = None, entropy: Entropy | None = None
) -> bytes:
    """Return a Kafka snapshot file with these ACLs, each once, under new ids.

    Its metadata.version is the default one, or, if there are address ranges, the first that supports them.
    Raises `AclFormatError` for an ACL with an unknown code, or one that a record cannot hold.
    """
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    acls: list[MetadataRecord] = []
    level = DEFAULT_LEVEL
    for binding in dict.fromkeys(bindings):
        pattern, entry = binding.pattern, binding.entry
        codes = (pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type)
        if not all(codes):
            raise AclFormatError(
                None, binding.audit_text(), "has a code that this version does not know and cannot write"
            )
        check_texts(None, pattern.name, entry.principal, entry.host)
        if "/" in entry.host:
            level = max(level, CIDR_ACL_LEVEL)
        acls.append(acl_record(new_uuid(entropy), binding))
    records = [FeatureLevelRecord(METADATA_VERSION_FEATURE, level), *acls]
    return encode_snapshot(records, epoch=0, timestamp_ms=clock.wall_ms())
