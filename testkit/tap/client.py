"""The client whose requests are checked, and the questions that can be put about it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kustos.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclBinding, AclOperation, ResourceType
from testkit.differential.specification import Spec

Op = AclOperation
Type = ResourceType
Question = tuple[AclOperation, ResourceType, str]

TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTION_DENIED = 29, 30, 31, 53
TOKEN_NOT_ALLOWED, TOKEN_DENIED, INVALID_PRINCIPAL_TYPE = 64, 65, 67
DENIED_CODES = {
    Type.TOPIC: TOPIC_DENIED,
    Type.GROUP: GROUP_DENIED,
    Type.CLUSTER: CLUSTER_DENIED,
    Type.TRANSACTIONAL_ID: TRANSACTION_DENIED,
}
AUTHORIZATION_CODES = frozenset({*DENIED_CODES.values(), TOKEN_NOT_ALLOWED, TOKEN_DENIED})
UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, INVALID_RECORD = 100, 3, 42, 87
ILLEGAL_SASL_STATE, UNKNOWN_SERVER_ERROR, INVALID_TOPIC = 34, -1, 17
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that no client writes to in a transaction."""
NOT_ASKED = -(2**31)


@dataclass(frozen=True)
class Violation:
    """One thing that must not have been sent."""

    api: str
    rule: str
    detail: str


@dataclass
class Client:
    """A principal on a host, decided about by the specification; the topics are those that exist."""

    principal: str
    host: str
    acls: Collection[AclBinding]
    topic_names: Mapping[bytes, str]
    auto_creates_topics: bool = True
    super_users: frozenset[str] = frozenset()
    known: dict[Question, bool] = field(default_factory=dict)

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        asked = (operation, kind, name)
        if asked not in self.known:
            spec = Spec(self.acls, self.super_users)
            self.known[asked] = spec.authorize(self.principal, self.host, *asked)[0]
        return self.known[asked]

    def may_cluster(self, operation: AclOperation) -> bool:
        return self.may(operation, Type.CLUSTER, CLUSTER_NAME)

    def may_some(self, operation: AclOperation, kind: ResourceType) -> bool:
        spec = Spec(self.acls, self.super_users)
        return spec.by_resource_type(self.principal, self.host, operation, kind)

    def refusal(self, operation: AclOperation, kind: ResourceType, name: str) -> int | None:
        """Return the code of the refusal, None where it may."""
        return None if self.may(operation, kind, name) else DENIED_CODES[kind]

    def topic_refusal(self, operation: AclOperation, topic: str | bytes) -> int | None:
        """Return the code for a topic by name or id; an id that nobody knows is UNKNOWN_TOPIC_ID."""
        name = topic if isinstance(topic, str) else self.topic_names.get(topic)
        return UNKNOWN_TOPIC_ID if name is None else self.refusal(operation, Type.TOPIC, name)

    def bits(self, kind: ResourceType, name: str) -> int:
        """Return the bit field of the authorized operations."""
        return sum(1 << op for op in SUPPORTED_OPERATIONS[kind] if self.may(op, kind, name))
