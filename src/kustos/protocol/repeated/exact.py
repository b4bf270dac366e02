"""A small request that is sent again to the byte, as a client's Metadata and heartbeats are.

What happens to a request of a repeatable row follows from its bytes, the ACLs and upstream's answer. So the
exchange of one that went upstream is kept: what was decided, the frame that went up, the answer, and the
client's frame. The same bytes, but for the correlation id, by the same ACLs are neither parsed nor decided
again. If upstream's answer is the same too, so is the client's. An answer that passed as bytes may be any.

Anything else takes the usual way: a request that was answered here or named topics by id, one that asked
upstream twice, and one about whose answer something was decided.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

from kustos.authorizer import AuthorizableRequestContext
from kustos.protocol.effects import Ask, Effect, Handler, Outcome, Relay, Reply
from kustos.protocol.exchange import Addresses, Decided, NamedBroker, Record
from kustos.protocol.opened import Opened, throttle_time_in
from kustos.wire import (
    CORRELATION_ID_AT,
    CORRELATION_ID_END,
    INT32_BYTES,
    LENGTH_BYTES,
    MessageCodec,
    with_length,
)

ANSWERS_BYTES_MAX: Final = 4096
"""The most bytes of upstream's answer and the client's together that are kept: it bounds the memory of a
connection. Metadata has some 50 for each partition."""

UP_HEAD_BYTES: Final = LENGTH_BYTES + CORRELATION_ID_AT

PassOn: TypeAlias = Callable[[bytes], tuple[int | None, bytes] | None]
"""Returns the throttle time of upstream's answer in milliseconds, None if it has none, and the client's
frame; None if the answer must be read. Raises `WireError` if it is no answer."""


@dataclass(slots=True)
class ExactExchange:
    """The exchange of a request, for those with the same bytes."""

    api_key: int
    head: bytes = field(repr=False)
    """What goes upstream before the correlation id, with the length of the frame."""
    rest: bytes = field(repr=False)
    """What goes upstream behind it."""
    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    granted: tuple[Decided, ...]
    """What lets it pass, of all that was decided."""
    version: int
    """The decider's version by which it was decided."""
    pass_on: PassOn = field(repr=False)
    brokers: tuple[NamedBroker, ...]
    """The brokers that upstream's answer names."""
    known: object = None
    """The brokers that the gateway knew when it last learned these."""
    record: Record | None = None
    """Whoever records decisions leaves here how to record those of a repetition."""

    acks: ClassVar[None] = None
    """It is no Produce."""
    topic_names: ClassVar[Mapping[bytes, str]] = MappingProxyType({})

    def teach(self, addresses: Addresses) -> None:
        """Let the gateway learn the brokers again that a repeated answer names, if it may not know them."""
        if self.brokers and self.known is not addresses.known:
            addresses.learn(self.brokers)
            self.known = addresses.known

    def sent(self, frame: bytes) -> bytes:
        """Return the whole frame to send upstream for a repetition."""
        return b"".join((self.head, frame[CORRELATION_ID_AT:CORRELATION_ID_END], self.rest))


@dataclass(frozen=True, slots=True)
class SameAnswer:
    """An answer of upstream, and what the client got for it; both without the correlation id."""

    answer: bytes = field(repr=False)
    length: bytes
    """The length of the client's frame, as it begins."""
    reply: bytes = field(repr=False)
    throttle_time_ms: int | None

    def pass_on(self, answer: bytes) -> tuple[int | None, bytes] | None:
        """Return the throttle time and the client's frame; None if upstream's answer is another."""
        if answer[INT32_BYTES:] != self.answer:
            return None
        return self.throttle_time_ms, b"".join((self.length, answer[:INT32_BYTES], self.reply))


def watch(opened: Opened, keep: Callable[[ExactExchange], None]) -> Handler:
    """Go on as the handler of a request, and keep its exchange if the same request may be repeated."""
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
    if (passed := _passed(opened, effects, result, outcome)) is not None:
        sent, pass_on = passed
        head, rest = sent[:UP_HEAD_BYTES], sent[UP_HEAD_BYTES + INT32_BYTES :]
        of_request = exchange.context, tuple(decided), tuple(exchange.granted), version
        brokers = tuple(exchange.brokers)
        keep(ExactExchange(opened.row.api_key, head, rest, *of_request, pass_on, brokers))
    return outcome


def _passed(
    opened: Opened, effects: list[Effect], answer: Any, outcome: Outcome
) -> tuple[bytes, PassOn] | None:
    """Return the frame that went upstream and what passes its answer on; None if it is not to be kept."""
    match effects, outcome:
        case [], Relay(message):
            pass_on = partial(_pass_any, opened.row.api_key, opened.answer_codec())
            return opened.upstream_frame(message), pass_on
        case [Ask(message, api_version, api_key) as ask], Reply(bytes() as content) if answer.frame:
            throttle_time_ms = opened.throttle_time_ms(answer.frame, ask)
            if throttle_time_ms or len(answer.frame) + len(content) > ANSWERS_BYTES_MAX:
                return None
            sent, reply = opened.upstream_frame(message, api_version, api_key), opened.client_frame(content)
            same = answer.frame[INT32_BYTES:], reply[:LENGTH_BYTES], reply[LENGTH_BYTES + INT32_BYTES :]
            return sent, SameAnswer(*same, throttle_time_ms).pass_on
    return None


def _pass_any(api_key: int, codec: MessageCodec, answer: bytes) -> tuple[int | None, bytes]:
    """Pass upstream's answer on as it is."""
    return throttle_time_in(api_key, codec, answer), with_length(answer)
