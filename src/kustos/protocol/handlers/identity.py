"""APIs that kustos answers itself: delegation tokens, changes of SCRAM users, SASL requests after the login.

Tokens are secrets, so requests about tokens need a connection that was authenticated without a token
(`KafkaApis.allowTokenRequests`). A client with groups may not create one: a session of the token would have
no groups, and a DENY of a group would no longer apply. A client needs no ACL for its own tokens. Creating a
token for another owner needs CREATE_TOKENS; describing another owner's token needs DESCRIBE on the token or
DESCRIBE_TOKENS on its owner. ACLs do not govern renewal and expiry: `kustos.metadata.control` decides on
them. Refusals of the other APIs do not repeat values of the request.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from kustos.acl import ANONYMOUS, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerError
from kustos.protocol.codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ILLEGAL_SASL_STATE,
    INVALID_PRINCIPAL_TYPE,
    MESSAGES,
    UNKNOWN_SERVER_ERROR,
)
from kustos.protocol.effects import Handler, Reply
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.perform import served
from kustos.protocol.steps import RefuseRequestError, Row
from kustos.protocol.token_messages import (
    NO_TIME,
    NoPrincipalError,
    creation_of,
    parties_of,
    refused_creation,
    shown_token,
    undescribed_tokens,
)
from kustos.protocol.turns import each
from kustos.wire import Message

CREATE_FOR = Check(AclOperation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_TOKEN = Check(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
DESCRIBE_OF = Check(AclOperation.DESCRIBE_TOKENS, ResourceType.USER)
CHECKS_PER_TOKEN: Final = 2


def may_ask(exchange: Exchange) -> bool:
    """Return whether this connection allows token requests.

    For a forwarded request the connection does not matter: the forwarder has authenticated the requester.
    """
    context = exchange.context
    if context.principal.token_authenticated:
        return False
    if exchange.is_forwarded:
        return True
    return context.security_protocol != "PLAINTEXT" and not (
        context.security_protocol == "SSL" and context.principal == ANONYMOUS
    )


def create_token(exchange: Exchange, _row: Row) -> Handler:
    """Serve the owner, or a client that may CREATE_TOKENS for the owner."""
    context = exchange.context
    try:
        creation = creation_of(exchange.request, context.principal)
    except NoPrincipalError:
        raise RefuseRequestError(UNKNOWN_SERVER_ERROR) from None
    code = None
    if not may_ask(exchange) or context.principal.groups:
        code = DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif creation.owner != creation.requester and not exchange.allows(CREATE_FOR, str(creation.owner)):
        code = DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif any(renewer.principal_type != KafkaPrincipal.USER_TYPE for renewer in creation.renewers):
        code = INVALID_PRINCIPAL_TYPE
    if code is not None:
        return Reply(refused_creation(exchange.response_codec.root, creation, code))
    return Reply((yield from served(exchange, exchange.request)))


def change_token(exchange: Exchange, _row: Row) -> Handler:
    """Serve the renewal or expiry of a token if the connection allows token requests."""
    if not may_ask(exchange):
        root = exchange.response_codec.root
        return Reply(root(error_code=DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp=NO_TIME))
    return Reply((yield from served(exchange, exchange.request)))


def describe_tokens(exchange: Exchange, _row: Row) -> Handler:
    """Return the requested tokens that involve the caller or that the caller may describe."""
    context = exchange.context
    if may_ask(exchange):
        found = yield from served(exchange, exchange.request)
    else:
        found = undescribed_tokens(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    may_see = _visibility(exchange, context.principal)
    seen = yield from each(exchange, found.tokens, may_see, CHECKS_PER_TOKEN)
    shown = [token for token, is_seen in zip(found.tokens, seen, strict=True) if is_seen]
    message_type = exchange.response_codec.root
    return Reply(
        message_type(
            error_code=found.error_code,
            tokens=(yield from each(exchange, shown, partial(shown_token, message_type))),
        )
    )


def _visibility(exchange: Exchange, principal: KafkaPrincipal) -> Callable[[Message], bool]:
    # a request for all tokens does not request any particular token
    listing = exchange.request.owners is None

    def may_see(token: Message) -> bool:
        owner = f"{token.principal_type}:{token.principal_name}"
        return (
            principal in parties_of(token)
            or exchange.allows(DESCRIBE_TOKEN, token.token_id, listing=listing)
            or exchange.allows(DESCRIBE_OF, owner, listing=listing)
        )

    return may_see


def refuse_sasl(_exchange: Exchange, _row: Row) -> Handler:
    """Refuse an authentication request after the login."""
    yield from ()
    raise RefuseRequestError(ILLEGAL_SASL_STATE)


def alter_scram(exchange: Exchange, _row: Row) -> Handler:
    """Serve clients that may ALTER the cluster; a refusal names each user once, sorted, as in Kafka."""
    code = CLUSTER_AUTHORIZATION_FAILED
    try:
        if exchange.allows_cluster(AclOperation.ALTER):
            return Reply((yield from served(exchange, exchange.request)))
    except AuthorizerError:
        code = UNKNOWN_SERVER_ERROR
    root = exchange.response_codec.root
    result = root.ELEMENTS["results"]
    users = {item.name for item in (*exchange.request.deletions, *exchange.request.upsertions)}
    results = yield from each(
        exchange,
        sorted(users),
        lambda user: result(user=user, error_code=code, error_message=MESSAGES[code]),
    )
    return Reply(root(results=results))
