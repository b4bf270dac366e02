"""The one interpreter of the authorization table.

Request steps run in the order of the row and make all decisions at one moment; response steps run after
upstream has answered. If a row has no response steps, the answer passes as bytes.
"""

from kustos.authorizer import AuthorizerError, KafkaApiError
from kustos.protocol.effects import (
    Ask,
    Handler,
    Relay,
    Reply,
    UpstreamAnswer,
)
from kustos.protocol.exchange import Exchange
from kustos.protocol.perform import finish, merged, pass_gate, resolve_topic_ids, served, strip
from kustos.protocol.steps import (
    ClusterOperations,
    Conceal,
    Gate,
    Hide,
    Operations,
    RefuseRequestError,
    Rewrite,
    Row,
    ServeLocally,
    Strip,
)
from kustos.protocol.turns import encoded, refused
from kustos.wire import Message


def handle(exchange: Exchange, row: Row) -> Handler:
    """Run a row on a request; an authorizer error refuses it, as in Kafka.

    The reply is encoded here, in turns, except the reply to a change that may revoke rights: a turn ends with
    a new decision about all grants, and the change may have revoked the requester's own.
    """
    outcome = yield from decide(exchange, row)
    if isinstance(outcome, Reply) and isinstance(outcome.content, Message) and not row.revokes:
        return Reply((yield from encoded(exchange, exchange.response_codec, outcome.content)))
    return outcome


def decide(exchange: Exchange, row: Row) -> Handler:
    """Run a row on a request; return the reply before encoding."""
    try:
        if row.custom_handler is not None:
            return (yield from row.custom_handler(exchange, row))
        return (yield from interpret(exchange, row))
    except RefuseRequestError as refusal:
        code = refusal.code
    except AuthorizerError as error:
        # "not ready" has no code of its own in Kafka's protocol
        code = KafkaApiError.of(error).code.value
    return Reply((yield from refused(exchange, row.refusal, code)))


def interpret(exchange: Exchange, row: Row) -> Handler:
    """Run the steps of a row; only the items that all steps allow go upstream or are served."""
    if any(isinstance(step, Strip) for step in row.steps):
        yield from resolve_topic_ids(exchange, row)
    kept, denied = exchange.request, None
    for step in row.steps:
        match step:
            case Gate():
                yield from pass_gate(exchange, step)
            case Strip():
                kept, denied = yield from strip(exchange, step, kept)
                if denied and not step.yields and not kept.get(step.items.request_list):
                    return Reply((yield from merged(exchange, step.items, denied, None)))
            case ServeLocally():
                return Reply((yield from served(exchange, kept)))
    message = None if kept is exchange.request else kept
    if message is None and not any(
        isinstance(step, Hide | Operations | ClusterOperations | Rewrite | Conceal) for step in row.steps
    ):
        return Relay()
    answer: UpstreamAnswer = yield Ask(message)
    return (yield from finish(exchange, row, answer, denied))
