"""What a record did to the image, for those who keep state of their own, and how they are told."""

from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from kustos.acl import AclBinding
from kustos.metadata.image.image import MetadataImage
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramCredential


@dataclass(frozen=True, slots=True)
class AclAdded:
    """An ACL that was not there before."""

    id: UUID
    binding: AclBinding


@dataclass(frozen=True, slots=True)
class AclRemoved:
    """An ACL that is there no more."""

    id: UUID
    binding: AclBinding


@dataclass(frozen=True, slots=True)
class ScramCredentialSet:
    """A credential made or replaced."""

    user: str
    mechanism: int
    credential: ScramCredential


@dataclass(frozen=True, slots=True)
class ScramCredentialRemoved:
    """A credential that is there no more."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class FeatureLevelSet:
    """A feature at a new level; 0 means that it is gone."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class DelegationTokenSet:
    """A token made or renewed."""

    token: DelegationTokenRecord


@dataclass(frozen=True, slots=True)
class DelegationTokenRemoved:
    """A token that is there no more."""

    token_id: str


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """A dynamic setting made, replaced or written again."""

    resource_type: int
    resource_name: str
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConfigRemoved:
    """A dynamic setting that is there no more."""

    resource_type: int
    resource_name: str
    name: str


Change = (
    AclAdded
    | AclRemoved
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
    """The changes of one batch, in log order. After it the image stands at `last_offset`."""

    last_offset: int
    epoch: int
    changes: tuple[Change, ...] = field(default=())


class MetadataPublisher(Protocol):
    """Keeps state of its own in step with the log.

    Called on the writer's thread: first with a snapshot, which replaces whatever was known before at
    once, then with each delta in log order. Changes must be applied one by one in their order, or a
    later ALLOW could act before an earlier DENY (KIP-801). An exception stops the store for good.
    """

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Replace everything."""

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Apply these changes, in order."""
