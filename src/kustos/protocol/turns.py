"""Processing of a request's items in turns: after a thousand items it yields the event loop.

All clients of a process share one event loop. So a handler processes its items with these functions, which
count the items of the whole request and yield the event loop (`GiveWay`) whenever a turn is full. At the end
the performer of the effects decides earlier grants again. Code that bypasses this module and processes all
items at once must take less than a tenth of a microsecond per item.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from kustos.protocol.effects import Effects, GiveWay
from kustos.protocol.exchange import ITEMS_PER_TURN, Check, Exchange, Question
from kustos.protocol.shapes import Items, Refusal
from kustos.wire import ItemReader, Message, MessageCodec, PartReader, PartWriter

ITEM_BYTES: Final = 64
"""Bytes of an answer that are read in the time of one item: a topic with one partition."""

DECISION_COST: Final = 2
"""The cost of a decision, in items: its audit event is written in the same turn, before the effect."""

CHARACTERS_PER_ITEM: Final = 256
"""Characters of a long name that take as long as one item: the audit event has the name escaped, and
truncated with a hash."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def begin_item(exchange: Exchange, cost: int = 1) -> Effects[None]:
    """Count the next item; yield the event loop first if this turn is full."""
    if exchange.turn_room < cost:
        yield GiveWay()
        exchange.turn_room = ITEMS_PER_TURN
    exchange.turn_room -= cost


def in_turns(
    exchange: Exchange,
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Iterable[Result]],
    cost: int = 1,
) -> Effects[list[Result]]:
    """Return the results of `work` on successive parts of the items; each item costs `cost` of a turn."""
    results: list[Result] = []
    first = 0
    while first < len(items):
        if exchange.turn_room < cost:
            yield GiveWay()
            exchange.turn_room = ITEMS_PER_TURN
        part = items[first : first + exchange.turn_room // cost]
        exchange.turn_room -= len(part) * cost
        results += work(part)
        first += len(part)
    return results


def each(
    exchange: Exchange, items: Sequence[Item], work: Callable[[Item], Result], cost: int = 1
) -> Effects[list[Result]]:
    """Return the result of `work` for each item, in order."""
    return in_turns(exchange, items, lambda part: map(work, part), cost)


def next_names(exchange: Exchange, reader: ItemReader) -> Effects[list[tuple[Any, int]]]:
    """Return the names of the next items of an answer with their offsets, up to the end of the turn.

    The result is empty at the end of the answer.
    """
    yield from begin_item(exchange)
    names, size_bytes = reader.outline(exchange.turn_room * ITEM_BYTES)
    exchange.turn_room -= size_bytes // ITEM_BYTES
    return names


def read_through(exchange: Exchange, reader: PartReader) -> Effects[Message]:
    """Return the message that a reader decodes."""
    while reader.message is None:
        yield from begin_item(exchange)
        exchange.turn_room -= reader.read(exchange.turn_room)
    return reader.message


def encoded(exchange: Exchange, codec: MessageCodec, message: Message) -> Effects[bytes]:
    """Return the bytes of a message."""
    writer = PartWriter(codec, message)
    while not writer.is_done:
        yield from begin_item(exchange)
        exchange.turn_room -= writer.write(exchange.turn_room)
    return writer.body


def allowed_each(
    exchange: Exchange, questions: Sequence[Question], *, listing: bool = False
) -> Effects[list[bool]]:
    """Return whether each check passes for its name."""
    verdicts: list[bool] = []
    part: list[Question] = []
    for question in questions:
        cost = DECISION_COST + len(question[1]) // CHARACTERS_PER_ITEM
        if exchange.turn_room < cost:
            verdicts += exchange.allows_each(part, listing=listing)
            part = []
            yield GiveWay()
            exchange.turn_room = ITEMS_PER_TURN
        exchange.turn_room -= cost
        part.append(question)
    verdicts += exchange.allows_each(part, listing=listing)
    return verdicts


def allowed_names(
    exchange: Exchange, check: Check, names: Iterable[str], *, listing: bool = False
) -> Effects[frozenset[str]]:
    """Return the names that pass; each name is checked once, with the number of its occurrences."""
    references = Counter(iter(names))  # the keys of a dict, not its values
    questions = [(check, name, count) for name, count in references.items()]
    verdicts = yield from allowed_each(exchange, questions, listing=listing)
    return frozenset(name for name, allowed in zip(references, verdicts, strict=True) if allowed)


def answers(
    exchange: Exchange,
    shape: Items,
    message_type: type[Message],
    items: Sequence[Any],
    code: int,
    message: str | None = None,
) -> Effects[list[Message]]:
    """Return the response items with this code for request items; `message` None: Kafka's text."""
    answered, inner = shape.answerer(message_type, code, message), shape.inner
    if inner is None:
        return (yield from each(exchange, items, answered))
    lists = [item.get(inner.request_list) or () for item in items]
    below = inner.answerer(message_type.ELEMENTS[inner.response_list], code, message)
    waiting = iter((yield from each(exchange, [one for each_list in lists for one in each_list], below)))
    return (
        yield from each(
            exchange,
            list(zip(items, map(len, lists), strict=True)),
            lambda item: answered(item[0], list(islice(waiting, item[1]))),
        )
    )


def refused(exchange: Exchange, refusal: Refusal, code: int) -> Effects[Message]:
    """Return the response that refuses the whole request."""
    codec, request = exchange.response_codec, exchange.request
    shape, item_answers = refusal.named_items(codec, request), None
    if shape is not None:
        element = codec.root.ELEMENTS[shape.response_list]
        item_answers = yield from answers(exchange, shape, element, shape.of(request), code)
    return refusal.refuse(codec, request, code, item_answers)
