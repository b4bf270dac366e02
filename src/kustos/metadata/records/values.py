"""The security-related metadata records as frozen values, with the fields of Kafka's schemas.

Codes stay plain ints here: a record of a newer Kafka must pass through unchanged. Replay into the image
interprets them.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A dynamic setting of a resource; null removes it. Values may be secret and never show."""

    api_key: ClassVar[int] = 4
    resource_type: int
    resource_name: str
    name: str
    value: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class DelegationTokenRecord:
    """A created token, or a renewed one if its id exists. Its HMAC is never stored. Times in ms."""

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
    """Sets a SCRAM credential; its secrets never show in a text form."""

    api_key: ClassVar[int] = 11
    name: str
    mechanism: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """Finalizes a feature at a level; level 0 removes it."""

    api_key: ClassVar[int] = 12
    name: str
    feature_level: int


@dataclass(frozen=True, slots=True)
class AccessControlEntryRecord:
    """Creates an ACL under its own id."""

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
    """Removes the ACL with this id."""

    api_key: ClassVar[int] = 19
    id: UUID


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    """Has no effect; controllers write it so that the log advances."""

    api_key: ClassVar[int] = 20


@dataclass(frozen=True, slots=True)
class RemoveUserScramCredentialRecord:
    """Removes the credential of this user and mechanism."""

    api_key: ClassVar[int] = 22
    name: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class BeginTransactionRecord:
    """Begins a transaction; the following records take effect only when it ends."""

    api_key: ClassVar[int] = 23
    name: str | None = None


@dataclass(frozen=True, slots=True)
class EndTransactionRecord:
    """Ends the transaction: its records take effect."""

    api_key: ClassVar[int] = 24


@dataclass(frozen=True, slots=True)
class AbortTransactionRecord:
    """Aborts the transaction: its records have no effect."""

    api_key: ClassVar[int] = 25
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveDelegationTokenRecord:
    """Removes the token with this id."""

    api_key: ClassVar[int] = 26
    token_id: str


@dataclass(frozen=True, slots=True)
class OpaqueRecord:
    """A record of a kind that kustos keeps but does not use: topics, brokers, quotas."""

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
