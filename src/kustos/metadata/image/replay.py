"""Replay of records into state: one record at a time, copy on first write.

A builder starts from an image and drafts a map only when a record touches it; a draft copies the few entries
around a change (`kustos.metadata.image.maps`), and the original image stays unchanged. Records between Begin
and End of a metadata transaction (KIP-868) are held back, and dropped by an Abort.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    AclValueError,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.metadata.errors import ReplayError
from kustos.metadata.image.changes import (
    AclAdded,
    AclIdRemoved,
    AclRemoved,
    Change,
    ConfigRemoved,
    ConfigSet,
    DelegationTokenRemoved,
    DelegationTokenSet,
    FeatureLevelSet,
    ScramCredentialRemoved,
    ScramCredentialSet,
)
from kustos.metadata.image.image import EMPTY_IMAGE, MetadataImage
from kustos.metadata.image.maps import DraftMap, FrozenMap
from kustos.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kustos.metadata.scram import ScramCredential


class ImageBuilder:
    """A working copy of an image. After `replay` raises `ReplayError` it must not be used further."""

    __slots__ = ("_base", "_held", "_holds_acls", "_maps")

    def __init__(self, base: MetadataImage = EMPTY_IMAGE) -> None:
        self._base = base
        self._maps: dict[str, DraftMap[Any, Any]] = {}
        self._held: list[MetadataRecord] | None = None
        self._holds_acls = True

    @property
    def in_transaction(self) -> bool:
        """Whether records are held back until the transaction ends."""
        return self._held is not None

    def replay(self, record: MetadataRecord) -> tuple[Change, ...]:
        """Apply one record; return its changes, in order (several only at the end of a transaction)."""
        if self._held is not None:
            return self._replay_in_transaction(self._held, record)
        if isinstance(record, BeginTransactionRecord):
            self._held = []
            return ()
        if isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            raise ReplayError("a metadata transaction ends that never began")
        change = self._apply(record)
        return () if change is None else (change,)

    def replay_all(self, records: Iterable[MetadataRecord]) -> tuple[Change, ...]:
        """Apply records in order; return all their changes."""
        return tuple(change for record in records for change in self.replay(record))

    def add_acls(self, acls: Sequence[tuple[UUID, AclBinding]]) -> None:
        """Apply the records of many ACLs, like `replay` on each, but report no changes.

        Not within a transaction. Raises `ReplayError`.
        """
        if self._held is not None:
            raise ReplayError("ACLs are added at once amid a metadata transaction")
        twice = self._map("acls").add_all(acls)
        if twice is not None:
            raise ReplayError(f"two ACLs have the id `{twice}`")
        again = self._map("acl_ids").add_all((binding, acl_id) for acl_id, binding in acls)
        if again is not None:
            raise ReplayError(f"two ACLs are equal: {again.audit_text()}")

    def forget_acls(self) -> None:
        """Hold no ACLs from now on: their records still make changes, but removals name only the id.

        The publisher must reject an id that exists already, and an unknown one.
        """
        self._base = replace(self._base, acls=EMPTY_IMAGE.acls, acl_ids=EMPTY_IMAGE.acl_ids)
        for name in ("acls", "acl_ids"):
            self._maps.pop(name, None)
        self._holds_acls = False

    def view(self) -> MetadataImage:
        """Return a live view of the state so far, without a copy."""
        return self._image(self._base.offset, self._base.epoch, self._maps)

    def build(self, offset: int, epoch: int) -> MetadataImage:
        """Return the state as an image."""
        return self._image(offset, epoch, {name: draft.freeze() for name, draft in self._maps.items()})

    def _image(self, offset: int, epoch: int, changed: Mapping[str, Mapping[Any, Any]]) -> MetadataImage:
        maps = {name: changed.get(name, getattr(self._base, name)) for name in _MAPS}
        return MetadataImage(offset, epoch, **maps)

    def _replay_in_transaction(
        self, held: list[MetadataRecord], record: MetadataRecord
    ) -> tuple[Change, ...]:
        if isinstance(record, BeginTransactionRecord):
            raise ReplayError("a metadata transaction begins inside another one")
        if isinstance(record, AbortTransactionRecord):
            self._held = None
            return ()
        if isinstance(record, EndTransactionRecord):
            self._held = None
            return self.replay_all(held)
        held.append(record)
        return ()

    def _apply(self, record: MetadataRecord) -> Change | None:
        if isinstance(record, OpaqueRecord | NoOpRecord):
            return None
        return _APPLY[type(record)](self, record)

    def _map(self, name: str) -> DraftMap[Any, Any]:
        if name not in self._maps:
            base = getattr(self._base, name)
            self._maps[name] = DraftMap(base if isinstance(base, FrozenMap) else FrozenMap(base.items()))
        return self._maps[name]

    def _look(self, name: str, key: object) -> Any:
        draft = self._maps.get(name)
        known: Mapping[Any, Any] = getattr(self._base, name) if draft is None else draft
        return known.get(key)

    def _add_acl(self, record: AccessControlEntryRecord) -> Change:
        binding = binding_of(record)
        if not self._holds_acls:
            return AclAdded(record.id, binding)
        if self._look("acls", record.id) is not None:
            raise ReplayError(f"two ACLs have the id `{record.id}`")
        if self._look("acl_ids", binding) is not None:
            raise ReplayError(f"the ACL `{record.id}` is equal to `{self._look('acl_ids', binding)}`")
        self._map("acls")[record.id] = binding
        self._map("acl_ids")[binding] = record.id
        return AclAdded(record.id, binding)

    def _remove_acl(self, record: RemoveAccessControlEntryRecord) -> Change:
        if not self._holds_acls:
            return AclIdRemoved(record.id)
        binding: AclBinding | None = self._look("acls", record.id)
        if binding is None:
            raise ReplayError(f"the ACL id `{record.id}` is removed, but there is none")
        self._map("acls").pop(record.id)
        self._map("acl_ids").pop(binding)
        return AclRemoved(record.id, binding)

    def _set_scram(self, record: UserScramCredentialRecord) -> Change:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self._map("scram_credentials")[record.name, record.mechanism] = credential
        return ScramCredentialSet(record.name, record.mechanism, credential)

    def _remove_scram(self, record: RemoveUserScramCredentialRecord) -> Change:
        key = (record.name, record.mechanism)
        if self._map("scram_credentials").pop(key) is None:
            raise ReplayError(f"the SCRAM credential of `{record.name}` is removed, but there is none")
        return ScramCredentialRemoved(*key)

    def _set_feature(self, record: FeatureLevelRecord) -> Change:
        if record.feature_level == 0:
            self._map("features").pop(record.name)
        else:
            self._map("features")[record.name] = record.feature_level
        return FeatureLevelSet(record.name, record.feature_level)

    def _set_token(self, record: DelegationTokenRecord) -> Change:
        for principal in (record.owner, record.requester, *record.renewers):
            if ":" not in principal:
                raise ReplayError(
                    f"the delegation token `{record.token_id}` names `{principal}`, which is not a principal"
                )
        self._map("delegation_tokens")[record.token_id] = record
        return DelegationTokenSet(record)

    def _remove_token(self, record: RemoveDelegationTokenRecord) -> Change:
        if self._map("delegation_tokens").pop(record.token_id) is None:
            raise ReplayError(f"the delegation token `{record.token_id}` is removed, but there is none")
        return DelegationTokenRemoved(record.token_id)

    def _set_config(self, record: ConfigRecord) -> Change:
        key = (record.resource_type, record.resource_name, record.name)
        if record.value is None:
            # also a missing one: controllers write it to make brokers reload (KAFKA-14136)
            self._map("configs").pop(key)
            return ConfigRemoved(*key)
        self._map("configs")[key] = record.value
        return ConfigSet(*key, record.value)


_MAPS: Final = ("features", "acls", "acl_ids", "scram_credentials", "delegation_tokens", "configs")

_APPLY: Final[dict[type[Any], Callable[[ImageBuilder, Any], Change]]] = {
    AccessControlEntryRecord: ImageBuilder._add_acl,
    RemoveAccessControlEntryRecord: ImageBuilder._remove_acl,
    UserScramCredentialRecord: ImageBuilder._set_scram,
    RemoveUserScramCredentialRecord: ImageBuilder._remove_scram,
    FeatureLevelRecord: ImageBuilder._set_feature,
    DelegationTokenRecord: ImageBuilder._set_token,
    RemoveDelegationTokenRecord: ImageBuilder._remove_token,
    ConfigRecord: ImageBuilder._set_config,
}


def binding_of(record: AccessControlEntryRecord) -> AclBinding:
    """Return the ACL of a record; raise `ReplayError` for one that no controller would write."""
    try:
        return AclBinding(
            ResourcePattern(
                ResourceType.from_code(record.resource_type),
                record.resource_name,
                PatternType.from_code(record.pattern_type),
            ),
            AccessControlEntry(
                record.principal,
                record.host,
                AclOperation.from_code(record.operation),
                AclPermissionType.from_code(record.permission_type),
            ),
        )
    except AclValueError as error:
        raise ReplayError(f"the ACL `{record.id}` cannot be: {error}") from error


def image_of(records: Iterable[MetadataRecord], offset: int = -1, epoch: int = 0) -> MetadataImage:
    """Return the image that these records describe."""
    builder = ImageBuilder()
    builder.replay_all(records)
    return builder.build(offset, epoch)
