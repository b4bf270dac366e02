"""The changes that records make to the image, and the interface of publishers that receive them."""

from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from kustos.acl import AclBinding
from kustos.metadata.image.image import MetadataImage
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramCredential


@dataclass(frozen=True, slots=True)
class AclAdded:
    """An ACL was added."""

    id: UUID
    binding: AclBinding


@dataclass(frozen=True, slots=True)
class AclRemoved:
    """An ACL was removed."""

    id: UUID
    binding: AclBinding


@dataclass(frozen=True, slots=True)
class AclIdRemoved:
    """An ACL was removed, and the builder holds no ACLs."""

    id: UUID


@dataclass(frozen=True, slots=True)
class ScramCredentialSet:
    """A credential was created or replaced."""

    user: str
    mechanism: int
    credential: ScramCredential


@dataclass(frozen=True, slots=True)
class ScramCredentialRemoved:
    """A credential was removed."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class FeatureLevelSet:
    """A feature has a new level; 0 means that it was removed."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class DelegationTokenSet:
    """A token was created or renewed."""

    token: DelegationTokenRecord


@dataclass(frozen=True, slots=True)
class DelegationTokenRemoved:
    """A token was removed."""

    token_id: str


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """A dynamic setting was created, replaced or rewritten."""

    resource_type: int
    resource_name: str
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConfigRemoved:
    """A dynamic setting was removed."""

    resource_type: int
    resource_name: str
    name: str


Change = (
    AclAdded
    | AclRemoved
    | AclIdRemoved
    | ScramCredentialSet
    | ScramCredentialRemoved
    | FeatureLevelSet
    | DelegationTokenSet
    | DelegationTokenRemoved
    | ConfigSet
    | ConfigRemoved
)


@dataclass(frozen=True, slots=True)
class MetadataDelta:
    """The changes of one or more batches, in log order. After them the image is at `last_offset`."""

    last_offset: int
    epoch: int
    changes: tuple[Change, ...] = field(default=())
    batches: tuple[bytes, ...] = field(default=(), repr=False, compare=False)
    """The record batches that made the changes, exactly as they lie in the log."""


class MetadataPublisher(Protocol):
    """Keeps its own state up to date with the log.

    Called on the writer's thread: first with a snapshot, which replaces all state atomically, then with each
    delta in log order. Changes must be applied one by one in their order, or a later ALLOW could act before
    an earlier DENY (KIP-801). An exception stops the store for good.
    """

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Replace everything."""

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Apply these changes, in order."""
