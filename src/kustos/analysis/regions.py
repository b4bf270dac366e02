"""Regions: exact pieces of all possible questions, as values that people and programs read."""

from dataclasses import dataclass
from enum import Enum, unique
from typing import Any, Final

from kustos.acl import AclOperation, ResourceType
from kustos.analysis.host_sets import HostSet
from kustos.analysis.name_sets import NameSet
from kustos.authorizer.index import ALLOWS, EVERY_ALLOW
from kustos.runtime import LISTED_MAX, listed

_WITNESS: Final = "User:someone"

REGIONS_MAX: Final = 10_000
"""Regions per answer: more than a person reads, and few enough for memory and for one page."""


@dataclass(frozen=True, slots=True)
class PrincipalSet:
    """A set of principals as `Type:name`; with `is_everyone_but`, all principals except these."""

    names: tuple[str, ...]
    is_everyone_but: bool = False

    def __contains__(self, principal: str) -> bool:
        return (principal in self.names) is not self.is_everyone_but

    def witness(self) -> str:
        """Return a principal in the set; raise `ValueError` if the set is empty."""
        if not self.is_everyone_but:
            if not self.names:
                raise ValueError("no principal is in an empty set")
            return self.names[0]
        taken = set(self.names)
        witness, number = _WITNESS, 1
        while witness in taken:
            number += 1
            witness = f"{_WITNESS}-{number}"
        return witness

    def text(self, shown_max: int = LISTED_MAX) -> str:
        """Return words such as `everyone except User:alice`."""
        names = listed(self.names, "and", shown_max)
        if not self.is_everyone_but:
            return names or "no principal"
        return f"everyone except {names}" if names else "everyone"

    def to_json(self) -> dict[str, Any]:
        """Return `{"in": [...]}` or `{"except": [...]}`."""
        return {"except" if self.is_everyone_but else "in": list(self.names)}


def operations_of(bits: int) -> tuple[AclOperation, ...]:
    """Return the operations of a mask of ALLOW bits."""
    return tuple([operation for operation, bit in ALLOWS.items() if bits & bit])


@dataclass(frozen=True, slots=True)
class Probe:
    """One concrete question for an authorizer."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str

    def text(self) -> str:
        """Return the question in words."""
        where = f"{self.resource_type.name.lower()} `{self.name}`"
        return f"{self.principal} from {self.host}: {self.operation} on {where}"

    def to_json(self) -> dict[str, str]:
        """Return the question in the form that `kustos decide` reads."""
        return {
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation.name,
            "resource_type": self.resource_type.name,
            "resource_name": self.name,
        }


@dataclass(frozen=True, slots=True)
class Region:
    """All questions of these principals, from these hosts, for these operations, on these names."""

    principals: PrincipalSet
    hosts: HostSet
    operations: tuple[AclOperation, ...]
    resource_type: ResourceType
    names: NameSet

    def __contains__(self, probe: Probe) -> bool:
        return (
            probe.resource_type is self.resource_type
            and probe.operation in self.operations
            and probe.principal in self.principals
            and probe.host in self.hosts
            and probe.name in self.names
        )

    def witness(self) -> Probe:
        """Return one question from the region."""
        return Probe(
            self.principals.witness(),
            self.hosts.witness(),
            self.operations[0],
            self.resource_type,
            self.names.witness(),
        )

    def text(self) -> str:
        """Return words such as ``User:alice, from anywhere, READ on topics that begin with `pay-` ``."""
        is_every = len(self.operations) == EVERY_ALLOW.bit_count()
        operations = "every operation" if is_every else listed([str(op) for op in self.operations], "and")
        names = self.names.text(self.resource_type)
        return f"{self.principals.text()}, from {self.hosts.text()}, {operations} on {names}"

    def to_json(self) -> dict[str, Any]:
        """Return the region as an object of plain values, with a `witness`."""
        return {
            "principals": self.principals.to_json(),
            "hosts": self.hosts.to_json(),
            "operations": [operation.name for operation in self.operations],
            "resource_type": self.resource_type.name,
            "names": self.names.to_json(),
            "witness": self.witness().to_json(),
        }


@unique
class Direction(Enum):
    """The direction in which a change affects a question."""

    GAINED = "GAINED"
    LOST = "LOST"


@dataclass(frozen=True, slots=True)
class Change:
    """A region whose decisions all change in one direction."""

    direction: Direction
    region: Region

    def text(self) -> str:
        """Return `gained: ` or `lost: ` and the region in words."""
        return f"{self.direction.value.lower()}: {self.region.text()}"

    def to_json(self) -> dict[str, Any]:
        """Return the region as an object, with its `direction`."""
        return {"direction": self.direction.value, **self.region.to_json()}
