"""Functions that perform the steps of the authorization table, for the interpreter and custom handlers.

Request steps decide on the request before anything goes upstream; response steps process upstream's answer.
Each step that handles many items is a generator, since it yields the event loop between items (`turns`).
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, TypeVar

from kustos.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kustos.protocol.codes import DENIED_CODE, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID
from kustos.protocol.common import READ_TOPIC
from kustos.protocol.effects import (
    Effects,
    Reply,
    ResolveTopicIds,
    Serve,
    UpstreamAnswer,
)
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.shapes import Items
from kustos.protocol.steps import (
    CheckOf,
    ClusterOperations,
    Conceal,
    Gate,
    Hide,
    Operations,
    RefusedItem,
    RefuseRequestError,
    Rewrite,
    Row,
    Strip,
)
from kustos.protocol.turns import DECISION_COST, allowed_each, allowed_names, answers, each
from kustos.wire import ZERO_UUID, Message

SomePartition = TypeVar("SomePartition", bound=tuple[str | bytes, int])
"""A topic, by name or by id, and a partition index."""


def finish(
    exchange: Exchange, row: Row, answer: UpstreamAnswer, denied: dict[int, Message] | None
) -> Effects[Reply]:
    """Run the response steps; an unchanged answer passes as bytes."""
    response = answer.message
    changed = False
    for step in row.steps:
        match step:
            case Hide():
                changed |= yield from hide(exchange, step, response)
            case Operations():
                changed |= yield from annotate(exchange, step, response)
            case ClusterOperations():
                changed |= annotate_cluster(exchange, step, response)
            case Rewrite():
                changed |= yield from rewrite(exchange, step, response)
            case Conceal():
                changed |= conceal(step, response)
    for step in row.steps:
        if isinstance(step, Strip) and denied and not (step.yields and response.error_code):
            response = yield from merged(exchange, step.items, denied, response)
            changed = True
    return Reply(response if changed else answer.body)


def resolve_topic_ids(exchange: Exchange, row: Row) -> Effects[None]:
    """Resolve the topic ids in the items that the row strips, before anything is decided."""
    ids: set[bytes] = set()
    for step in row.steps:
        if isinstance(step, Strip):
            item_type = exchange.codec.root.ELEMENTS.get(step.items.request_list)
            if item_type is not None and "topic_id" in item_type.FIELDS:
                ids.update(item.topic_id for item in exchange.request.get(step.items.request_list) or ())
    ids.discard(ZERO_UUID)
    if ids:
        exchange.topic_names = yield ResolveTopicIds(frozenset(ids))


def pass_gate(exchange: Exchange, gate: Gate) -> Effects[None]:
    """Raise `RefuseRequestError` unless every name passes; all names are checked, as in Kafka."""
    if not gate.when(exchange.request):
        return
    if gate.unless_cluster is not None and exchange.allows_cluster(gate.unless_cluster, log_if_denied=False):
        return
    each_question = yield from each(
        exchange, gate.names(exchange.request), lambda name: question(exchange, gate.check, name, name)
    )
    for refusal in each_question:
        if isinstance(refusal, RefusedItem):
            raise RefuseRequestError(refusal.code)
    questions = Counter(one for one in each_question if isinstance(one, tuple))
    verdicts = yield from allowed_each(exchange, [(*one, count) for one, count in questions.items()])
    for (check, _), allowed in zip(questions, verdicts, strict=True):
        if not allowed:
            raise RefuseRequestError(DENIED_CODE[check.resource_type])


def pass_again(exchange: Exchange, gates: Iterable[Gate]) -> Effects[None]:
    """Pass these gates again if the ACLs have changed since they were passed."""
    if not exchange.is_still_allowed():
        for gate in gates:
            yield from pass_gate(exchange, gate)


def served(exchange: Exchange, passed: Message) -> Effects[Message]:
    """Return kustos' own answer to the allowed part of the request."""
    whole, exchange.request = exchange.request, passed
    answer: Message = yield Serve()
    exchange.request = whole
    return answer


def question(
    exchange: Exchange, check: CheckOf, item: Any, name: str
) -> tuple[Check, str] | RefusedItem | None:
    """Return the question to the authorizer about an item, or its refusal; None if it needs no check."""
    return (check, name) if isinstance(check, Check) else check(exchange, item)


def strip(exchange: Exchange, step: Strip, request: Message) -> Effects[tuple[Message, dict[int, Message]]]:
    """Return the request with its allowed items, and the answers to the refused items by their index."""
    items = request.get(step.items.request_list) or []
    if not items:
        return request, {}
    open_to_all = step.unless_cluster is not None and exchange.allows_cluster(
        step.unless_cluster, log_if_denied=False
    )
    named: dict[tuple[Check, str], list[int]] = {}
    refused: dict[RefusedItem, list[int]] = {}
    first_of: dict[Any, int] = {}
    again: set[int] = set()
    if step.once or step.repeated is not None:
        keys = yield from each(exchange, items, step.items.key_of_request)
        again = {index for index, key in enumerate(keys) if first_of.setdefault(key, index) != index}
    repeated = again | {first_of[keys[index]] for index in again} if step.repeated is not None else set()

    def gather(index: int) -> None:
        if step.once and index in again:
            return
        if step.repeated is not None and index in repeated:
            refused.setdefault(step.repeated, []).append(index)
            return
        item = items[index]
        name = item_name(exchange, item, step.name)
        if name is None:
            refused.setdefault(RefusedItem(UNKNOWN_TOPIC_ID), []).append(index)
            return
        item_question = None if open_to_all else question(exchange, step.check, item, name)
        if isinstance(item_question, RefusedItem):
            refused.setdefault(item_question, []).append(index)
        elif item_question is not None:
            named.setdefault(item_question, []).append(index)

    yield from each(exchange, range(len(items)), gather)
    questions = [
        (*item_question, reference_count(step, items, indexes)) for item_question, indexes in named.items()
    ]
    verdicts = yield from allowed_each(exchange, questions)
    for ((check, _), indexes), allowed in zip(named.items(), verdicts, strict=True):
        if not allowed:
            refused.setdefault(RefusedItem(DENIED_CODE[check.resource_type]), []).extend(indexes)
    if not refused:
        return request, {}
    denied: dict[int, Message] = {}
    element = exchange.response_codec.root.ELEMENTS[step.items.response_list]
    for refusal, indexes in refused.items():
        refusing = yield from answers(
            exchange, step.items, element, [items[i] for i in indexes], refusal.code, refusal.message
        )
        denied |= zip(indexes, refusing, strict=True)
    gone = denied.keys() | again if step.once else denied.keys()
    left = [item for index, item in enumerate(items) if index not in gone]
    return request.replace(**{step.items.request_list: left}), denied


def reference_count(step: Strip, items: list[Any], indexes: list[int]) -> int:
    """Return the number of items of the request that depend on one decision, counted as in Kafka."""
    if step.counts_inner and step.items.inner is not None:
        inner = step.items.inner.request_list
        return sum(len(items[index].get(inner) or ()) for index in indexes)
    return len(indexes)


def item_name(exchange: Exchange, item: Any, name_field: str) -> str | None:
    """Return the resource name of an item, None for an unresolved topic id."""
    if not isinstance(item, Message):
        return str(item)
    if "topic_id" in item.FIELDS and (item.topic_id != ZERO_UUID or name_field not in item.FIELDS):
        return exchange.topic_names.get(item.topic_id)
    name: str | None = item.get(name_field)
    return "" if name is None else name


def merged(
    exchange: Exchange, items: Items, denied: dict[int, Message], response: Message | None
) -> Effects[Message]:
    """Return the response with its items and the denied items, all in the order of the request.

    Response items that match no item of the request are dropped.
    """
    base = response if response is not None else exchange.response_codec.new()
    answered = base.get(items.response_list) or []
    pool: dict[Any, deque[Message]] = {}
    keys = yield from each(exchange, answered, items.key_of_response)
    for key, item in zip(keys, answered, strict=True):
        pool.setdefault(key, deque()).append(item)

    def placed(item: tuple[int, Any]) -> Message | None:
        index, request_item = item
        if index in denied:
            return denied[index]
        waiting = pool.get(items.key_of_request(request_item))
        return waiting.popleft() if waiting else None

    placed_each = yield from each(exchange, list(enumerate(items.of(exchange.request))), placed)
    return base.replace(**{items.response_list: [item for item in placed_each if item is not None]})


def hide(exchange: Exchange, step: Hide, response: Message) -> Effects[bool]:
    """Remove items that may not be seen; return whether any was removed."""
    if not step.when(exchange.request):
        return False
    holders = [response] if step.inside is None else response.get(step.inside) or []
    items = [item for holder in holders for item in holder.get(step.response_list) or ()]
    if step.unless_cluster is not None and exchange.allows_cluster(step.unless_cluster, log_if_denied=False):
        return False
    names = yield from each(exchange, items, lambda item: item.get(step.name) or "")
    shown = yield from allowed_names(exchange, step.check, names, listing=True)
    if shown.issuperset(names):
        return False
    for holder in holders:
        listed = holder.get(step.response_list) or ()
        kept = yield from each(exchange, listed, lambda item: (item.get(step.name) or "") in shown)
        setattr(holder, step.response_list, [item for item, keep in zip(listed, kept, strict=True) if keep])
    return True


def annotate(exchange: Exchange, step: Operations, response: Message) -> Effects[bool]:
    """Fill in the authorized operations of the items; return whether any item has the field."""
    items = response.get(step.response_list) or []
    if not items or step.field not in items[0].FIELDS:
        return False
    wants_operations = step.flag is None or exchange.request.get(step.flag, False)

    def annotate_one(item: Message) -> None:
        name = item.get(step.name)
        if wants_operations and name is not None and (step.with_errors or item.error_code == 0):
            setattr(item, step.field, exchange.operations_bits(step.resource_type, name))
        else:
            setattr(item, step.field, NO_OPERATIONS)

    yield from each(
        exchange,
        items,
        annotate_one,
        DECISION_COST * len(SUPPORTED_OPERATIONS[step.resource_type]) if wants_operations else 1,
    )
    return True


NO_OPERATIONS = -2147483648
"""The value Kafka sends if the authorized operations were not requested."""


def annotate_cluster(exchange: Exchange, step: ClusterOperations, response: Message) -> bool:
    """Fill in the authorized cluster operations; return whether the version has the field."""
    if step.field not in response.FIELDS:
        return False
    if not exchange.request.get(step.flag, False) or response.get("error_code", 0) != 0:
        value = NO_OPERATIONS
    elif exchange.allows_cluster(AclOperation.DESCRIBE):
        value = exchange.operations_bits(ResourceType.CLUSTER, CLUSTER_NAME)
    else:
        value = 0
    setattr(response, step.field, value)
    return True


def conceal(step: Conceal, response: Message) -> bool:
    """Empty the lists of upstream's addresses; return whether there were any."""
    holders = [item for item in response.get(step.response_list) or () if item.get(step.field)]
    for holder in holders:
        setattr(holder, step.field, [])
    return bool(holders)


def rewrite(exchange: Exchange, step: Rewrite, response: Message) -> Effects[bool]:
    """Replace the brokers' addresses with the gateway's; return whether there were any."""
    items: list[Any] = [response] if step.response_list == "" else response.get(step.response_list) or []

    def rewrite_one(item: Message) -> bool:
        if not item.get("host"):
            return False
        exchange.advertise(item, getattr(item, step.node_id))
        return True

    return any((yield from each(exchange, items, rewrite_one)))


def refused_by_topic(
    exchange: Exchange, partitions: Iterable[SomePartition]
) -> Effects[dict[SomePartition, int]]:
    """Decide on reading the partitions, by topic, with Kafka's reference counts; return refused ones' codes.

    Topic ids must be resolved already.
    """
    refused: dict[SomePartition, int] = {}
    by_name: dict[str, list[SomePartition]] = {}

    def gather(partition: SomePartition) -> None:
        topic = partition[0]
        name = topic if isinstance(topic, str) else exchange.topic_names.get(topic)
        if name is None:
            refused[partition] = UNKNOWN_TOPIC_ID
        else:
            by_name.setdefault(name, []).append(partition)

    yield from each(exchange, list(partitions), gather)
    questions = [(READ_TOPIC, name, len(of_topic)) for name, of_topic in by_name.items()]
    verdicts = yield from allowed_each(exchange, questions)
    for of_topic, allowed in zip(by_name.values(), verdicts, strict=True):
        if not allowed:
            refused.update(dict.fromkeys(of_topic, TOPIC_AUTHORIZATION_FAILED))
    return refused


def by_topic(
    exchange: Exchange, topic_type: type[Message], partitions: Iterable[tuple[tuple[str | bytes, int], Any]]
) -> Effects[list[Message]]:
    """Return the items of a list grouped by topic, in order, as the topics of a request or response."""
    topics: dict[str | bytes, list[Any]] = {}
    for (topic, _), item in partitions:
        topics.setdefault(topic, []).append(item)
    name = "topic" if "topic" in topic_type.FIELDS else "topic_id"
    return each(
        exchange, list(topics.items()), lambda topic: topic_type(**{name: topic[0], "partitions": topic[1]})
    )
