"""The image: the state described by the records, and the publishing of its changes."""

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
    MetadataDelta,
    MetadataPublisher,
    ScramCredentialRemoved,
    ScramCredentialSet,
)
from kustos.metadata.image.image import (
    EMPTY_IMAGE,
    ConfigKey,
    MetadataImage,
    ScramKey,
    acl_record,
    records_at,
    scram_record,
)
from kustos.metadata.image.maps import free
from kustos.metadata.image.replay import ImageBuilder, binding_of, image_of

__all__ = [
    "EMPTY_IMAGE",
    "AclAdded",
    "AclIdRemoved",
    "AclRemoved",
    "Change",
    "ConfigKey",
    "ConfigRemoved",
    "ConfigSet",
    "DelegationTokenRemoved",
    "DelegationTokenSet",
    "FeatureLevelSet",
    "ImageBuilder",
    "MetadataDelta",
    "MetadataImage",
    "MetadataPublisher",
    "ScramCredentialRemoved",
    "ScramCredentialSet",
    "ScramKey",
    "acl_record",
    "binding_of",
    "free",
    "image_of",
    "records_at",
    "scram_record",
]
