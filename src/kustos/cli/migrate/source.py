"""What a migration found in another system, independent of the target."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kustos.acl import AclBinding
from kustos.metadata import ScramCredential
from kustos.metadata.image import ScramKey
from kustos.metadata.records import DelegationTokenRecord


@dataclass(frozen=True, slots=True)
class MigrationRefusal:
    """An item that should be migrated but cannot: it would change its meaning, or cannot be parsed."""

    where: str
    what: str
    reason: str
    is_user: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Items that this command does not migrate; `count` of them."""

    where: str
    what: str
    count: int


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A user who needs a new password, since the keys of the old one cannot be read or cannot be sent."""

    user: str
    mechanism: int
    iterations: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationSource:
    """Everything found. `acls` maps each ACL to its location; `closed` are users without their keys."""

    name: str
    acls: Mapping[AclBinding, str]
    credentials: Mapping[ScramKey, ScramCredential] = field(default_factory=dict, repr=False)
    closed: tuple[NewPassword, ...] = ()
    tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)
    refused: tuple[MigrationRefusal, ...] = ()
    left: tuple[LeftOut, ...] = ()
