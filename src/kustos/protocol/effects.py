"""What the guard asks of its surroundings, and how an exchange can end.

A handler is a generator: it yields the effects of the first half and is sent their results; it returns
one of the outcomes of the second half. Only the gateway performs them. Between the resumption of a
handler and the `Ask` or `Relay` it answers with there is no waiting, so everything a forwarded request
was decided by belongs to one version of the ACLs.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from kustos.acl import KafkaPrincipal
from kustos.wire import Message


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request upstream and send its `Answer` back into the handler.

    `message` None: the client's own bytes. `api_version` None: the client's version.
    """

    message: Message | None = None
    api_version: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What upstream said: read, and as the bytes of its body."""

    message: Message
    body: bytes


@dataclass(frozen=True, slots=True)
class ResolveTopicIds:
    """Send back a dict of topic id (16 bytes) to name, without the ids that upstream does not know."""

    topic_ids: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class ListTopics:
    """Send back the set of those of these topics that exist upstream; None asks for all there are."""

    names: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Serve:
    """Let kustos itself answer this authorized request; send back the response message."""

    message: Message


Effect: TypeAlias = Ask | ResolveTopicIds | ListTopics | Serve


@dataclass(frozen=True, slots=True)
class Relay:
    """Send the request upstream and hand the client whatever bytes come back.

    `message` None: the client's own bytes. Without `expects_answer` upstream will be silent
    (Produce with acks=0).
    """

    message: Message | None = None
    expects_answer: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the client with this message, or with the body that upstream sent, unchanged."""

    content: Message | bytes


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close the connection without an answer; the reason is for our log only."""

    reason: str
    relayed_first: Message | None = None
    """A request without an answer (acks=0) to send upstream before closing."""


@dataclass(frozen=True, slots=True)
class Unwrap:
    """Answer, for whoever made it, the request that an Envelope held (KIP-590)."""

    principal: KafkaPrincipal
    frame: bytes = field(repr=False)
    """A whole request without its length: header and body."""
    address: bytes = field(repr=False)
    """Where it came from: 4 or 16 bytes."""


Outcome: TypeAlias = Relay | Reply | Hangup | Unwrap
T = TypeVar("T")
Asking: TypeAlias = Generator[Effect, Any, T]
"""A part of a handler that needs effects to come to its result."""
Handler: TypeAlias = Asking[Outcome]
