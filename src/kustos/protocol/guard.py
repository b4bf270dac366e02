"""The guard of one connection: takes a request frame and decides how to handle it.

The guard forwards only bytes that it has fully parsed: the client's own frame goes upstream only if its
header and body were read to the last byte in canonical form. The guard re-encodes a request without unknown
tagged fields and without bytes after the body: Kafka ignores both, and librdkafka 2.16 sends three extra
bytes with a Metadata request for all topics. Any other frame, and any failure in the guard, closes the
connection.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.protocol.api_versions import (
    Serves,
    refusing_response,
    serves_any,
    unsupported_version_response,
)
from kustos.protocol.codes import INVALID_REQUEST, UNSUPPORTED_VERSION
from kustos.protocol.effects import Ask, Handler, Hangup, Reply, ResolveTopicIds
from kustos.protocol.envelopes import FORWARDABLE
from kustos.protocol.exchange import Addresses, ContextAuthorizer, Decider, Exchange, UndecidedDecider
from kustos.protocol.fetch_sessions import FetchSessions
from kustos.protocol.interpreter import handle
from kustos.protocol.limits import frame_bytes_max, items_max
from kustos.protocol.opened import Opened
from kustos.protocol.plans import KeptPlans, Passed, Plan, RecalledDecider
from kustos.protocol.rows import OWN_APIS, TABLE
from kustos.protocol.share_sessions import ShareSessions
from kustos.protocol.steps import RefuseRequestError, Row
from kustos.protocol.subscriptions import Subscriptions, Topologies
from kustos.protocol.turns import read_through
from kustos.wire import (
    INT32_BYTES,
    ApiKey,
    MalformedMessageError,
    Message,
    MessageCodec,
    PartReader,
    RequestHeader,
    UnsupportedMessageError,
    api_name,
    codec_versions,
    peek_api,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
)

READ_AT_ONCE: Final = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH})
"""APIs whose requests are read as a whole: fetch limits and plans apply before their handlers run."""

WITHOUT_REPLICA_ID_VERSION: Final = 15
"""From this version of Fetch on, a follower sends its id in a tagged field (KIP-903)."""

UNREAD: Final = Message.__new__(Message)
"""Placeholder for a request that was not read yet; it has no fields."""

ContextOf = Callable[[RequestHeader], AuthorizableRequestContext]
"""Returns the context of a request with this header: its requester and listener."""


class RefusedFrameError(Exception):
    """A frame that closes the connection without an answer; the text is for our log only."""


@dataclass(slots=True)
class Guard:
    """Opens the requests of one connection. `offered`: the API versions offered to the client.

    `is_shadow`: requests to upstream always pass, and the exchange records what the ACLs would deny.
    """

    decider: Decider
    context_of: ContextOf
    addresses: Addresses
    offered: Mapping[int, tuple[int, int]]
    auto_creates_topics: bool = True
    fetch_sessions: FetchSessions = field(default_factory=FetchSessions)
    share_sessions: ShareSessions = field(default_factory=ShareSessions)
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    topologies: Topologies = field(default_factory=Topologies)
    plans: KeptPlans = field(default_factory=KeptPlans)
    context_authorizer: ContextAuthorizer | None = None
    table: Mapping[int, Row] = field(default_factory=lambda: TABLE)
    is_shadow: bool = False
    refusal: Callable[[], AuthorizerError | None] = lambda: None
    """Returns why no decision is possible now, so each request is refused; None if decisions are possible."""
    serves: Serves = serves_any
    """Whether a client that means this node of this cluster is right here."""

    def open(self, frame: bytes) -> Opened | bytes:
        """Return the request in a frame, or the frame that answers it at once.

        Raise `RefusedFrameError` for a frame that is not an allowed request.
        """
        return self._now()._open(frame)

    def open_in_turns(self, frame: bytes) -> Opened | bytes:
        """Return the same as `open`, but with a handler that first reads the request in turns.

        That handler raises the errors of `open`.
        """
        return self._now()._open(frame, in_turns=True)

    def _now(self) -> "Guard":
        error = self.refusal()
        return self if error is None else self._undecided(error)

    def _undecided(self, error: AuthorizerError) -> "Guard":
        """Return a guard of the same connection that refuses every request that needs a decision."""
        return replace(
            self,
            decider=UndecidedDecider(error),
            plans=KeptPlans(),
            context_authorizer=None,
            is_shadow=False,
        )

    def _open(self, frame: bytes, *, in_turns: bool = False) -> Opened | bytes:
        try:
            api_key, api_version, _ = peek_api(frame)
            row = self.table.get(api_key)
            versions = self.offered.get(api_key)
            if row is None or versions is None:
                raise RefusedFrameError(f"the API {api_name(api_key)} is not offered here")
            if not versions[0] <= api_version <= versions[1]:
                if api_key == ApiKey.API_VERSIONS:
                    return self._unsupported_api_versions(frame)
                raise RefusedFrameError(f"{api_name(api_key)} v{api_version} is not offered here")
            opened = self._opened(frame, row, in_turns=in_turns and api_key not in READ_AT_ONCE)
        except (MalformedMessageError, UnsupportedMessageError) as error:
            raise RefusedFrameError(str(error)) from None
        if row.repeatable and self.context_authorizer is None and not self.is_shadow:
            self.plans.watch(opened)
        return opened

    def plan_of(self, frame: bytes) -> Plan | None:
        """Return the plan of an earlier request that this frame repeats, if the ACLs are still the same."""
        return self.plans.find(frame, self.decider.version)

    def pass_on(self, plan: Plan, answer: bytes) -> Passed | None:
        """Return the client's answer for upstream's answer to a request with a plan.

        None if the answer does not fit the plan; the caller then calls `reopen`. Raise `WireError` if the
        bytes are not an answer. The gateway records the brokers that the answer names, as it does for a
        decoded answer.
        """
        passed = plan.pass_on(answer)
        if passed is not None:
            self.plans.in_vain.pop(plan.api_key, None)
            if plan.brokers and plan.known_brokers is not self.addresses.known:
                self.addresses.learn(plan.brokers)
                plan.known_brokers = self.addresses.known
        return passed

    def reopen(self, plan: Plan, frame: bytes) -> tuple[Opened, Ask]:
        """Return the request in a frame that was sent by a plan, and its request to upstream.

        The handler continues with upstream's answer. The decisions were recorded when the frame was sent.
        """
        self.plans.drop(plan)
        opened = replace(self, decider=RecalledDecider(plan))._open(frame)
        if isinstance(opened, bytes):
            raise TypeError("a repeated request was answered here")
        effect = next(opened.handler, None)
        if isinstance(effect, ResolveTopicIds):
            effect = opened.handler.send(plan.topic_names)
        if not isinstance(effect, Ask):
            raise TypeError("a repeated request does not ask upstream")
        opened.exchange.decider, opened.exchange.decided = self.decider, []
        return opened, effect

    def renew(self, context_of: ContextOf, decider: Decider | None) -> None:
        """Use this function for the contexts of later requests, after a re-authentication (KIP-368).

        `decider`: decides them if the client's groups have changed; the topics of its subscriptions are then
        resolved again.
        """
        self.context_of = context_of
        self.plans.forget()
        if decider is not None:
            self.decider, self.subscriptions = decider, Subscriptions()

    def open_forwarded(self, frame: bytes) -> Opened:
        """Return the request in an Envelope; raise `RefuseRequestError` with the Envelope's code.

        As in Kafka, the code is UNSUPPORTED_VERSION for an unreadable request, and INVALID_REQUEST for a
        request that may not be forwarded, such as an Envelope in an Envelope.
        """
        try:
            api_key, api_version, _ = peek_api(frame)
            # the header comes first: its format depends on the API, known or not
            read_request_header(frame, request_codec(api_key, _nearest(api_key, api_version)).flexible)
            row = self.table.get(api_key)
            if row is None or api_key not in FORWARDABLE:
                raise RefuseRequestError(INVALID_REQUEST)
            lowest, highest = self.offered.get(api_key, (0, -1))
            if not lowest <= api_version <= highest:
                raise RefuseRequestError(UNSUPPORTED_VERSION)
            opened = self._opened(frame, row)
        except (MalformedMessageError, UnsupportedMessageError, RefusedFrameError):
            raise RefuseRequestError(UNSUPPORTED_VERSION) from None
        opened.exchange.is_forwarded = True
        return opened

    def _opened(self, frame: bytes, row: Row, *, in_turns: bool = False) -> Opened:
        api_key, api_version, _ = peek_api(frame)
        codec = request_codec(api_key, api_version)
        header = read_request_header(frame, codec.flexible)
        bytes_max = frame_bytes_max(api_key)
        if bytes_max is not None and len(frame) > bytes_max:
            raise RefusedFrameError(f"{api_name(api_key)} of {len(frame)} bytes is too large")
        if in_turns:
            opened = Opened(self._exchange(header, codec, UNREAD), _unread(), row, frame, is_exact=False)
            opened.handler = self._read_in_turns(opened)
            return opened
        request, end, had_unknown_tags = codec.read(frame, header.body_offset, items_max(api_key))
        exchange = self._exchange(header, codec, request)
        is_exact = end == len(frame) and not had_unknown_tags and not header.had_unknown_tags
        return Opened(exchange, self._handler(exchange, row), row, frame, is_exact)

    def _read_in_turns(self, opened: Opened) -> Handler:
        """Read the request, then run its own handler; raise `RefusedFrameError`."""
        exchange, frame = opened.exchange, opened.frame
        codec, header = exchange.codec, exchange.header
        reader = PartReader(codec, frame, header.body_offset, codec.name, items_max(header.api_key))
        try:
            exchange.request = yield from read_through(exchange, reader)
        except MalformedMessageError as error:
            raise RefusedFrameError(str(error)) from None
        opened.is_exact = (
            reader.end == len(frame) and not reader.had_unknown_tags and not header.had_unknown_tags
        )
        return (yield from self._handler(exchange, opened.row))

    def _handler(self, exchange: Exchange, row: Row) -> Handler:
        """Return the handler of a request that was read; raise `RefusedFrameError`."""
        if row.unparsable(exchange.request):
            raise RefusedFrameError(f"{api_name(exchange.header.api_key)} has elements of type UNKNOWN")
        return self._checked_api_versions(exchange) or handle(exchange, row)

    def _exchange(self, header: RequestHeader, codec: MessageCodec, request: Message) -> Exchange:
        return Exchange(
            header,
            codec,
            request,
            self.decider,
            self.context_of(header),
            self.addresses,
            self.auto_creates_topics,
            self.fetch_sessions,
            self.share_sessions,
            self.subscriptions,
            self.topologies,
            context_authorizer=self.context_authorizer,
            since_version=None if self.context_authorizer is not None else self.decider.version,
            is_shadow=self.is_shadow and header.api_key not in OWN_APIS,
        )

    def _unsupported_api_versions(self, frame: bytes) -> bytes:
        _, _, correlation_id = peek_api(frame)
        codec = response_codec(ApiKey.API_VERSIONS, 0)
        body = codec.encode(unsupported_version_response())
        return response_frame(ApiKey.API_VERSIONS, codec, correlation_id, body)

    def _checked_api_versions(self, exchange: Exchange) -> Handler | None:
        """Return the handler that refuses an ApiVersions, None if it is valid or another request."""
        if exchange.header.api_key != ApiKey.API_VERSIONS:
            return None
        refusing = refusing_response(exchange.version, exchange.request, self.serves)
        return None if refusing is None else _reply_at_once(Reply(refusing))


def _unread() -> Handler:
    """Return a placeholder for a handler that is created later."""
    yield from ()
    return Hangup("a request was handled before it was read")


def _reply_at_once(reply: Reply) -> Handler:
    yield from ()
    return reply


def _nearest(api_key: int, api_version: int) -> int:
    lowest, highest = codec_versions(api_key) or (0, -1)
    return max(lowest, min(highest, api_version))


def limit_answer(opened: Opened, grant: Callable[[int], int]) -> None:
    """Lower the `max_bytes` of a Fetch or ShareFetch to the granted number; call before its handler runs.

    No other request has such a field; a broker exceeds it only by the first batch (KIP-74). In a Fetch only
    these four bytes of the frame change, since the frame may go upstream otherwise unchanged. A ShareFetch is
    encoded again, since names of any length precede the field.
    """
    exchange = opened.exchange
    if exchange.header.api_key not in {ApiKey.FETCH, ApiKey.SHARE_FETCH}:
        return
    wanted_bytes = exchange.request.max_bytes
    granted_bytes = grant(wanted_bytes)
    if granted_bytes == wanted_bytes:
        return
    exchange.request = exchange.request.replace(max_bytes=granted_bytes)
    if exchange.header.api_key == ApiKey.SHARE_FETCH:
        opened.is_exact = False
        return
    frame, at = opened.frame, max_bytes_at(exchange.header.body_offset, exchange.version)
    patched = granted_bytes.to_bytes(INT32_BYTES, "big", signed=True)
    opened.frame = b"".join((frame[:at], patched, frame[at + INT32_BYTES :]))


def max_bytes_at(body_offset: int, version: int) -> int:
    """Return the offset of `max_bytes`: after `max_wait`, `min_bytes` and, in old versions, `replica_id`."""
    fields_before = 2 if version >= WITHOUT_REPLICA_ID_VERSION else 3
    return body_offset + fields_before * INT32_BYTES
