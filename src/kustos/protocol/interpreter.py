"""The one interpreter of the authorization table.

Request steps run in the order of the row and decide everything at one moment; response steps run when
upstream has answered. A row without response steps lets the answer pass as bytes.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.authorizer import AuthorizerError, KafkaApiError
from kustos.protocol.codes import DENIED_CODE, UNKNOWN_TOPIC_ID
from kustos.protocol.effects import Answer, Ask, Asking, Handler, Relay, Reply, ResolveTopicIds, Serve
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.shapes import Items
from kustos.protocol.steps import (
    CheckOf,
    ClusterOperations,
    Gate,
    Hide,
    Operations,
    RefuseRequestError,
    Rewrite,
    Row,
    ServeLocally,
    Strip,
)
from kustos.wire import ZERO_UUID, Message


def handle(exchange: Exchange, row: Row) -> Handler:
    """Run a row on a request; an authorizer that cannot answer refuses, as Kafka does."""
    try:
        if row.escape is not None:
            return (yield from row.escape(exchange, row))
        return (yield from interpret(exchange, row))
    except RefuseRequestError as refusal:
        code = refusal.code
    except AuthorizerError as error:
        # "not ready" has no code of its own in Kafka's protocol
        code = KafkaApiError.of(error).code.value
    return Reply(row.refusal.refuse(exchange.response_codec, exchange.request, code))


def interpret(exchange: Exchange, row: Row) -> Handler:
    """Run the steps of a row."""
    if any(isinstance(step, Strip) for step in row.steps):
        yield from resolve_topic_ids(exchange, row)
    request, kept, denied = exchange.request, exchange.request, None
    for step in row.steps:
        match step:
            case Gate():
                pass_gate(exchange, step)
            case Strip():
                kept, denied = strip(exchange, step, kept)
                if denied and not kept.get(step.items.request_list):
                    return Reply(merged(exchange, step.items, denied, None))
            case ServeLocally():
                return Reply((yield Serve(request)))
    message = kept if denied else None
    if not denied and not any(
        isinstance(step, Hide | Operations | ClusterOperations | Rewrite) for step in row.steps
    ):
        return Relay()
    answer: Answer = yield Ask(message)
    return finish(exchange, row, answer, denied)


def finish(exchange: Exchange, row: Row, answer: Answer, denied: dict[int, Message] | None) -> Reply:
    """Run the response steps; an answer that none of them changed goes on as it came."""
    response = answer.message
    changed = False
    for step in row.steps:
        match step:
            case Hide():
                changed |= hide(exchange, step, response)
            case Operations():
                changed |= annotate(exchange, step, response)
            case ClusterOperations():
                changed |= annotate_cluster(exchange, step, response)
            case Rewrite():
                changed |= rewrite(exchange, step, response)
    for step in row.steps:
        if isinstance(step, Strip) and denied:
            response = merged(exchange, step.items, denied, response)
            changed = True
    return Reply(response if changed else answer.body)


def resolve_topic_ids(exchange: Exchange, row: Row) -> Asking[None]:
    """Resolve the topic ids in the items that the row strips, before anything is decided."""
    ids: set[bytes] = set()
    for step in row.steps:
        if isinstance(step, Strip):
            for item in exchange.request.get(step.items.request_list) or ():
                if isinstance(item, Message):
                    ids.add(item.get("topic_id", ZERO_UUID))
    ids.discard(ZERO_UUID)
    if ids:
        exchange.topic_names = yield ResolveTopicIds(frozenset(ids))


def pass_gate(exchange: Exchange, gate: Gate) -> None:
    """Raise `RefuseRequestError` unless every name passes; all are asked, as Kafka asks them."""
    if not gate.when(exchange.request):
        return
    questions: dict[tuple[Check, str], int] = {}
    for name in gate.names(exchange.request):
        asked = question(exchange, gate.check, name, name)
        if asked is not None:
            questions[asked] = questions.get(asked, 0) + 1
    verdicts = exchange.allows_each([(*asked, count) for asked, count in questions.items()])
    for (check, _), allowed in zip(questions, verdicts, strict=True):
        if not allowed:
            raise RefuseRequestError(DENIED_CODE[check.resource_type])


def question(exchange: Exchange, check: CheckOf, item: Any, name: str) -> tuple[Check, str] | None:
    """Return what to ask the authorizer about an item, None where nothing need be asked."""
    return (check, name) if isinstance(check, Check) else check(exchange, item)


def strip(exchange: Exchange, step: Strip, request: Message) -> tuple[Message, dict[int, Message]]:
    """Return the request with its allowed items, and the answers to the others by their index."""
    items = request.get(step.items.request_list) or []
    if not items:
        return request, {}
    element = exchange.response_codec.root.ELEMENTS[step.items.response_list]
    open_to_all = step.unless_cluster is not None and exchange.allows_cluster(
        step.unless_cluster, log_if_denied=False
    )
    denied: dict[int, Message] = {}
    named: dict[tuple[Check, str], list[int]] = {}
    for index, item in enumerate(items):
        name = item_name(exchange, item, step.name)
        if name is None:
            denied[index] = step.items.answer(element, item, UNKNOWN_TOPIC_ID)
            continue
        asked = None if open_to_all else question(exchange, step.check, item, name)
        if asked is not None:
            named.setdefault(asked, []).append(index)
    questions = [
        (*asked, count)
        for asked, indexes in named.items()
        for count in ([1] * len(indexes) if step.one_by_one else [reference_count(step, items, indexes)])
    ]
    verdicts = exchange.allows_each(questions)
    refused = {asked[:2] for asked, allowed in zip(questions, verdicts, strict=True) if not allowed}
    for check, name in refused:
        code = DENIED_CODE[check.resource_type]
        for index in named[check, name]:
            denied[index] = step.items.answer(element, items[index], code)
    if not denied:
        return request, denied
    left = [item for index, item in enumerate(items) if index not in denied]
    return request.replace(**{step.items.request_list: left}), denied


def reference_count(step: Strip, items: list[Any], indexes: Iterable[int]) -> int:
    """Return how many items of the request hang on one decision, as Kafka counts them."""
    if step.counts_inner and step.items.inner is not None:
        inner = step.items.inner.request_list
        return sum(len(items[index].get(inner) or ()) for index in indexes)
    return len(list(indexes))


def item_name(exchange: Exchange, item: Any, name_field: str) -> str | None:
    """Return the resource name of an item, None for a topic id that nobody can name."""
    if not isinstance(item, Message):
        return str(item)
    if "topic_id" in item.FIELDS and (item.topic_id != ZERO_UUID or name_field not in item.FIELDS):
        return exchange.topic_names.get(item.topic_id)
    name: str | None = item.get(name_field)
    return "" if name is None else name


def merged(exchange: Exchange, items: Items, denied: dict[int, Message], response: Message | None) -> Message:
    """Return the response with the denied items where the request had them.

    What upstream answered keeps its own order between them; an answer to nothing that was asked
    cannot be placed and is dropped.
    """
    codec = exchange.response_codec
    base = response if response is not None else codec.new()
    pool: dict[Any, deque[Message]] = {}
    for item in base.get(items.response_list) or ():
        pool.setdefault(items.key_of_response(item), deque()).append(item)
    merged_items: list[Message] = []
    for index, item in enumerate(exchange.request.get(items.request_list) or ()):
        if index in denied:
            merged_items.append(denied[index])
        elif waiting := pool.get(items.key_of_request(item)):
            merged_items.append(waiting.popleft())
    return base.replace(**{items.response_list: merged_items})


def hide(exchange: Exchange, step: Hide, response: Message) -> bool:
    """Leave out what may not be seen; return whether anything was."""
    if not step.when(exchange.request):
        return False
    items = response.get(step.response_list) or []
    if step.unless_cluster is not None and exchange.allows_cluster(step.unless_cluster, log_if_denied=False):
        return False
    names = exchange.allowed_names(step.check, (item.get(step.name) or "" for item in items), listing=True)
    kept = [item for item in items if (item.get(step.name) or "") in names]
    setattr(response, step.response_list, kept)
    return len(kept) < len(items)


def annotate(exchange: Exchange, step: Operations, response: Message) -> bool:
    """Fill in the authorized operations of the items; return whether any item has the field."""
    items = response.get(step.response_list) or []
    if not items or step.field not in items[0].FIELDS:
        return False
    asked = step.flag is None or exchange.request.get(step.flag, False)
    for item in items:
        name = item.get(step.name)
        if asked and name is not None and (step.with_errors or item.error_code == 0):
            setattr(item, step.field, exchange.operations_bits(step.resource_type, name))
        else:
            setattr(item, step.field, NO_OPERATIONS)
    return True


NO_OPERATIONS = -2147483648
"""What Kafka sends where nobody asked for the authorized operations."""


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


def rewrite(exchange: Exchange, step: Rewrite, response: Message) -> bool:
    """Put the gateway's addresses in the place of the brokers'; return whether there were any."""
    items: list[Any] = [response] if step.response_list == "" else response.get(step.response_list) or []
    found = False
    for item in items:
        if item.get("host"):
            node_id = getattr(item, step.node_id)
            item.host, item.port = exchange.addresses.advertised(node_id, item.host, item.port)
            found = True
    return found
