"""Parses upstream's answer to a request: a small one at once, a large one in turns."""

from collections.abc import Generator
from typing import Any, Final

from kustos.protocol import (
    OWN_REQUEST,
    Ask,
    Effect,
    Handler,
    Opened,
    Outcome,
    UpstreamAnswer,
    encoded,
    read_through,
)
from kustos.wire import ItemReader, PartReader, read_response_header, response_header_is_flexible

LARGE_ANSWER_BYTES: Final = 8 * 1024
"""Smaller answers do not have more items than one turn can handle, because most items take more than eight
bytes."""


def read_answer(opened: Opened, frame: bytes, ask: Ask = OWN_REQUEST) -> UpstreamAnswer:
    """Return upstream's answer to a request; raise `WireError` if the frame is not a valid answer."""
    codec = opened.answer_codec(ask.api_version, ask.api_key)
    _, body_at = read_response_header(frame, response_header_is_flexible(opened.row.api_key, codec))
    if opened.row.large_list is not None:
        items = ItemReader(codec, frame, body_at, opened.row.large_list)
        return UpstreamAnswer(items.message, b"", frame, items)
    message, had_unknown_tags = codec.decode(frame, body_at)
    if had_unknown_tags:
        return UpstreamAnswer(message, codec.encode(message))
    return UpstreamAnswer(message, frame[body_at:], frame)


def answered_in_turns(opened: Opened, handler: Handler, frame: bytes, ask: Ask) -> Handler:
    """Return a handler that parses upstream's answer in turns and then continues as `handler`."""
    result: Any = yield from _read_in_turns(opened, frame, ask)
    while True:
        try:
            effect = handler.send(result)
        except StopIteration as done:
            outcome: Outcome = done.value
            return outcome
        result = yield effect


def _read_in_turns(opened: Opened, frame: bytes, ask: Ask) -> Generator[Effect, Any, UpstreamAnswer]:
    if opened.row.large_list is not None:
        # the handler parses the list itself, in turns
        return read_answer(opened, frame, ask)
    exchange, codec = opened.exchange, opened.answer_codec(ask.api_version, ask.api_key)
    _, body_at = read_response_header(frame, response_header_is_flexible(opened.row.api_key, codec))
    reader = PartReader(codec, frame, body_at)
    message = yield from read_through(exchange, reader)
    if reader.had_unknown_tags:
        return UpstreamAnswer(message, (yield from encoded(exchange, codec, message)))
    return UpstreamAnswer(message, frame[body_at:], frame)
