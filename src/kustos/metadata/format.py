"""Formatting a metadata directory, and saying what one is: `kustos storage format` and `info`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.acl import AclBinding
from kustos.metadata.control import AclCreateResult, create_acls
from kustos.metadata.errors import DirectoryError
from kustos.metadata.features import (
    DEFAULT_LEVEL,
    LATEST_LEVEL,
    METADATA_VERSION_FEATURE,
    METADATA_VERSION_NAMES,
    MINIMUM_LEVEL,
    SCRAM_LEVEL,
    metadata_version_name,
)
from kustos.metadata.ids import new_uuid, uuid_of_text, uuid_text
from kustos.metadata.image import MetadataImage, image_of, scram_record
from kustos.metadata.loader import load
from kustos.metadata.log import (
    BOOTSTRAP_SNAPSHOT,
    LOCK_FILE,
    META_PROPERTIES,
    METADATA_PARTITION,
    MetaProperties,
    SnapshotId,
    TornTail,
    encode_snapshot,
    layout,
)
from kustos.metadata.records import FeatureLevelRecord, MetadataRecord
from kustos.metadata.scram import ScramCredential, ScramMechanism
from kustos.runtime import Clock, Entropy, FileSystemStorage, Storage, SystemClock, SystemEntropy
from kustos.runtime.storage import PRIVATE_FILE_MODE

DECOY_SECRET_FILE: Final = "kustos.secret"  # noqa: S105  # its name
"""Beside `meta.properties`: what the decoy salts of unknown SCRAM users are derived from."""
DECOY_SECRET_SIZE_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A credential that exists from the first start on."""

    name: str
    mechanism: ScramMechanism
    credential: ScramCredential


@dataclass(frozen=True, slots=True)
class DirectoryInfo:
    """What a metadata directory is and holds."""

    directory: Path
    properties: MetaProperties
    image: MetadataImage
    snapshot_id: SnapshotId | None
    segment_base_offsets: tuple[int, ...]
    torn_tail: TornTail | None
    has_decoy_secret: bool


def format_directory(
    directory: Path,
    *,
    cluster_id: str | None = None,
    node_id: int = 1,
    metadata_version: int = DEFAULT_LEVEL,
    scram_users: Sequence[ScramUser] = (),
    acls: Sequence[AclBinding] = (),
    storage: Storage | None = None,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> MetaProperties:
    """Make `directory` a metadata directory; return what `meta.properties` says.

    `cluster_id` is 22 characters of URL-safe Base64, random if None. The users and ACLs go into the
    bootstrap snapshot. `meta.properties` comes last: without it a directory counts as not formatted,
    so a crash on the way leaves nothing that could be started. Raises `DirectoryError`.
    """
    storage, clock, entropy = (
        storage or FileSystemStorage(),
        clock or SystemClock(),
        entropy or SystemEntropy(),
    )
    if storage.exists(directory / META_PROPERTIES):
        raise DirectoryError(f"`{directory}` is formatted already; choose another directory or remove it")
    properties = MetaProperties(
        _cluster_id(cluster_id, entropy), _node_id(node_id), directory_id=new_uuid(entropy)
    )
    records = _bootstrap_records(metadata_version, scram_users, acls, entropy)
    partition = directory / METADATA_PARTITION
    storage.make_directory(partition)
    lock = storage.lock(directory / LOCK_FILE)
    try:
        # a bootstrap snapshot alone is what a format leaves that was killed before it was done
        names = [name for name in storage.names(partition) if name != BOOTSTRAP_SNAPSHOT.file_name]
        if any(SnapshotId.of(n) or layout.segment_base_offset(n) is not None for n in names):
            raise DirectoryError(f"`{partition}` holds a log already; choose another directory or remove it")
        now_ms = clock.wall_ms()
        snapshot = encode_snapshot(records, epoch=0, timestamp_ms=now_ms, last_contained_timestamp_ms=now_ms)
        storage.write(partition / BOOTSTRAP_SNAPSHOT.file_name, snapshot, PRIVATE_FILE_MODE)
        storage.write(partition / layout.PARTITION_METADATA, layout.encode_partition_metadata())
        secret = entropy.token_bytes(DECOY_SECRET_SIZE_BYTES)
        storage.write(directory / DECOY_SECRET_FILE, secret, PRIVATE_FILE_MODE)
        storage.write(directory / META_PROPERTIES, properties.encode())
    finally:
        lock.release()
    return properties


def read_decoy_secret(directory: Path, storage: Storage | None = None) -> bytes:
    """Return the secret that decoy salts are derived from; raise `DirectoryError` if it is not there."""
    path = directory / DECOY_SECRET_FILE
    try:
        secret = (storage or FileSystemStorage()).read(path)
    except OSError as error:
        raise DirectoryError(f"`{path}` cannot be read ({error}); restore it from a copy") from error
    if len(secret) != DECOY_SECRET_SIZE_BYTES:
        raise DirectoryError(f"`{path}` must have {DECOY_SECRET_SIZE_BYTES} bytes; restore it from a copy")
    return secret


def describe_directory(directory: Path, storage: Storage | None = None) -> DirectoryInfo:
    """Return what a directory, ours or a real Kafka's, is and holds; nothing is changed or locked.

    Raises `DirectoryError` if it is not formatted, `LogDamagedError` if it is damaged.
    """
    storage = storage or FileSystemStorage()
    path = directory / META_PROPERTIES
    if not storage.exists(path):
        raise DirectoryError(f"`{directory}` is not formatted; run `kustos storage format` on it")
    properties = MetaProperties.decode(storage.read(path), path)
    reader, builder = load(directory, storage)
    return DirectoryInfo(
        directory,
        properties,
        builder.build(reader.next_offset - 1, reader.epoch),
        reader.snapshot_id,
        reader.segments,
        reader.torn,
        storage.exists(directory / DECOY_SECRET_FILE),
    )


def _cluster_id(text: str | None, entropy: Entropy) -> str:
    if text is None:
        return uuid_text(new_uuid(entropy))
    try:
        uuid_of_text(text)
    except ValueError as error:
        raise DirectoryError(f"cluster id `{text}` is not usable: {error}") from error
    return text


def _node_id(node_id: int) -> int:
    if not 0 <= node_id < 2**31:
        raise DirectoryError(f"node id `{node_id}` is not usable, choose one from 0 to {2**31 - 1}")
    return node_id


def _bootstrap_records(
    metadata_version: int, scram_users: Sequence[ScramUser], acls: Sequence[AclBinding], entropy: Entropy
) -> list[MetadataRecord]:
    if metadata_version not in METADATA_VERSION_NAMES:
        raise DirectoryError(
            f"metadata.version level `{metadata_version}` is not known, choose one from "
            f"{MINIMUM_LEVEL} to {LATEST_LEVEL}"
        )
    if scram_users and metadata_version < SCRAM_LEVEL:
        raise DirectoryError(
            f"SCRAM users need metadata.version {metadata_version_name(SCRAM_LEVEL)} or higher"
        )
    records: list[MetadataRecord] = [FeatureLevelRecord(METADATA_VERSION_FEATURE, metadata_version)]
    records += (scram_record(user.name, user.mechanism, user.credential) for user in scram_users)
    outcome = create_acls(image_of(records), acls, entropy)
    _refuse_invalid(acls, outcome.results)
    return [*records, *outcome.records]


def _refuse_invalid(acls: Sequence[AclBinding], results: Sequence[AclCreateResult]) -> None:
    for binding, result in zip(acls, results, strict=True):
        if result.error is not None:
            raise DirectoryError(f"the ACL {binding.audit_text()} is not acceptable: {result.error.message}")
