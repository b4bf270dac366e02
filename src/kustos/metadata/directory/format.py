"""Formatting and describing a metadata directory: `kustos storage format` and `info`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.acl import AclBinding
from kustos.metadata.control import AclCreated, create_acls, dynamic_values
from kustos.metadata.directory.loader import load
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
from kustos.metadata.image import MetadataImage, image_of, scram_record
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
from kustos.runtime import (
    PRIVATE_FILE_MODE,
    Clock,
    Entropy,
    FileSystemStorage,
    Storage,
    SystemClock,
    SystemEntropy,
    reason_of,
)
from kustos.wire import new_uuid, uuid_of_text, uuid_text

DECOY_SECRET_FILE: Final = "kustos.secret"  # noqa: S105  # its name
"""The file next to `meta.properties` with the secret for the decoy salts of unknown SCRAM users."""
DECOY_SECRET_SIZE_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class InitialScramUser:
    """A credential that exists from the first start on."""

    name: str
    mechanism: ScramMechanism
    credential: ScramCredential


@dataclass(frozen=True, slots=True)
class DirectoryInfo:
    """The identity and contents of a metadata directory."""

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
    scram_users: Sequence[InitialScramUser] = (),
    acls: Sequence[AclBinding] = (),
    storage: Storage | None = None,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> MetaProperties:
    """Format `directory` as a metadata directory; return its `meta.properties`.

    `cluster_id` is 22 characters of URL-safe Base64, random if None. The users and ACLs go into the
    bootstrap snapshot. `meta.properties` is written last: without it a directory counts as unformatted, so
    after a crash in between no node can start from it. Raises `DirectoryError`.
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
        # a bootstrap snapshot alone is left by an interrupted format
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
    """Return the secret of decoy salts; raise `DirectoryError` if it is missing."""
    path = directory / DECOY_SECRET_FILE
    try:
        secret = (storage or FileSystemStorage()).read(path)
    except OSError as error:
        raise DirectoryError(
            f"`{path}` cannot be read ({reason_of(error)}); restore it from a copy"
        ) from error
    if len(secret) != DECOY_SECRET_SIZE_BYTES:
        raise DirectoryError(f"`{path}` must have {DECOY_SECRET_SIZE_BYTES} bytes; restore it from a copy")
    return secret


def describe_directory(directory: Path, storage: Storage | None = None) -> DirectoryInfo:
    """Describe a directory, ours or a real Kafka's; nothing is changed or locked.

    Raises `DirectoryError` if it is not formatted, `LogDamagedError` if it is damaged.
    """
    storage = storage or FileSystemStorage()
    path = directory / META_PROPERTIES
    if not storage.exists(path):
        what, remedy = f"`{directory}` is not formatted", "run `kustos storage format` on it"
        raise layout.no_metadata(directory, storage, what, remedy)
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
    metadata_version: int,
    scram_users: Sequence[InitialScramUser],
    acls: Sequence[AclBinding],
    entropy: Entropy,
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


def _refuse_invalid(acls: Sequence[AclBinding], results: Sequence[AclCreated]) -> None:
    for binding, result in zip(acls, results, strict=True):
        if result.error is not None:
            raise DirectoryError(f"the ACL {binding.audit_text()} is not acceptable: {result.error.message}")


def logged_settings(
    path: Path, image: MetadataImage, names: Sequence[str], storage: Storage | None = None
) -> dict[str, str] | None:
    """Return the values of these settings that the log sets on the directory's node.

    None if the log sets nothing: Kafka does not read such settings at run time, nor does a kustos node that
    only copies the log of a quorum, and the node of a single file is unknown. Raises `DirectoryError` for an
    invalid `meta.properties`.
    """
    storage = storage or FileSystemStorage()
    directory = path.parent if path.resolve().name == METADATA_PARTITION else path
    own = (META_PROPERTIES, DECOY_SECRET_FILE, f"{METADATA_PARTITION}/{layout.QUORUM_STATE}")
    if not all(storage.exists(directory / name) for name in own):
        return None
    properties = MetaProperties.decode(storage.read(directory / META_PROPERTIES), directory / META_PROPERTIES)
    return dynamic_values(image, properties.node_id, names)
