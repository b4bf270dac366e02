"""Metadata: the log in Kafka's own format, the state that it describes, and changes."""

from typing import Final

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
from kustos.metadata.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    salted_password,
    scram_credential,
)

SNAPSHOT_SUFFIX: Final = ".checkpoint"
SEGMENT_SUFFIX: Final = ".log"
METADATA_SUFFIXES: Final = frozenset({SNAPSHOT_SUFFIX, SEGMENT_SUFFIX})

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
    "SEGMENT_SUFFIX",
    "SNAPSHOT_SUFFIX",
    "MetadataError",
    "ScramCredential",
    "ScramMechanism",
    "metadata_version_level",
    "metadata_version_name",
    "salted_password",
    "scram_credential",
]
