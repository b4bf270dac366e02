"""The plan of a request: its decisions, the frame to send upstream, and the rule for the answer.

The outcome of a request of a repeatable row depends only on its bytes, the ACLs and upstream's answer. So the
first such request leaves a plan. While the ACLs stay the same, a request with the same bytes is neither
parsed nor decided again: the gateway records the decisions, sends the frame, and forwards an answer that fits
the rule without decoding it. If the answer does not fit, the gateway opens the request to decode the answer.

A request leaves no plan if kustos answered it, sent two requests upstream for it, or made a decision about
its answer. Only a Produce may name topics by id.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kustos.authorizer import AuthorizableRequestContext
from kustos.protocol.effects import (
    Ask,
    Effect,
    Handler,
    Outcome,
    Relay,
    Reply,
    ResolveTopicIds,
    UpstreamAnswer,
)
from kustos.protocol.exchange import Decided, Decider, NamedBroker, Recorder, are_still_allowed
from kustos.protocol.opened import Opened
from kustos.protocol.plans.alike import AlikeAnswers
from kustos.protocol.plans.passed import PassOn, SameAnswer, pass_any
from kustos.wire import (
    CORRELATION_ID_AT,
    CORRELATION_ID_END,
    INT32_BYTES,
    LENGTH_BYTES,
    ApiKey,
    MessageCodec,
    with_length,
)

ANSWERS_BYTES_MAX: Final = 4096
"""The most bytes that a plan keeps of upstream's answer and the client's answer together, to bound the memory
of a connection. Metadata has about 50 bytes for each partition."""

PRODUCE_ANSWER_BYTES_MAX: Final = 1024
"""The largest Produce answer whose structure a plan keeps, for the same reason."""

DECISIONS_MAX: Final = 16
"""The most decisions of a plan: each one keeps a line of the audit log, about 2 KB."""

ANSWER_HEADER_BYTES: Final = 5
"""The size of a header without tagged fields: the correlation id and the number of tagged fields."""

UP_HEAD_BYTES: Final = LENGTH_BYTES + CORRELATION_ID_AT


@dataclass(slots=True)
class Plan:
    """The plan of a request that went upstream and may be repeated."""

    api_key: int
    acks: int | None
    """The `acks` of a Produce; None for other requests."""
    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    granted: tuple[Decided, ...]
    """The decisions that allowed the request."""
    decider: Decider
    version: int
    """The version of the decider at these decisions."""
    topic_names: Mapping[bytes, str]
    """The names of the request's topic ids at these decisions; they must be unchanged."""
    upstream_frame: Callable[[bytes], bytes] = field(repr=False)
    """Returns the whole frame to send upstream, length included, for a client's frame."""
    pass_on: PassOn = field(repr=False)
    brokers: tuple[NamedBroker, ...] = ()
    """The brokers that upstream's answer names."""
    known_brokers: object = None
    """The brokers that the gateway knew when it last recorded `brokers`."""
    recorder: Recorder | None = None
    """Records the decisions again; created at the first repetition."""

    def is_still_allowed(self) -> bool:
        """Return whether every decision that allowed the request would still allow it."""
        return are_still_allowed(self.granted, self.decider, self.version)


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A frame for upstream, without the correlation id."""

    head: bytes = field(repr=False)
    rest: bytes = field(repr=False)

    def of(self, frame: bytes) -> bytes:
        """Return the frame with the correlation id of a client's frame."""
        return b"".join((self.head, frame[CORRELATION_ID_AT:CORRELATION_ID_END], self.rest))


def planned(opened: Opened, keep: Callable[[Plan], None]) -> Handler:
    """Run the handler of a request, and keep its plan if the same request may be repeated."""
    exchange, handler = opened.exchange, opened.handler
    effects: list[Effect] = []
    decided: list[Decided] = []
    result: Any = None
    while True:
        try:
            effect = handler.send(result)
        except StopIteration as stop:
            outcome: Outcome = stop.value
            break
        decided += exchange.decided
        effects.append(effect)
        result = yield effect
    if effects and exchange.decided:
        return outcome
    decided += exchange.decided
    version = exchange.since_version
    if not exchange.granted or version is None or version != exchange.decider_version:
        return outcome
    if len(decided) > DECISIONS_MAX or (passing := _passing(opened, effects, result, outcome)) is None:
        return outcome
    is_produce = opened.row.api_key == ApiKey.PRODUCE
    keep(
        Plan(
            opened.row.api_key,
            exchange.request.acks if is_produce else None,
            exchange.context,
            tuple(decided),
            tuple(exchange.granted),
            exchange.decider,
            version,
            exchange.topic_names,
            *passing,
            brokers=tuple(exchange.brokers),
        )
    )
    return outcome


def _passing(
    opened: Opened, effects: list[Effect], answer: Any, outcome: Outcome
) -> tuple[Callable[[bytes], bytes], PassOn] | None:
    """Return the function that builds the upstream frame, and the rule for the answer; None for no plan."""
    if opened.row.api_key == ApiKey.PRODUCE:
        return _passing_produce(opened, effects, answer, outcome)
    match effects, outcome:
        case [], Relay(message):
            codec = opened.answer_codec()
            return _renumbered(opened.upstream_frame(message)), partial(pass_any, opened.row.api_key, codec)
        case [Ask(message, api_version, api_key) as ask], Reply(bytes() as content) if answer.frame:
            throttle_time_ms = opened.throttle_time_ms(answer.frame, ask)
            if throttle_time_ms or len(answer.frame) + len(content) > ANSWERS_BYTES_MAX:
                return None
            reply = opened.client_frame(content)
            same = SameAnswer(
                answer.frame[INT32_BYTES:],
                reply[:LENGTH_BYTES],
                reply[LENGTH_BYTES + INT32_BYTES :],
                throttle_time_ms,
            )
            return _renumbered(opened.upstream_frame(message, api_version, api_key)), same.pass_on
    return None


def _renumbered(frame: bytes) -> Callable[[bytes], bytes]:
    return Renumbered(frame[:UP_HEAD_BYTES], frame[UP_HEAD_BYTES + INT32_BYTES :]).of


def _passing_produce(
    opened: Opened, effects: list[Effect], answer: Any, outcome: Outcome
) -> tuple[Callable[[bytes], bytes], PassOn] | None:
    """Return the same as `_passing` for a Produce without a transaction whose request and answer passed
    unchanged."""
    request, asked = opened.exchange.request, effects
    if asked and isinstance(asked[0], ResolveTopicIds):
        asked = asked[1:]
    match asked, outcome:
        case [Ask(None)], Reply(content) if content is answer.body and request.transactional_id is None:
            pass_on = _pass_like(opened.exchange.response_codec, answer) if opened.is_exact else None
            return None if pass_on is None else (with_length, pass_on)
    return None


def _pass_like(codec: MessageCodec, answer: UpstreamAnswer) -> PassOn | None:
    """Return the rule for answers like this unchanged answer; None if it is large or has tagged fields."""
    frame = answer.frame
    body_at = len(frame) - len(answer.body)
    is_usual = 0 < len(frame) <= PRODUCE_ANSWER_BYTES_MAX and body_at <= ANSWER_HEADER_BYTES
    if not is_usual or "throttle_time" not in codec.root.FIELDS:
        return None
    return AlikeAnswers.of(codec, answer.message, frame, body_at).pass_on
