"""Metadata: the log in Kafka's own bytes, the state that it describes, and changes to both."""

from kustos.metadata.errors import MetadataError
from kustos.metadata.features import (
    CIDR_ACL_LEVEL,
    CONTROLLER_REGISTRATION_LEVEL,
    DEFAULT_LEVEL,
    LATEST_LEVEL,
    METADATA_VERSION_FEATURE,
    METADATA_VERSION_NAMES,
    MINIMUM_LEVEL,
    metadata_version_level,
    metadata_version_name,
)
from kustos.metadata.ids import METADATA_SUFFIXES, new_uuid, uuid_of_text, uuid_text
from kustos.metadata.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    salted_password,
    scram_credential,
)

__all__ = [
    "CIDR_ACL_LEVEL",
    "CONTROLLER_REGISTRATION_LEVEL",
    "DEFAULT_LEVEL",
    "LATEST_LEVEL",
    "MAX_ITERATIONS",
    "METADATA_SUFFIXES",
    "METADATA_VERSION_FEATURE",
    "METADATA_VERSION_NAMES",
    "MINIMUM_LEVEL",
    "MIN_ITERATIONS",
    "MetadataError",
    "ScramCredential",
    "ScramMechanism",
    "metadata_version_level",
    "metadata_version_name",
    "new_uuid",
    "salted_password",
    "scram_credential",
    "uuid_of_text",
    "uuid_text",
]
