"""Kafka's enumerations for access control, with their stable wire codes.

Source: `org.apache.kafka.common.acl` and `.resource` of Kafka 4.4.0. As in Kafka, an unassigned code is
`UNKNOWN`. The text forms are the names of the members, and the audit log prints resource types in camel case
(`TransactionalId`).
"""

from enum import IntEnum, unique
from functools import cache
from typing import Any, Self


class _CodedEnum(IntEnum):
    @classmethod
    def from_code(cls, code: int) -> Self:
        """Return the member with this wire code, `UNKNOWN` if there is none."""
        return cls._value2member_map_.get(code, cls(0))  # type: ignore[return-value]

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the member with the name in a text, or `UNKNOWN`.

        Kafka's tools and other tools write `DESCRIBE_CONFIGS`, `DescribeConfigs` or `describe-configs`.
        """
        found: Self = _by_word(cls).get(_word(text), cls(0))
        return found

    def __str__(self) -> str:
        return self.name


def _word(text: str) -> str:
    return text.strip().upper().replace("_", "").replace("-", "")


@cache
def _by_word(kind: type[_CodedEnum]) -> dict[str, Any]:
    return {_word(member.name): member for member in kind}


@unique
class AclOperation(_CodedEnum):
    """An operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


@unique
class AclPermissionType(_CodedEnum):
    """Whether an entry allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@unique
class ResourceType(_CodedEnum):
    """The kind of resource that an entry protects."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @property
    def camel_case(self) -> str:
        """The form in Kafka's audit log, such as `TransactionalId`."""
        return "".join(part.capitalize() for part in self.name.split("_"))


@unique
class PatternType(_CodedEnum):
    """How a pattern matches names of resources."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4

    @property
    def is_specific(self) -> bool:
        """Whether a stored entry can have this type (ANY and MATCH are for filters)."""
        return self in {PatternType.LITERAL, PatternType.PREFIXED}


WILDCARD = "*"
"""As a literal resource name: every resource; as a host: every host."""

CLUSTER_NAME = "kafka-cluster"
"""The only name that a CLUSTER resource can have."""

SUPPORTED_OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations that apply to each resource type (`AclEntry.supportedOperations`)."""
