"""The metadata records that concern security, as frozen values; field for field Kafka's schemas.

Codes stay plain ints here: a record that a newer Kafka wrote must go through unchanged. What they mean
is decided when a record meets the image.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A dynamic setting of a resource; null takes it away. Values may be secrets and never show."""

    api_key: ClassVar[int] = 4
    resource_type: int
    resource_name: str
    name: str
    value: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class DelegationTokenRecord:
    """A token made, or renewed when its id exists. Its HMAC is never stored. Times in ms."""

    api_key: ClassVar[int] = 10
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int
    token_id: str


@dataclass(frozen=True, slots=True)
class UserScramCredentialRecord:
    """A SCRAM credential set; its secrets never show in a text form."""

    api_key: ClassVar[int] = 11
    name: str
    mechanism: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """A feature finalized at a level; level 0 takes it away."""

    api_key: ClassVar[int] = 12
    name: str
    feature_level: int


@dataclass(frozen=True, slots=True)
class AccessControlEntryRecord:
    """An ACL made, under an id of its own."""

    api_key: ClassVar[int] = 18
    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class RemoveAccessControlEntryRecord:
    """The ACL of this id is no more."""

    api_key: ClassVar[int] = 19
    id: UUID


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    """Nothing; controllers write it so that the log moves on."""

    api_key: ClassVar[int] = 20


@dataclass(frozen=True, slots=True)
class RemoveUserScramCredentialRecord:
    """The credential of this user and mechanism is no more."""

    api_key: ClassVar[int] = 22
    name: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class BeginTransactionRecord:
    """What follows counts only once the transaction ends."""

    api_key: ClassVar[int] = 23
    name: str | None = None


@dataclass(frozen=True, slots=True)
class EndTransactionRecord:
    """The transaction counts."""

    api_key: ClassVar[int] = 24


@dataclass(frozen=True, slots=True)
class AbortTransactionRecord:
    """The transaction never was."""

    api_key: ClassVar[int] = 25
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveDelegationTokenRecord:
    """The token of this id is no more."""

    api_key: ClassVar[int] = 26
    token_id: str


@dataclass(frozen=True, slots=True)
class OpaqueRecord:
    """A record of a kind that this system keeps but does not use: topics, brokers, quotas."""

    api_key: int
    version: int
    body: bytes = field(repr=False)


MetadataRecord = (
    ConfigRecord
    | DelegationTokenRecord
    | UserScramCredentialRecord
    | FeatureLevelRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | NoOpRecord
    | RemoveUserScramCredentialRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | RemoveDelegationTokenRecord
    | OpaqueRecord
)
