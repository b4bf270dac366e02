"""Delegation tokens: who may ask about them depends on the connection, and on each token.

They are secrets, so they are told only over connections that know who asks, and never to who holds but a
token (`KafkaApis.allowTokenRequests`). For oneself no ACL is needed; for another owner CREATE_TOKENS, to
see another's DESCRIBE on the token or DESCRIBE_TOKENS on its owner. Who may renew and end a token is no
matter of ACLs; `kustos.metadata.control` decides it.
"""

from collections.abc import Callable

from kustos.acl import ANONYMOUS, AclOperation, KafkaPrincipal, ResourceType
from kustos.protocol.codes import (
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    INVALID_PRINCIPAL_TYPE,
    UNKNOWN_SERVER_ERROR,
)
from kustos.protocol.effects import Handler, Reply, Serve
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.steps import RefuseRequestError, Row
from kustos.protocol.token_messages import (
    NO_TIME,
    NoPrincipalError,
    creation_of,
    parties_of,
    refused_creation,
    shown_tokens,
    undescribed_tokens,
)
from kustos.wire import Message

CREATE_FOR = Check(AclOperation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_TOKEN = Check(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
DESCRIBE_OF = Check(AclOperation.DESCRIBE_TOKENS, ResourceType.USER)


def may_ask(exchange: Exchange) -> bool:
    """Return whether tokens may be spoken of on this connection at all.

    Of a forwarded request the connection says nothing: whoever forwards it vouches for the requester.
    """
    context = exchange.known_context()
    if context.principal.token_authenticated:
        return False
    if exchange.is_forwarded:
        return True
    return context.security_protocol != "PLAINTEXT" and not (
        context.security_protocol == "SSL" and context.principal == ANONYMOUS
    )


def create_token(exchange: Exchange, _row: Row) -> Handler:
    """Serve who asks for himself, or may CREATE_TOKENS for the owner."""
    context = exchange.known_context()
    try:
        asked = creation_of(exchange.request, context.principal)
    except NoPrincipalError:
        raise RefuseRequestError(UNKNOWN_SERVER_ERROR) from None
    code = None
    if not may_ask(exchange):
        code = DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif asked.owner != asked.requester and not exchange.allows(CREATE_FOR, str(asked.owner)):
        code = DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif any(renewer.principal_type != KafkaPrincipal.USER_TYPE for renewer in asked.renewers):
        code = INVALID_PRINCIPAL_TYPE
    if code is not None:
        return Reply(refused_creation(exchange.response_codec.root, asked, code))
    return Reply((yield Serve(exchange.request)))


def change_token(exchange: Exchange, _row: Row) -> Handler:
    """Serve a renewal or an end of a token where tokens may be spoken of."""
    if not may_ask(exchange):
        root = exchange.response_codec.root
        return Reply(root(error_code=DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp=NO_TIME))
    return Reply((yield Serve(exchange.request)))


def describe_tokens(exchange: Exchange, _row: Row) -> Handler:
    """Show of the tokens asked for those that concern the asker, or that he may see."""
    context = exchange.known_context()
    if may_ask(exchange):
        found: Message = yield Serve(exchange.request)
    else:
        found = undescribed_tokens(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    sees = _sight(exchange, context.principal)
    shown = [token for token in found.tokens if sees(token)]
    return Reply(shown_tokens(exchange.response_codec.root, found, shown))


def _sight(exchange: Exchange, principal: KafkaPrincipal) -> Callable[[Message], bool]:
    # who asks for all tokens has not asked for any one of them
    listing = exchange.request.owners is None

    def sees(token: Message) -> bool:
        owner = f"{token.principal_type}:{token.principal_name}"
        return (
            principal in parties_of(token)
            or exchange.allows(DESCRIBE_TOKEN, token.token_id, listing=listing)
            or exchange.allows(DESCRIBE_OF, owner, listing=listing)
        )

    return sees
