"""What a migration found in another system, before anybody asks where it should go."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kustos.acl import AclBinding
from kustos.metadata.image import ScramKey
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramCredential


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is not taken over although it should be: it would mean something else, or nothing can read it."""

    where: str
    what: str
    reason: str
    is_user: bool = False


@dataclass(frozen=True, slots=True)
class Left:
    """What is not for this command to take over; `count` of them."""

    where: str
    what: str
    count: int


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A user who can only be made anew, since the keys of the password cannot be had or cannot be sent."""

    user: str
    mechanism: int
    iterations: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Everything found. `acls` maps each ACL to its place; `closed` are users without their keys."""

    name: str
    acls: Mapping[AclBinding, str]
    credentials: Mapping[ScramKey, ScramCredential] = field(default_factory=dict, repr=False)
    closed: tuple[NewPassword, ...] = ()
    tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    left: tuple[Left, ...] = ()
