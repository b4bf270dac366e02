"""The source of a node's metadata: a committed log to follow, and a method to change it.

There are three sources: the log of this process, the writer process of a node with workers, and a KRaft
quorum. An answer to a change has the same meaning for each of them: the change is committed, and in force in
every process of this node.
"""

from dataclasses import dataclass, field
from typing import Protocol

from kustos.authorizer import AclMutator
from kustos.client.quorum import Forwarded
from kustos.metadata.control import TokenRules
from kustos.metadata.image import MetadataImage, MetadataPublisher
from kustos.metadata.log import MetaProperties
from kustos.wire import Message


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to a change, its first offset in the log, and the changed item if no message names it."""

    answer: Message = field(repr=False)
    offset: int | None = None
    changed: str | None = None


class FollowedMetadata(Protocol):
    """A committed log, up to the last applied record."""

    @property
    def properties(self) -> MetaProperties:
        """The cluster and the node."""

    @property
    def token_rules(self) -> TokenRules:
        """The rules of delegation tokens."""

    @property
    def image(self) -> MetadataImage:
        """The committed state."""

    @property
    def last_offset(self) -> int:
        """The position: the offset of the last applied record."""

    def add_publisher(self, publisher: MetadataPublisher) -> None:
        """Pass the current state to the publisher, and every later batch or snapshot, in the log's order."""


class MetadataSource(Protocol):
    """A committed log that is followed, and a method to change it."""

    @property
    def store(self) -> FollowedMetadata:
        """The applied state of the log."""

    @property
    def mutator(self) -> AclMutator:
        """Changes the ACLs."""

    async def submit(self, request: Forwarded) -> Submitted:
        """Make a change in the name of its requester; raise `KafkaApiError`."""

    async def close(self) -> None:
        """Stop following."""
