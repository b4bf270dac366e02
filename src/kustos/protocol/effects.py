"""The effects that handlers request, and the outcomes of an exchange.

A handler is a generator: it yields effects, the first half of this module, and receives their results. It
returns one of the outcomes, the second half. Only the gateway performs them. A handler does not wait between
its resumption and its `Ask` or `Relay`, so all decisions for a forwarded request use one version of the ACLs.
If a handler yields the event loop in between, its grants are decided again, all at once, before the request
is forwarded.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from kustos.acl import KafkaPrincipal
from kustos.wire import ItemReader, Message, Shape


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request upstream and send its `UpstreamAnswer` back into the handler.

    `message` None: the client's own bytes. `api_version` and `api_key` None: the values of the client's
    request. The client never sees the answer of another API.
    """

    message: Message | None = None
    api_version: int | None = None
    api_key: int | None = None


OWN_REQUEST: Final = Ask()
"""A request of the client's API and version."""


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """An answer of upstream: the decoded message and the bytes of its body.

    If the row has a `large_list`, this list is None in the message, and `items` reads it.
    """

    message: Message
    body: bytes = field(repr=False)
    frame: bytes = field(default=b"", repr=False)
    """The frame without its length prefix. It is set if the frame is canonical, and always with `items`."""
    items: ItemReader | None = None


@dataclass(frozen=True, slots=True)
class AskStreamed:
    """Send this request upstream and forward its answer to the client while it arrives.

    Send back a `StreamedAnswer` once the answer was forwarded. If the answer arrived as a whole and must be
    changed, forward nothing and send back the `UpstreamAnswer` instead. `message` None: the client's own
    bytes.
    """

    message: Message | None
    shape: Shape
    on_part: Callable[[Message, Message], object]
    """Called with an item and a part of it before its records pass; raises `MalformedMessageError`."""
    on_end: Callable[[Message], Sequence[Message]]
    """Returns messages whose tagged fields may replace the fields that arrived, the best first."""


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """An answer that was forwarded to the client: decoded, without its records."""

    message: Message


@dataclass(frozen=True, slots=True)
class ResolveTopicIds:
    """Send back a dict of topic id (16 bytes) to name, without ids unknown to upstream."""

    topic_ids: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class ListTopics:
    """Send back the number of partitions of each of these topics upstream, without nonexistent topics.

    `names` None means all topics.
    """

    names: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class AllTopics:
    """Send back the `ClusterTopics`: the names of all topics upstream, at most some seconds old."""


@dataclass(frozen=True, slots=True)
class Serve:
    """Let kustos itself answer `exchange.request`; send back the response message.

    Only `perform.served` requests it; `exchange.request` then holds the allowed part of the request.
    """


@dataclass(frozen=True, slots=True)
class GiveWay:
    """Yield the event loop during work on a large request, then continue; send back None."""


Effect: TypeAlias = Ask | AskStreamed | ResolveTopicIds | ListTopics | AllTopics | Serve | GiveWay


@dataclass(frozen=True, slots=True)
class Relay:
    """Send the request upstream and pass the answer to the client as bytes.

    `message` None: the client's own bytes.
    """

    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the client with this message or this encoded body, which may hold a token's secret."""

    content: Message | bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Streamed:
    """Answer nothing more: the answer was forwarded while it arrived."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Answer nothing: the client expects no answer to this request (Produce with acks=0)."""


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close the connection without an answer; the reason is for our log only."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unwrap:
    """Handle the request in an Envelope, for its original requester (KIP-590)."""

    principal: KafkaPrincipal
    frame: bytes = field(repr=False)
    """A whole request without its length prefix: header and body."""
    address: bytes = field(repr=False)
    """Address of the original client: 4 or 16 bytes."""


Outcome: TypeAlias = Relay | Reply | Streamed | Silence | Hangup | Unwrap
T = TypeVar("T")
Effects: TypeAlias = Generator[Effect, Any, T]
"""A part of a handler that yields effects and returns a result."""
Handler: TypeAlias = Effects[Outcome]
