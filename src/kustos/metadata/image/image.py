"""The state described by the records of the log, at one offset; immutable and replaced as a whole."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from kustos.acl import AclBinding
from kustos.metadata.features import (
    DELEGATION_TOKEN_LEVEL,
    METADATA_VERSION_FEATURE,
    MINIMUM_LEVEL,
    SCRAM_LEVEL,
)
from kustos.metadata.image.maps import FrozenMap
from kustos.metadata.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)
from kustos.metadata.scram import ScramCredential, ScramMechanism

ScramKey = tuple[str, int]
"""User name and mechanism code (a `ScramMechanism`, or an unknown number)."""

ConfigKey = tuple[int, str, str]
"""Code of the resource's type, its name, and the name of the setting."""

_NOTHING: Final[FrozenMap[Any, Any]] = FrozenMap()


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All security metadata, as of `offset` (-1: before the first record) in `epoch`.

    `acl_ids` is the inverse of `acls`: Kafka holds no two equal ACLs. Entries are in no fixed order.
    """

    offset: int = -1
    epoch: int = 0
    features: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    acls: Mapping[UUID, AclBinding] = field(default_factory=lambda: _NOTHING)
    acl_ids: Mapping[AclBinding, UUID] = field(default_factory=lambda: _NOTHING)
    scram_credentials: Mapping[ScramKey, ScramCredential] = field(
        default_factory=lambda: _NOTHING, repr=False
    )
    delegation_tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=lambda: _NOTHING)
    configs: Mapping[ConfigKey, str] = field(default_factory=lambda: _NOTHING, repr=False)

    @property
    def metadata_version(self) -> int:
        """The level of metadata.version; without a record the lowest that Kafka 4 supports."""
        return self.features.get(METADATA_VERSION_FEATURE, MINIMUM_LEVEL)

    def configs_of(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """Return the dynamic settings of one resource."""
        return {
            name: value
            for (kind, resource, name), value in self.configs.items()
            if kind == resource_type and resource == resource_name
        }

    def records(self) -> Iterator[MetadataRecord]:
        """Yield the records of a snapshot of this image: replaying them on an empty image restores it."""
        levels = sorted(self.features.items(), key=lambda item: item[0] != METADATA_VERSION_FEATURE)
        for name, level in levels:
            yield FeatureLevelRecord(name, level)
        for (name, mechanism), credential in self.scram_credentials.items():
            yield scram_record(name, mechanism, credential)
        for acl_id, binding in self.acls.items():
            yield acl_record(acl_id, binding)
        yield from self.delegation_tokens.values()
        for (resource_type, resource_name, name), value in self.configs.items():
            yield ConfigRecord(resource_type, resource_name, name, value)

    def pieces(self) -> list[object]:
        """Return what holds the entries, for `free`: the caller drops the image and then the pieces."""
        maps = (self.acls, self.acl_ids, self.scram_credentials, self.delegation_tokens, self.configs)
        return [piece for each in maps if isinstance(each, FrozenMap) for piece in each.pieces()]

    def same_state(self, other: "MetadataImage") -> bool:
        """Return whether both have the same state, offsets aside."""
        return (
            self.features == other.features
            and self.acls == other.acls
            and self.scram_credentials == other.scram_credentials
            and self.delegation_tokens == other.delegation_tokens
            and self.configs == other.configs
        )


EMPTY_IMAGE: Final = MetadataImage()


def acl_record(acl_id: UUID, binding: AclBinding) -> AccessControlEntryRecord:
    """Return the record that creates this ACL."""
    pattern, entry = binding.pattern, binding.entry
    return AccessControlEntryRecord(
        acl_id,
        pattern.resource_type,
        pattern.name,
        pattern.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def scram_record(user: str, mechanism: int, credential: ScramCredential) -> UserScramCredentialRecord:
    """Return the record that sets this credential."""
    return UserScramCredentialRecord(
        user,
        mechanism,
        credential.salt,
        credential.stored_key,
        credential.server_key,
        credential.iterations,
    )


def records_at(image: MetadataImage, level: int, on_loss: Callable[[str], None]) -> Iterator[MetadataRecord]:
    """Yield the records of a snapshot of this image at this level of metadata.version.

    Parts that the level cannot hold are left out and reported to `on_loss`, by names only, in the wording of
    Kafka's images. To lose nothing, let `on_loss` raise.
    """
    yield FeatureLevelRecord(METADATA_VERSION_FEATURE, level)
    if level < SCRAM_LEVEL and image.scram_credentials:
        on_loss(_scram_text(image))
    if level < DELEGATION_TOKEN_LEVEL and image.delegation_tokens:
        on_loss(f"DelegationTokenImage({', '.join(sorted(image.delegation_tokens))})")
    for record in image.records():
        match record:
            case FeatureLevelRecord(name=name) if name == METADATA_VERSION_FEATURE:
                continue
            case UserScramCredentialRecord() if level < SCRAM_LEVEL:
                continue
            case DelegationTokenRecord() if level < DELEGATION_TOKEN_LEVEL:
                continue
            case _:
                yield record


def _scram_text(image: MetadataImage) -> str:
    keys = sorted((mechanism, user) for user, mechanism in image.scram_credentials)
    parts = "".join(
        f"{_mechanism_name(mechanism)}:{', '.join(user for _, user in users)}}},{{"
        for mechanism, users in groupby(keys, key=itemgetter(0))
    )
    return f"ScramImage({{{parts}}})"


def _mechanism_name(code: int) -> str:
    known = ScramMechanism.from_code(code)
    return "UNKNOWN" if known is None else known.name
