"""Importing an export into a directory: everything is checked before one file replaces another."""

from pathlib import Path

from kustos.acl import AclBinding
from kustos.metadata.control import ScramCopy, copy_error, new_acl_error
from kustos.metadata.control.results import ApiError
from kustos.metadata.directory.loader import load
from kustos.metadata.errors import DirectoryError, ReplayError
from kustos.metadata.features import unknown_level_text
from kustos.metadata.image import ImageBuilder, MetadataImage, binding_of
from kustos.metadata.log import (
    BOOTSTRAP_SNAPSHOT,
    LOCK_FILE,
    META_PROPERTIES,
    METADATA_PARTITION,
    SnapshotId,
    encode_snapshot,
    layout,
)
from kustos.metadata.portable.lines import Export, LocatedRecord, PortableError
from kustos.metadata.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    UserScramCredentialRecord,
)
from kustos.metadata.scram import ScramCredential
from kustos.runtime import PRIVATE_FILE_MODE, Clock, Storage


def apply_export(directory: Path, export: Export, storage: Storage, clock: Clock) -> MetadataImage:
    """Import an export into a freshly formatted directory; return the state that a node will start with.

    Features are set to the levels of the export; other contents of the formatted directory stay, and must not
    be in the export too. Nothing is written unless everything is valid, and then atomically. Raises
    `PortableError` (file, line, rule), `DirectoryError`, `StorageLockedError`.
    """
    if not storage.exists(directory / META_PROPERTIES):
        what, remedy = f"`{directory}` is not formatted", "run `kustos storage format` on it first"
        raise layout.no_metadata(directory, storage, what, remedy)
    lock = storage.lock(directory / LOCK_FILE)
    try:
        _require_fresh(directory, storage)
        _, builder = load(directory, storage)
        _add(builder, export)
        image = builder.build(-1, 0)
        now_ms = clock.wall_ms()
        data = encode_snapshot(
            image.records(), epoch=0, timestamp_ms=now_ms, last_contained_timestamp_ms=now_ms
        )
        path = directory / METADATA_PARTITION / BOOTSTRAP_SNAPSHOT.file_name
        storage.write(path, data, PRIVATE_FILE_MODE)
    finally:
        lock.release()
    return image


def _require_fresh(directory: Path, storage: Storage) -> None:
    partition = directory / METADATA_PARTITION
    for name in storage.names(partition):
        id_ = SnapshotId.of(name)
        begun = layout.segment_base_offset(name) is not None or name == layout.QUORUM_STATE
        if begun or (id_ is not None and id_ != BOOTSTRAP_SNAPSHOT):
            raise DirectoryError(
                f"`{directory}` is in use already: its log has begun (`{name}`); import into a directory "
                "that `kustos storage format` has just created, before its first start"
            )


def _add(builder: ImageBuilder, export: Export) -> None:
    features = [each for each in export.records if isinstance(each.record, FeatureLevelRecord)]
    others = [each for each in export.records if not isinstance(each.record, FeatureLevelRecord)]
    seen: set[str] = set()
    for each in features:
        _require_feature(each, seen)
        builder.replay(each.record)
    level = builder.view().metadata_version
    for binding in builder.view().acls.values():
        unfit = new_acl_error(binding, level)
        if unfit is not None:
            raise DirectoryError(
                f"the ACL {binding.audit_text()} of the directory does not fit the metadata.version of the "
                f"export: {unfit.message}"
            )
    for each in others:
        error = _error_of(each, level) or _conflict(each, builder.view())
        if error is not None:
            raise PortableError(each.place, error)
        try:
            builder.replay(each.record)
        except ReplayError as replay_error:
            raise PortableError(each.place, str(replay_error)) from replay_error


def _require_feature(each: LocatedRecord, seen: set[str]) -> None:
    record = each.record
    assert isinstance(record, FeatureLevelRecord)
    if record.name in seen:
        raise PortableError(each.place, f"the feature `{record.name}` is there twice")
    seen.add(record.name)
    unknown = unknown_level_text(record.name, record.feature_level)
    if unknown is not None:
        raise PortableError(each.place, unknown)


def _error_of(each: LocatedRecord, level: int) -> str | None:
    """Return why a record cannot be stored at this metadata.version, in the words of Kafka's own requests."""
    error: ApiError | None = None
    match each.record:
        case AccessControlEntryRecord() as record:
            binding: AclBinding = binding_of(record)
            error = new_acl_error(binding, level)
        case UserScramCredentialRecord(name, mechanism, salt, stored_key, server_key, iterations):
            credential = ScramCredential(salt, stored_key, server_key, iterations)
            error = copy_error(ScramCopy(name, mechanism, credential), level)
        case DelegationTokenRecord() as token:
            error = copy_error(token, level)
    # Kafka's texts end with a period
    return None if error is None else str(error.message).rstrip(".")


def _conflict(each: LocatedRecord, image: MetadataImage) -> str | None:
    """Return what a record would replace; an import may replace only feature levels."""
    match each.record:
        case UserScramCredentialRecord() as record if (
            record.name,
            record.mechanism,
        ) in image.scram_credentials:
            return f"the user `{record.name}` has a credential of this mechanism already"
        case DelegationTokenRecord() as token if token.token_id in image.delegation_tokens:
            return f"the delegation token `{token.token_id}` is there already"
        case ConfigRecord() as setting if (
            setting.resource_type,
            setting.resource_name,
            setting.name,
        ) in image.configs:
            return f"the setting `{setting.name}` of this resource is there already"
    return None
