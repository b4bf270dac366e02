"""ACLs out of Kafka's own files and into a snapshot that Kafka reads: one more form of ACL sets.

A snapshot (`.checkpoint`) holds everything by itself. So does a log segment from offset 0 (`.log`) if a
real Kafka wrote it; kustos keeps what a format put in beside it, in a snapshot, so a segment alone whose
first record does not set metadata.version is refused.
"""

from collections.abc import Iterable
from pathlib import Path

from kustos.acl import AclBinding
from kustos.acl.forms import AclFormatError
from kustos.acl.forms.fields import check_texts
from kustos.metadata.errors import DirectoryError, MetadataError
from kustos.metadata.features import CIDR_ACL_LEVEL, DEFAULT_LEVEL, METADATA_VERSION_FEATURE
from kustos.metadata.ids import new_uuid
from kustos.metadata.image import ImageBuilder, MetadataImage, acl_record
from kustos.metadata.loader import read_image, replay_batches, require_beginning
from kustos.metadata.log import METADATA_PARTITION, SnapshotId, encode_snapshot, layout
from kustos.metadata.log.segment import SegmentReader
from kustos.metadata.log.snapshot import snapshot_batches
from kustos.metadata.records import FeatureLevelRecord, MetadataRecord
from kustos.metadata.suffixes import METADATA_SUFFIXES, SNAPSHOT_SUFFIX
from kustos.runtime import Clock, Entropy, FileSystemStorage, Storage, SystemClock, SystemEntropy


def read_acl_files(path: Path, storage: Storage | None = None) -> list[AclBinding]:
    """Return the ACLs of a metadata directory, of a snapshot or of a log's first segment.

    A directory is that of `metadata.log.dir`, or the partition in it. Nothing is changed or locked.
    Raises `MetadataError`.
    """
    storage = storage or FileSystemStorage()
    if path.suffix in METADATA_SUFFIXES:
        image = read_metadata_file(path, storage)
    else:
        directory = path.parent if path.resolve().name == METADATA_PARTITION else path
        if not storage.exists(directory / METADATA_PARTITION):
            raise DirectoryError(f"`{path}` is no metadata directory: it has no `{METADATA_PARTITION}`")
        image = read_image(directory, storage)
    require_beginning(image, path)
    return list(image.acls.values())


def read_metadata_file(path: Path, storage: Storage) -> MetadataImage:
    """Return what a snapshot says, or the first segment of a log that holds its own beginning.

    Raises `MetadataError`.
    """
    try:
        data = storage.read(path)
    except OSError as error:
        raise MetadataError(f"`{path}` cannot be read: {error}") from error
    builder = ImageBuilder()
    if path.suffix == SNAPSHOT_SUFFIX:
        replay_batches(builder, snapshot_batches(data, str(path)), path)
        id_ = SnapshotId.of(path.name) or SnapshotId(0, 0)
        return builder.build(id_.end_offset - 1, id_.epoch)
    if layout.segment_base_offset(path.name) not in {None, 0}:
        raise MetadataError(f"`{path}` is not the beginning of its log; name the directory, or a snapshot")
    reader = SegmentReader(data, str(path), 0, 0, is_last=True)
    replay_batches(builder, reader, path)
    return builder.build(reader.next_offset - 1, reader.epoch)


def encode_acl_snapshot(
    bindings: Iterable[AclBinding], *, clock: Clock | None = None, entropy: Entropy | None = None
) -> bytes:
    """Return a snapshot file of Kafka's that holds these ACLs, each once, under new ids.

    Its metadata.version is the default one, or the first that knows address ranges if there are any.
    Raises `AclFormatError` for an ACL with a code that nobody knows, and for what a record cannot hold.
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
